"""Reading the beginning of an HTTP body, in pieces of any size, for a refusal or for content."""

from __future__ import annotations

import json
import zlib
from collections import defaultdict

from compacter.messages.refusals import detect_empty_stream, detect_in_reply, error_of
from compacter.messages.replies import ends_empty, has_content
from compacter.overflow import TokenLimit

# Largest part of a body that is read, in bytes; a refusal is never that long.
_LONGEST_BEGINNING = 1 << 20
PACKINGS = ("", "identity", "gzip", "deflate")
"""The values of ``Content-Encoding`` that can be read."""
# White space and the mark that some servers put before the first character.
_BLANK = b" \t\r\n\xef\xbb\xbf"


class DocumentWatch:
    """Reads a whole JSON body."""

    is_document: bool | None = True
    """Whether the body is one JSON document, not events; ``None`` if that is not known yet."""

    def __init__(self, packed: str = "") -> None:
        self.found: TokenLimit | None = None
        """The token limit that the body states, once ``read`` or ``end`` has found it."""
        self.shows = False
        """Whether visible content was read, and no error before it."""
        self._unpack = (
            # With 32, zlib itself detects gzip's and deflate's forms.
            zlib.decompressobj(zlib.MAX_WBITS | 32) if packed in ("gzip", "deflate") else None
        )
        self._seen = 0
        self._settled = False
        self._text = bytearray()
        self._ended: list[object] = []
        """The end of a reply without content, from the event with its finish reason on."""

    def read(self, chunk: bytes) -> bool:
        """Read a chunk, and return whether enough was read."""
        if self._unpack is not None:
            try:
                chunk = self._unpack.decompress(chunk, _LONGEST_BEGINNING)
            except zlib.error:
                self._settled = True
                return True
        self._text += chunk
        self._seen += len(chunk)
        self._settled = self._take(chunk) or self._seen > _LONGEST_BEGINNING
        return self._settled

    def _take(self, chunk: bytes) -> bool:  # noqa: ARG002 - a document is judged at its end
        return False

    def end(self) -> None:
        """Judge the whole text that was read, after the last chunk of the body."""
        if not self._settled:
            self._judge(bytes(self._text))
        if self._ended and self.found is None:
            self.found = detect_empty_stream(self._ended)

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
        if ends_empty(data) or self._ended:
            self._ended.append(data)
            return False
        shows = has_content(data)
        self.shows = shows and not error_of(data)
        return shows


class EventWatch(DocumentWatch):
    """Reads server-sent events up to the first with visible content or an error.

    A server that has announced events and then fails may send a JSON document, which is read too.
    The format: https://html.spec.whatwg.org/multipage/server-sent-events.html.
    """

    is_document = None

    def __init__(self, packed: str = "") -> None:
        super().__init__(packed)
        self._fields: defaultdict[bytes, list[bytes]] = defaultdict(list)
        """The fields of the event that is being read, by name."""

    def _take(self, chunk: bytes) -> bool:
        if self.is_document is None:
            self._text = self._text.lstrip(_BLANK)
            if self._text:
                self.is_document = self._text.startswith((b"{", b"["))
        if self.is_document or not (b"\n" in chunk or b"\r" in chunk):
            return False
        lines = bytes(self._text).splitlines(keepends=True)
        # The last line may continue, and a ``\r`` at its end may be one half of ``\r\n``.
        rest = b"" if not lines or lines[-1].endswith(b"\n") else lines.pop()
        self._text = bytearray(rest)
        return any(map(self._line, lines))

    def _line(self, line: bytes) -> bool:
        name, _, value = line.partition(b":")
        if line.strip():
            self._fields[name].append(value.strip())
            return False
        fields = self._fields
        self._fields = defaultdict(list)
        data = b"\n".join(fields[b"data"])
        if data in (b"", b"[DONE]"):
            return bool(data) and not self._ended
        enough = self._judge(data)
        if b"error" not in fields[b"event"]:
            return enough
        # Such an event may have any data.
        self.shows = False
        self.found = self.found or detect_in_reply({"error": data.decode("utf-8", "replace")})
        return True

    def end(self) -> None:
        """End reading; the last event may lack its final blank line."""
        if not (self.is_document or self._settled):
            self._settled = True
            any(map(self._line, (*bytes(self._text).splitlines(), b"")))
        super().end()
