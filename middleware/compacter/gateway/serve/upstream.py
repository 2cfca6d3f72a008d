"""Targets of requests: the configured upstreams, and no other server.

A program uses ``http://127.0.0.1:PORT`` like the upstream, with its paths: for
``https://api.openai.com/v1``, both ``/v1/models`` and ``/models`` mean
``https://api.openai.com/v1/models``. A host named by a request (in its ``Host`` header, or in a URL
instead of a path) never decides where it goes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes, urlsplit

from compacter.errors import ConfigurationError

if TYPE_CHECKING:
    import httpx

Headers = Sequence[tuple[bytes, bytes]]
"""Pairs of a header's lower-case name and its value."""

_NAMED = re.compile(r"([a-z0-9][a-z0-9-]{0,30})=(?=https?://)", re.IGNORECASE)
_VERSION = re.compile(r"/v\d{1,3}")
# Hop-by-hop headers: https://www.rfc-editor.org/rfc/rfc9110#section-7.6.1.
_HOP_BY_HOP = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)


@dataclass(frozen=True)
class Upstream:
    """A server that requests may go to."""

    base_url: str
    """URL without a trailing slash."""
    name: str = ""
    """First segment of the paths that go there; empty if all do."""

    @classmethod
    def parse(cls, text: object) -> Upstream:
        """Return the upstream of ``URL`` or ``NAME=URL``. Raises ``ConfigurationError``."""
        import httpx  # It is part of the extra.

        written = text if isinstance(text, str) else ""
        named = _NAMED.match(written)
        given = written[named.end() if named else 0 :].rstrip("/")
        # The error does not repeat a URL that may contain a password.
        if re.search("[@?#]", given):
            raise ConfigurationError(
                "upstream takes a URL without a user, a query or a fragment; keys go in headers"
            )
        try:
            url = httpx.URL(given)  # A path or a name in letters of any language is encoded.
        except httpx.InvalidURL:
            url = httpx.URL("")
        if url.scheme not in ("http", "https") or not url.host or re.search(r"\s|%20", url.host):
            raise ConfigurationError(
                f"upstream takes a URL such as https://api.openai.com/v1, not {text!r}"
            )
        return cls(str(url), named[1].lower() if named else "")

    def tail(self, path: str) -> str:
        """Return the part of a request's path that follows the upstream's own."""
        own = urlsplit(self.base_url).path
        version = _VERSION.search(own[own.rfind("/") :]) if own else None
        for start in (own, version[0] if version else ""):
            if start and (path == start or path.startswith(f"{start}/")):
                return path[len(start) :]
        return path

    def url(self, tail: str, query: str = "") -> httpx.URL:
        """Return the URL of a tail. Its host and port are always the upstream's."""
        path = f"{urlsplit(self.base_url).path}{tail}" or "/"
        return _parsed(self.base_url).copy_with(
            raw_path=(f"{path}?{query}" if query else path).encode("ascii")
        )


@cache
def _parsed(base_url: str) -> httpx.URL:
    import httpx

    return httpx.URL(base_url)


def parse_upstreams(given: object) -> tuple[Upstream, ...]:
    """Return the parsed upstreams, the named ones first. Raises ``ConfigurationError``."""
    several = given if isinstance(given, Iterable) and not isinstance(given, str) else [given]
    found = [Upstream.parse(one) for one in several]
    if not found:
        raise ConfigurationError(
            "upstream takes at least one URL, such as https://api.openai.com/v1"
        )
    names = [one.name for one in found]
    if len(set(names)) < len(names):
        raise ConfigurationError(
            "several upstreams need a name each: openai=https://api.openai.com/v1, and so on"
        )
    return tuple(sorted(found, key=lambda one: not one.name))


def climbs(path: str) -> bool:
    """Return whether a path has a segment ``.`` or ``..``, also in a form that another server may
    decode to one: encoded more than once, in two bytes, or with parameters (``..;a=b``).
    """
    if "." not in path and "%" not in path:
        return False
    raw = path.encode("utf-8", "surrogatepass")
    for _ in range(4):  # No server decodes more often.
        raw = unquote_to_bytes(raw)
    raw = re.sub(rb"\xc0\xae", b".", raw)
    return any(
        re.fullmatch(rb"\.\.?[\x00-\x20]*(?:;.*)?", part, re.DOTALL)
        for part in re.split(rb"[/\\]|\xc0\xaf", raw)
    )


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is this machine's loopback."""
    host = host.strip("[]").lower()
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def end_to_end(
    headers: Iterable[tuple[bytes, bytes]], *dropped: bytes
) -> list[tuple[bytes, bytes]]:
    """Return the headers without hop-by-hop headers and those in ``dropped``.

    Of a message with both lengths only the chunks count, so its ``Content-Length`` goes too:
    https://www.rfc-editor.org/rfc/rfc9112#section-6.3.
    """
    found = [(name.lower(), value) for name, value in headers]
    named = {
        part.strip().lower()
        for name, value in found
        if name == b"connection"
        for part in value.split(b",")
    }
    gone = _HOP_BY_HOP | named | set(dropped)
    if any(name == b"transfer-encoding" for name, _ in found):
        gone |= {b"content-length"}
    return [(name, value) for name, value in found if name not in gone]
