"""Beginnings of streams that are no server-sent events: Gemini's JSON array, Ollama's lines, and
Bedrock's binary frames.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from json.decoder import JSONDecoder
from typing import Any

from botocore.eventstream import EventStreamBuffer, ParserError

from compacter.gateway.serve.answers import Opening, watch_events

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

    def __init__(self, packed: str) -> None:
        super().__init__(packed)
        self._frames = EventStreamBuffer()

    def _take(self, chunk: bytes) -> bool:
        self._frames.add_data(chunk)
        try:
            return any(self._frame(frame.headers, frame.payload) for frame in self._frames)
        except (ParserError, ValueError):  # It is something else.
            return True

    def _frame(self, headers: Mapping[str, Any], payload: bytes) -> bool:
        data = json.loads(payload or b"{}")
        if headers.get(":message-type") == "exception":
            return self.judge({"error": {"type": headers.get(":exception-type", ""), **data}})
        if "bytes" in data:
            return self.judge(json.loads(base64.b64decode(data["bytes"])))
        return self.judge({headers.get(":event-type", ""): data})
