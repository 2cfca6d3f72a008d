"""Labels around the lines that compacter quotes, and the tag line by which it knows its own texts
again.
"""

from __future__ import annotations

from hashlib import blake2b

SUMMARY_TAG = "[compacter: summary of what came before]"
"""Beginning of the first line of every summary message; a checksum follows."""
# Bytes of the checksum, written as twice as many characters: enough to distinguish our texts from
# similar ones.
_CHECKSUM_BYTES = 4

NAMES = "Names in earlier tool calls"
WORK = "Newest list of work"
"""Labels of lines that compacter makes of tool calls, in place of a speaker."""
SINCE = "Said after the user's next message:"
"""Line between the quotes from before a message that stays behind the summary, and those from after
it."""
INDENT = "\n  "
"""Begins the further lines of an entry, unlike those of a frame."""


def checksum(body: str) -> str:
    """Return a checksum of a text, in hexadecimal digits."""
    digest = blake2b(
        body.encode("utf-8", "surrogatepass"), digest_size=_CHECKSUM_BYTES, person=b"compacter"
    )
    return digest.hexdigest()


def seal(tag: str, body: str) -> str:
    """Return ``body`` below a first line that has ``tag`` and a checksum of ``body``. compacter
    recognizes its own texts by this line.
    """
    return f"{tag} {checksum(body)}\n{body}"


def body_of(text: str, tag: str) -> str | None:
    """Return the body of a text that ``seal`` has made with this tag; ``None`` for any other."""
    if not text.startswith(tag):
        return None
    body = text.partition("\n")[2]
    return body if seal(tag, body) == text else None
