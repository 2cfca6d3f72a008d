"""Identify the sender of a request: callers who can be distinguished never share a summary.

A caller is known by the headers and query parameters that carry a key or name an account, and by
the user that the body names. Servers and gateways invent such names freely (``api-key``,
``helicone-auth``, ``ocp-apim-subscription-key``), so they are recognised by their parts. If a name
is recognised by mistake, a caller pays at most for another summary; if a name is missed, a caller
gets a summary of another's.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Literal
from urllib.parse import parse_qsl

from compacter.gateway.serve.upstream import Headers

# End of a part of a name that carries a credential: `apikey`, `accessToken`, `x-amz-security-
# token`.
_CARRIES_A_KEY = re.compile(
    r"(?:key|token|auth|authorization|secret|passw(?:or)?d|credentials?|cookie|jwt|cert)$"
)
# Parts of a name that identify an account, a project or a person.
_ACCOUNTS = frozenset(
    (
        "user",
        "customer",
        "account",
        "tenant",
        "team",
        "org",
        "organization",
        "organisation",
        "project",
        "workspace",
    )
)
# Names that look like these and identify nobody; the one for a proxy ends at this server.
_OTHER = frozenset(
    ("user-agent", "sec-websocket-key", "proxy-authorization", "x-csrf-token", "x-xsrf-token")
)
# Parts of a name whose key or token belongs to one request (`idempotency-key`, `x-max-tokens`).
_OF_A_REQUEST = frozenset(("idempotency", "cache", "page", "max"))
# Headers in which a proxy names the address of its client.
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")
# A signature differs for each request; the id of its key does not.
_SIGNED = re.compile(rb"AWS4-[A-Z0-9-]+ .*?Credential=([^/,\s]{1,256})")
CONNECTION = "compacter.connection"
"""Key in an ASGI scope's ``state`` of the name of a connection."""

Keyless = Literal["connection", "shared"]


@dataclass(frozen=True, slots=True)
class Callers:
    """Identifies the caller of each request, so that no caller gets the summary of another one.

    Args:
        named: Names, in lower case, of further headers or query parameters that identify callers.
        keyless: How far summaries of callers without a key are shared: ``connection`` within one
            connection, ``shared`` among all such callers (for a machine with one user).
    """

    named: frozenset[str] = frozenset()
    keyless: Keyless = "connection"

    def digest(
        self,
        headers: Headers,
        query: str = "",
        body: Mapping[str, Any] | None = None,
        scope: Mapping[str, Any] | None = None,
    ) -> str:
        """Return a digest that identifies a request's caller, without any key in it."""
        pairs = [(name.decode("latin-1").lower(), value) for name, value in headers]
        pairs += [
            (name.lower(), value.encode("utf-8", "surrogatepass"))
            for name, value in parse_qsl(query, keep_blank_values=True)
        ]
        marks = [(name, _stable(value)) for name, value in pairs if self._identifies(name)]
        marks += [("body", user.encode("utf-8", "surrogatepass")) for user in _users(body or {})]
        if not marks and self.keyless == "connection":
            marks = [(name, value) for name, value in pairs if name in _FORWARDED]
            marks.append(("connection", _connection(scope or {})))
        return _digest(marks)

    def _identifies(self, name: str) -> bool:
        if name in self.named:
            return True
        parts = re.split(r"[-_.]", name)
        if name in _OTHER or not _OF_A_REQUEST.isdisjoint(parts):
            return False
        return any(part in _ACCOUNTS or _CARRIES_A_KEY.search(part) for part in parts)


def _stable(value: bytes) -> bytes:
    signed = _SIGNED.match(value)
    return value if signed is None else signed[1]


def _users(body: Mapping[str, Any]) -> Iterable[str]:
    """Yield the end user that a body names: in OpenAI's form, in its newer one, in Anthropic's."""
    metadata = body.get("metadata")
    beside = metadata.get("user_id") if isinstance(metadata, dict) else None
    for user in (body.get("user"), body.get("safety_identifier"), beside):
        if isinstance(user, (str, int)):
            yield str(user)


def _connection(scope: Mapping[str, Any]) -> bytes:
    """Return the name of a connection; a random value if the server gives none, so that nothing is
    shared.
    """
    known = (scope.get("state") or {}).get(CONNECTION)
    return str(known or secrets.token_hex(16)).encode()


def _digest(pairs: Iterable[tuple[str, bytes]]) -> str:
    digest = blake2b(digest_size=16, person=b"compacter caller")
    for name, value in sorted(pairs):
        digest.update(b"%d %d " % (len(name.encode()), len(value)) + name.encode() + value)
    return digest.hexdigest()
