"""Reading the beginning of an HTTP body, in pieces of any size, for a refusal or for content."""

from __future__ import annotations

import json
import re
import zlib

from compacter.messages.refusals import detect_in_reply, error_of
from compacter.messages.replies import has_content
from compacter.overflow import TokenLimit

# Largest part of a body that is read, in bytes; a refusal is never that long.
_LONGEST_BEGINNING = 1 << 20
PACKINGS = ("", "identity", "gzip", "deflate")
"""The values of ``Content-Encoding`` that can be read."""
# A `\r` that is the last byte so far may be one half of `\r\n`.
_LINE_END = re.compile(rb"\r\n|\n|\r(?=.)", re.DOTALL)
# White space and the mark that some servers put before the first character.
_BLANK = b" \t\r\n\xef\xbb\xbf"


class DocumentWatch:
    """Reads a whole JSON body."""

    def __init__(self, packed: str = "") -> None:
        self.found: TokenLimit | None = None
        """The token limit that the body states, once ``read`` or ``end`` has found it."""
        self.is_document = True
        """Whether the body is one JSON document, and no events."""
        self.shows = False
        """Whether visible content was read, and no error before it."""
        self._unpack = (
            # With 32 zlib finds out by itself whether it is gzip's or deflate's form.
            zlib.decompressobj(zlib.MAX_WBITS | 32) if packed in ("gzip", "deflate") else None
        )
        self._seen = 0
        self._settled = False
        self._text = bytearray()

    def read(self, chunk: bytes) -> bool:
        """Read a chunk, and return whether enough was read."""
        if self._unpack is not None:
            try:
                chunk = self._unpack.decompress(chunk, _LONGEST_BEGINNING)
            except zlib.error:
                self._settled = True
                return True
        self._seen += len(chunk)
        self._settled = self._take(chunk) or self._seen > _LONGEST_BEGINNING
        return self._settled

    def _take(self, chunk: bytes) -> bool:
        self._text += chunk
        return False

    def end(self) -> None:
        """End reading: there is no more of the body."""
        if not self._settled:
            self._judge(bytes(self._text))

    def _judge(self, text: bytes) -> bool:
        try:
            return self.judge(json.loads(text))
        except (ValueError, RecursionError):
            return True

    def judge(self, data: object) -> bool:
        """Return whether a document or an event is a refusal, or has visible content."""
        self.found = detect_in_reply(data)
        if self.found is not None:
            return True
        shows = has_content(data)
        self.shows = shows and not error_of(data)
        return shows


class EventWatch(DocumentWatch):
    """Reads server-sent events up to the first with visible content or an error.

    A server that has announced events and then fails may send a JSON document, which is read too.
    The format: https://html.spec.whatwg.org/multipage/server-sent-events.html.
    """

    def __init__(self, packed: str = "") -> None:
        super().__init__(packed)
        self._begun = False
        self.is_document = False
        self._name = b""
        self._data: list[bytes] = []

    def _take(self, chunk: bytes) -> bool:
        self._text += chunk
        if not self._begun:
            self._text = self._text.lstrip(_BLANK)
            if not self._text:
                return False
            self._begun = True
            self.is_document = self._text.startswith((b"{", b"["))
        if self.is_document or not (b"\n" in chunk or b"\r" in chunk):
            return False
        *lines, rest = _LINE_END.split(bytes(self._text))
        self._text = bytearray(rest)
        return any(map(self._line, lines))

    def _line(self, line: bytes) -> bool:
        if line.startswith(b"data:"):
            self._data.append(line.removeprefix(b"data:").strip())
        elif line.startswith(b"event:"):
            self._name = line.removeprefix(b"event:").strip()
        elif not line:
            return self._end_event()
        return False

    def _end_event(self) -> bool:
        name = self._name
        data = b"\n".join(self._data)
        self._name = b""
        self._data = []
        if not data:
            return False
        if name == b"error":
            return self._judge_error(data)
        return data == b"[DONE]" or self._judge(data)

    def _judge_error(self, data: bytes) -> bool:
        """Read an event that is named ``error``, whose data may be any."""
        self._judge(data)
        self.shows = False
        if self.found is None:
            self.found = detect_in_reply({"error": data.decode("utf-8", "replace")})
        return True

    def end(self) -> None:
        """End reading; the last event may lack its final blank line."""
        if self.is_document:
            super().end()
        elif not self._settled and not self._line(bytes(self._text).rstrip(b"\r")):
            self._end_event()
