"""What is refused before anything else is done: requests for another server, and those that a web
page of somebody else made a browser send.
"""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import quote, urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from compacter.gateway.serve.upstream import Headers, climbs, is_loopback


class Guard:
    """Middleware that refuses requests for any other server: this is not an open proxy."""

    def __init__(self, app: ASGIApp, hosts: Callable[[str], bool]) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        problem = "" if scope["type"] == "lifespan" else self._problem(scope)
        await (error_response(400, "not_a_proxy", problem) if problem else self._app)(
            scope, receive, send
        )

    def _problem(self, scope: Scope) -> str:
        path = raw_path(scope)
        if not path.startswith("/") or scope.get("method") == "CONNECT":
            return (
                "compacter serve is not a proxy: send the path alone; requests go to the "
                "upstreams set at its start"
            )
        if climbs(path):
            return 'the path has a segment "." or ".."'
        named = [value.decode("latin-1") for name, value in scope["headers"] if name == b"host"]
        if len(named) != 1 or not self._hosts(without_port(named[0])):
            return "the Host header does not name this server"
        return ""


def is_cross_site(headers: Headers, origins: frozenset[str] = frozenset()) -> bool:
    """Return whether a web page of another site made a browser send this request.

    A form or an image needs no consent of this server, and a page anywhere can aim one at
    ``127.0.0.1``; the browser then says where it comes from:
    https://fetch.spec.whatwg.org/#origin-header, https://www.w3.org/TR/fetch-metadata/.
    Pages of this machine, of this server's own address and of ``origins`` may, and so may programs
    (editors, extensions), whose origins are no web addresses.
    """
    said = {name: value.decode("latin-1").strip().lower() for name, value in headers}
    origin = said.get(b"origin")
    if origin is None:
        return said.get(b"sec-fetch-site") == "cross-site"
    if origin in origins:
        return False
    scheme, _, _ = origin.partition("://")
    if scheme not in ("http", "https"):
        return "://" not in origin  # "null": a sandboxed frame of any page.
    try:
        host = urlsplit(origin).hostname or ""
    except ValueError:
        return True
    own = without_port(said.get(b"host", ""))
    return not (is_loopback(host) or host == own.strip("[]"))


def raw_path(scope: Scope) -> str:
    """Return the path as it was sent, with its percent-encoding, below the place where this
    application is mounted.
    """
    path = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogatepass")
    return str(path, "latin-1").removeprefix(quote(scope.get("root_path", "")))


def without_port(host: str) -> str:
    """Return the name in a ``Host`` header, in lower case."""
    name, colon, port = host.strip().lower().rpartition(":")
    return name if colon and port.isdigit() else host.strip().lower()


def error_response(
    status: int, code: str, message: str, headers: dict[str, str] | None = None
) -> JSONResponse:
    """Return an error of this server, in a form that both OpenAI's and Anthropic's SDKs read."""
    return JSONResponse(
        {"type": "error", "error": {"type": "compacter_error", "code": code, "message": message}},
        status,
        headers,
    )
