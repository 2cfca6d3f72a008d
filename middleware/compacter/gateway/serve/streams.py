"""Beginnings of streams that are no server-sent events: Gemini's JSON array, Ollama's lines, and
Bedrock's binary frames.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import struct
from json.decoder import JSONDecoder

from compacter.gateway.serve.answers import Opening, watch_events

# Bytes before a frame's headers: two lengths and a checksum.
_PRELUDE = 12
# Largest frame that the encoding allows, in bytes; a longer one is none of its frames.
_LARGEST_FRAME = 16 << 20
# Type of a header whose value is a text; those that matter are of this type.
_STRING = 7
_DECODER = JSONDecoder()
_BETWEEN = re.compile(r"[\s,]*")


def watch_gemini(kind: str, packed: str) -> Opening | None:
    """Return the reader for a stream of Gemini's: events, or, without ``alt=sse``, an array."""
    return watch_events(kind, packed) or (ArrayOpening(packed) if "json" in kind else None)


def watch_ollama(kind: str, packed: str) -> Opening | None:
    """Return the reader for lines of JSON."""
    return LinesOpening(packed) if "ndjson" in kind else None


def watch_bedrock(kind: str, packed: str) -> Opening | None:
    """Return the reader for frames: https://smithy.io/2.0/aws/amazon-eventstream.html."""
    return FramesOpening(packed) if "vnd.amazon.eventstream" in kind else None


class ArrayOpening(Opening):
    """Reads the elements of a JSON array as they come, or one object."""

    def _take(self, chunk: bytes) -> bool:  # noqa: ARG002 - all of the text so far is read
        text = self._text.decode("utf-8", "ignore").lstrip()
        is_array = text.startswith("[")
        at = int(is_array)
        while True:
            between = _BETWEEN.match(text, at)
            try:
                element, at = _DECODER.raw_decode(text, between.end() if between else at)
            except ValueError:  # It has not come completely.
                return False
            if self.judge(element) or not is_array:
                return True


class LinesOpening(Opening):
    """Reads lines of JSON."""

    def _take(self, chunk: bytes) -> bool:  # noqa: ARG002 - all of the text so far is read
        *lines, rest = bytes(self._text).split(b"\n")
        self._text = bytearray(rest)
        return any(self._judge(line) for line in lines if line.strip())


class FramesOpening(Opening):
    """Reads binary frames, of Converse and of InvokeModel."""

    def _take(self, chunk: bytes) -> bool:  # noqa: ARG002 - all of the text so far is read
        while len(self._text) >= _PRELUDE:
            size, named = struct.unpack(">II", self._text[:8])
            if not _PRELUDE + named + 4 <= size <= _LARGEST_FRAME:
                return True
            if len(self._text) < size:
                return False
            frame = bytes(self._text[:size])
            del self._text[:size]
            headers = _headers(frame[_PRELUDE : _PRELUDE + named])
            if self._frame(headers, frame[_PRELUDE + named : size - 4]):
                return True
        return False

    def _frame(self, headers: dict[str, str], payload: bytes) -> bool:
        try:
            data = json.loads(payload or b"{}")
            if headers.get(":message-type") == "exception":
                kind = headers.get(":exception-type", "")
                return self.judge({"error": {"type": kind, **data}})
            if "bytes" in data:
                return self.judge(json.loads(base64.b64decode(data["bytes"])))
        except (ValueError, TypeError, binascii.Error):
            return True
        return self.judge({headers.get(":event-type", ""): data})


def _headers(data: bytes) -> dict[str, str]:
    found = {}
    at = 0
    while at < len(data):
        end = at + 1 + data[at]
        name = data[at + 1 : end].decode("utf-8", "replace")
        if data[end : end + 1] != bytes([_STRING]) or end + 3 > len(data):
            break
        size = int.from_bytes(data[end + 1 : end + 3], "big")
        at = end + 3 + size
        found[name] = data[end + 3 : at].decode("utf-8", "replace")
    return found
