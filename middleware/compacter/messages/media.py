"""Weights of media in characters of text, and their placeholders in a transcript.

Providers charge for media by pixels, seconds or pages, not by the length of their base64 text. The weights are
estimates, with four characters per token:

* an image: 1,000 tokens (OpenAI's high-detail images run from 765 to about 1,500, Anthropic's up to 1,600);
  85 tokens where ``detail`` is ``"low"`` (OpenAI's documented price);
* audio and video: 25 tokens a second (audio 32, video about 260 at Gemini; compressed audio at 16 kB a
  second);
* a document: 1,600 tokens a page (Anthropic: 1,500 to 3,000), with 60 kB per page;
* encrypted reasoning (encrypted content, a signature): one character per byte of the decoded base64 text.
"""

from __future__ import annotations

IMAGE = 4_000
IMAGE_LOW_DETAIL = 340
_AUDIO_PER_SECOND = 100
_AUDIO_BYTES_PER_SECOND = 16_000
_PAGE = 6_400
_PAGE_BYTES = 60_000
UNKNOWN = 4_000


def weight(mime: str, bytes_: int | None = None, *, detail: str | None = None) -> int:
    """Return the weight of a medium of this MIME type, in characters; ``bytes_`` is its decoded size, if known."""
    kind = mime.partition("/")[0].lower()
    if kind == "image":
        return IMAGE_LOW_DETAIL if detail == "low" else IMAGE
    if kind in ("audio", "video"):
        known = bytes_ or 30 * _AUDIO_BYTES_PER_SECOND
        return max(_AUDIO_PER_SECOND, known * _AUDIO_PER_SECOND // _AUDIO_BYTES_PER_SECOND)
    if kind == "text":
        return bytes_ if bytes_ is not None else UNKNOWN
    if kind == "application":
        return max(1, -(-(bytes_ or 2 * _PAGE_BYTES) // _PAGE_BYTES)) * _PAGE
    return UNKNOWN


def decoded_size(data: str | bytes | bytearray) -> int:
    """Return the decoded size of base64 text, or the size of raw bytes, in bytes."""
    return len(data) * 3 // 4 if isinstance(data, str) else len(data)


def sealed(data: object) -> int:
    """Return the weight of encrypted base64 text or bytes, in characters; 0 for anything else."""
    return decoded_size(data) if isinstance(data, (str, bytes, bytearray)) else 0


def data_url(url: str) -> tuple[str, str] | None:
    """Return MIME type and base64 text of a ``data:`` URL, or ``None`` for any other URL."""
    if not url.startswith("data:"):
        return None
    head, _, body = url[5:].partition(",")
    return head.partition(";")[0] or "application/octet-stream", body


def placeholder(mime: str, data: str | bytes | bytearray | None = None, *, bytes_: int | None = None) -> str:
    """Return the text that replaces a medium for a summarizer: its type and size, without path or content."""
    size = decoded_size(data) if data else bytes_
    return f"[{mime or 'media'}, {size:,} bytes]" if size else f"[{mime or 'media'}]"
