"""The providers' own compaction for the scripted server: Anthropic's on demand, with thinking that
is bound to what stands before it, and OpenAI's ``/responses/compact``.

Sources: https://platform.claude.com/docs/en/build-with-claude/compaction-on-demand and
https://platform.openai.com/docs/api-reference/responses/compact.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

from tests.kit.server import Server

from compacter.testing.server import _Handler

if TYPE_CHECKING:
    from collections.abc import Iterable

    from compacter.testing.server import Body, Event

BETA = "compact-2026-09-04"
SUMMARY = "They looked up pier after pier; the harbour was painted blue."
_FORBIDDEN = ("context_management", "stop_sequences", "stream")


class CompactingServer(Server):
    """A server that compacts. ``failure`` is its answer to a request for a compaction: a status and
    an error's type and message, or a body; ``thinks`` makes each reply of Anthropic's begin with
    thinking.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.failure: tuple[int, Body] | None = None
        self.thinks = False
        self.reply: Any = "ok"
        self.betas = ""
        self.seen: list[tuple[str, Body, str]] = []
        """Path, body and betas of each request."""
        self._before: dict[str, str] = {}
        """By the signature of a block: the messages that it stands for."""
        self._http.RequestHandlerClass = _WithBetas

    def requests(self, *, compacting: bool) -> list[Body]:
        """Bodies of the requests for a compaction, or of all others."""
        return [
            body
            for path, body, _ in self.seen
            if (path.endswith("/compact") or "compaction" in body) is compacting
        ]

    def answer(self, path: str, text: bytes) -> tuple[int, Body | Iterable[Event]]:
        body = json.loads(text)
        betas = self.betas
        self.seen.append((path, body, betas))
        asks = path.endswith("/compact") or "compaction" in body
        if asks and self.failure is not None:
            return self.failure
        if path == "/responses/compact":
            return self._compact(body)
        if path != "/messages":
            return super().answer(path, text)
        fault = self._fault(body, betas)
        if fault:
            error = {"type": "invalid_request_error", "message": fault}
            return 400, {"type": "error", "error": error}
        if asks:
            return self._summarize(body)
        status, answer = super().answer(path, _without_sealed(body))
        if self.thinks and status == 200 and isinstance(answer, dict):
            thought = {"type": "thinking", "thinking": "Hm.", "signature": ""}
            thought["signature"] = self._signature(body["messages"])
            replied: Any = answer
            replied["content"].insert(0, thought)
        return status, answer

    # -- OpenAI ------------------------------------------------------------------------------------

    def _compact(self, body: Body) -> tuple[int, Body]:
        users = [item for item in body["input"] if item.get("role") == "user"]
        sealed = {"id": "cmp_1", "type": "compaction", "encrypted_content": "c2VhbGVk" * 9}
        return 200, {
            "id": "resp_c",
            "object": "response.compaction",
            "created_at": 1,
            "output": [*({**user, "id": f"m{at}"} for at, user in enumerate(users)), sealed],
            "usage": {"input_tokens": 700, "output_tokens": 70, "total_tokens": 770},
        }

    # -- Anthropic ---------------------------------------------------------------------------------

    def _summarize(self, body: Body) -> tuple[int, Body]:
        signature = self._signature(body["messages"])
        self._before[signature] = self._canonical(body["messages"])
        used = {"type": "compaction", "input_tokens": 700, "output_tokens": 70}
        return 200, {
            "id": "msg_c",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [{"type": "compaction", "content": SUMMARY, "signature": signature}],
            "stop_reason": "compaction",
            "stop_sequence": None,
            "usage": {"input_tokens": 0, "output_tokens": 0, "iterations": [used]},
        }

    def _fault(self, body: Body, betas: str) -> str:
        messages = body["messages"]
        blocks = [
            (at, place, block)
            for at, message in enumerate(messages)
            if not isinstance(message["content"], str)
            for place, block in enumerate(message["content"])
        ]
        compactions = [found for found in blocks if found[2]["type"] == "compaction"]
        if (compactions or "compaction" in body) and BETA not in betas.split(","):
            return f"compaction: requires anthropic-beta: {BETA}"
        if "compaction" in body and any(name in body for name in _FORBIDDEN):
            return "compaction cannot be combined with another parameter"
        if [found[:2] for found in compactions] not in ([], [(0, 0)]):
            return "compaction_block_misplaced"
        for _, _, block in compactions:
            if set(block) != {"type", "content", "signature"} or block["content"] != SUMMARY:
                return "compaction_content_mismatch"
            if block["signature"] not in self._before:
                return "compaction_signature_invalid"
        for at, place, block in blocks:
            bound = block["type"] == "thinking" and self.thinks
            if bound and block["signature"] != self._signature(messages[:at]):
                return (
                    f"messages.{at}.content.{place}: Invalid `signature` in `thinking` block. "
                    "The block is bound to a different conversation"
                )
        return ""

    def _signature(self, messages: list[Body]) -> str:
        return hashlib.sha256(self._canonical(messages).encode()).hexdigest()

    def _canonical(self, messages: list[Body]) -> str:
        """The messages with all that a block stands for in its place; neighbours of one role are
        one.
        """
        read = ""
        role = ""
        for message in messages:
            content = message["content"]
            blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
            for block in blocks:
                if block["type"] == "compaction":
                    read = self._before[block["signature"]]
                    role = (
                        "assistant" if read.rfind("\nassistant") > read.rfind("\nuser") else "user"
                    )
                    continue
                read += f"\n{message['role']}" * (message["role"] != role)
                role = message["role"]
                plain = {name: block[name] for name in sorted(block) if name != "cache_control"}
                read += json.dumps(plain)
        return read


def _without_sealed(body: Body) -> bytes:
    """The request as the scripted model reads it: without blocks that it does not know."""
    messages = []
    for message in body["messages"]:
        content = message["content"]
        if not isinstance(content, str):
            content = [
                {"type": "text", "text": block["content"]}
                if block["type"] == "compaction"
                else block
                for block in content
                if block["type"] != "thinking"
            ]
        messages.append({**message, "content": content})
    return json.dumps({**body, "messages": messages}).encode()


class _WithBetas(_Handler):
    def do_POST(self) -> None:  # noqa: N802
        server: Any = self.server
        server.owner.betas = self.headers.get("anthropic-beta") or ""
        super().do_POST()
