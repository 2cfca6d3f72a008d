"""Refuse requests for another server, those that another site's web page made a browser send, and
WebSockets.
"""

from __future__ import annotations

from collections.abc import Callable, Container
from dataclasses import dataclass
from urllib.parse import quote, urlsplit

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from compacter.gateway.serve.upstream import Headers, climbs, is_loopback


@dataclass
class Guard:
    """ASGI middleware that answers three kinds of request with an error, and passes all others to
    ``app``.

    A request that is addressed to another server, or whose path has a segment ``..``, gets status
    400, because this server is not an open proxy. A request that a web page of another site made a
    browser send gets status 403. A request to open a WebSocket gets status 426.

    Args:
        app: ASGI application that handles the requests which are not refused.
        hosts: Function that takes the name in a request's ``Host`` header and returns whether it is
            a name of this server.
        origins: Function that returns the origins of other sites whose web pages may send requests.
        pages: Paths of the server's own pages. A link on any site may lead to one of them.
    """

    app: ASGIApp
    hosts: Callable[[str], bool]
    origins: Callable[[], frozenset[str]]
    pages: Container[str]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        handler = self.app
        if scope["type"] != "lifespan":
            handler = self._refusal(scope) or handler
        await handler(scope, receive, send)

    def _refusal(self, scope: Scope) -> ASGIApp | None:
        problem = self._problem(scope)
        if problem:
            return JSONResponse(error_body("not_a_proxy", problem), 400)
        is_link = scope["path"] in self.pages and scope.get("method") == "GET"
        if is_cross_site(scope["headers"], self.origins(), is_link=is_link):
            message = "a web page of another site may not use this server; see --allow-origin"
            return JSONResponse(error_body("cross_site", message), 403, {"connection": "close"})
        if scope["type"] == "websocket" or _upgrade(scope["headers"]) == b"websocket":
            # With this status Codex sends the same over HTTP at once; others it takes for faults of
            # the network, and tries again: https://www.rfc-editor.org/rfc/rfc9110#section-15.5.22.
            message = "compacter serve has no WebSockets: send the request over HTTP"
            headers = {"upgrade": "HTTP/1.1", "connection": "upgrade"}
            return JSONResponse(error_body("no_websockets", message), 426, headers)
        return None

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
        if not named and scope.get("http_version") == "1.0":
            return ""  # It had no such header yet. No browser sends this, but health checks do.
        if len(named) != 1 or not self.hosts(without_port(named[0])):
            return "the Host header does not name this server"
        return ""


def is_cross_site(headers: Headers, origins: frozenset[str], *, is_link: bool) -> bool:
    """Return whether a web page of another site made a browser send this request.

    A form or an image needs no consent of this server, and a page anywhere can aim one at
    ``127.0.0.1``; the browser then names its origin: https://fetch.spec.whatwg.org/#origin-header,
    https://www.w3.org/TR/fetch-metadata/. Pages of this machine, of this server's own address and
    of ``origins`` may, and so may programs (editors, extensions), whose origins are not web
    addresses. Whoever follows a link (``is_link``) leaves the other site.
    """
    said = {name: value.decode("latin-1").strip().lower() for name, value in headers}
    origin = said.get(b"origin")
    if origin is None:
        is_followed = is_link and said.get(b"sec-fetch-dest") == "document"
        return said.get(b"sec-fetch-site") == "cross-site" and not is_followed
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


def _upgrade(headers: Headers) -> bytes:
    """Return the protocol that a request asks for in place of HTTP, in lower case."""
    return next((value.strip().lower() for name, value in headers if name == b"upgrade"), b"")


def raw_path(scope: Scope) -> str:
    """Return the path with its percent-encoding, below the place where this application is
    mounted.
    """
    path = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogatepass")
    return str(path, "latin-1").removeprefix(quote(scope.get("root_path", "")))


def without_port(host: str) -> str:
    """Return the name in a ``Host`` header, in lower case."""
    name, colon, port = host.strip().lower().rpartition(":")
    return name if colon and port.isdigit() else host.strip().lower()


def error_body(code: str, message: str) -> dict[str, object]:
    """Return an error of this server, in a form that both OpenAI's and Anthropic's SDKs read."""
    error = {"type": "compacter_error", "code": code, "message": message}
    # Google's SDK for Python recognises an error in a stream by its first member.
    return {"error": error, "type": "error"}
