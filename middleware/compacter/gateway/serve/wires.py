"""Bodies whose options are nested: Gemini's, Ollama's and Bedrock's, as their servers take them.

The SDKs' arguments of the same names are read in `compacter.clients`; a body has no ``config``, and
Bedrock's and Gemini's name the model in the path.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from compacter.call.arguments import Args, Arguments, Binding, CallFacts, Options, Prompt
from compacter.clients.anthropic import Messages
from compacter.clients.bedrock import Converse
from compacter.messages.format import Message, MessageFormat

_OUTPUT = "max_output_tokens"
_SAMPLING = ("temperature", "topP", "topK", "seed", "top_p", "top_k")
# Members of `generationConfig` that a summary request leaves out, as it asks for plain text.
_NOT_FOR_TEXT = frozenset(
    {
        "responseMimeType",
        "responseSchema",
        "responseJsonSchema",
        "responseModalities",
        "stopSequences",
        "candidateCount",
        "responseLogprobs",
        "logprobs",
        "speechConfig",
        "imageConfig",
    }
)


@dataclass(frozen=True, slots=True)
class InPath(Binding):
    """Binding of a body whose model is in the path."""

    model: str | None = None

    def read(self, args: Args, kwargs: Options) -> CallFacts:
        """Read the body, with the path's model."""
        facts = Binding.read(self, args, kwargs)
        return facts if self.model is None else replace(facts, model=self.model)


@dataclass(frozen=True, slots=True)
class Gemini(InPath):
    """Body of ``generateContent``: https://ai.google.dev/api/generate-content."""

    def options(self, kwargs: Options) -> Options:
        """Return the options that are read, by the names that the SDK has for them."""
        found: dict[str, Any] = {
            "tools": kwargs.get("tools"),
            "system_instruction": _either(kwargs, "systemInstruction"),
        }
        limit = _either(_generation(kwargs), "maxOutputTokens")
        return found if limit is None else {**found, _OUTPUT: limit}

    def replace(
        self, args: Args, kwargs: Options, messages: Sequence[Message], options: Options
    ) -> Arguments:
        """Return the body with other contents, and another output limit."""
        changed = {**kwargs, "contents": messages}
        if _OUTPUT in options:
            changed = _with_generation(
                changed, {**_generation(kwargs), "maxOutputTokens": options[_OUTPUT]}
            )
        return args, changed

    def summary_call(
        self, args: Args, kwargs: Options, wire: MessageFormat, prompt: Prompt, limit: int
    ) -> Arguments:
        """Return a body with the call's sampling and safety settings alone."""
        messages, extra = wire.prompt(prompt)
        given = _generation(kwargs)
        generation = {name: given[name] for name in _SAMPLING if name in given}
        thinking = given.get("thinkingConfig") or {}
        if thinking.get("thinkingBudget") == 0:
            generation["thinkingConfig"] = thinking
        body: dict[str, Any] = {"contents": messages}
        instruction = extra.get("system_instruction")
        if instruction is not None:
            parts = [{"text": instruction}] if isinstance(instruction, str) else instruction
            body["systemInstruction"] = {"parts": parts} if isinstance(parts, list) else parts
        if "safetySettings" in kwargs:
            body["safetySettings"] = kwargs["safetySettings"]
        return args, _with_generation(body, {**generation, "maxOutputTokens": limit})

    def native_call(
        self,
        args: Args,
        kwargs: Options,
        wire: MessageFormat,
        prefix: Sequence[Message],
        instruction: str,
        limit: int,
    ) -> Arguments:
        """Return the body with another end, plain text output, and no forced function call."""
        given = _generation(kwargs)
        generation = {name: value for name, value in given.items() if name not in _NOT_FOR_TEXT}
        budget = (given.get("thinkingConfig") or {}).get("thinkingBudget")
        more = budget if isinstance(budget, int) and budget > 0 else 0
        contents = [*prefix, wire.say("user", instruction)]
        body = _with_generation(
            {**kwargs, "contents": contents}, {**generation, "maxOutputTokens": limit + more}
        )
        choice = _either(_either(body, "toolConfig") or {}, "functionCallingConfig") or {}
        if choice.get("mode") == "ANY":
            body = {name: value for name, value in body.items() if _camel(name) != "toolConfig"}
        return args, body


def _generation(body: Mapping[str, Any]) -> dict[str, Any]:
    found = _either(body, "generationConfig")
    return {_camel(name): value for name, value in (found or {}).items()}


def _with_generation(body: Mapping[str, Any], generation: dict[str, Any]) -> dict[str, Any]:
    kept = {name: value for name, value in body.items() if _camel(name) != "generationConfig"}
    return {**kept, "generationConfig": generation}


def _either(body: Mapping[str, Any], name: str) -> Any:
    """Return a member that may be spelt in snake case."""
    return next((value for key, value in body.items() if _camel(key) == name), None)


def _camel(name: str) -> str:
    head, *rest = name.split("_")
    return head + "".join(map(str.capitalize, rest))


@dataclass(frozen=True, slots=True)
class Ollama(Binding):
    """Body of ``/api/chat``: https://docs.ollama.com/api/chat. The output limit and the window are
    in ``options``.
    """

    def options(self, kwargs: Options) -> Options:
        """Return the body's members together with those of ``options``."""
        inner = kwargs.get("options")
        return {**kwargs, **inner} if isinstance(inner, dict) else kwargs

    def replace(
        self, args: Args, kwargs: Options, messages: Sequence[Message], options: Options
    ) -> Arguments:
        """Return the body with other messages, and other members in ``options``."""
        changed = {**kwargs, "messages": messages}
        if options:
            changed["options"] = {**(kwargs.get("options") or {}), **options}
        return args, changed

    def summary_call(
        self, args: Args, kwargs: Options, wire: MessageFormat, prompt: Prompt, limit: int
    ) -> Arguments:
        """Return a body with the call's window, sampling and life time of the model alone."""
        messages, _ = wire.prompt(prompt)
        return args, self._asking(kwargs, messages, limit, ("model", "keep_alive", "truncate"))

    def native_call(
        self,
        args: Args,
        kwargs: Options,
        wire: MessageFormat,
        prefix: Sequence[Message],
        instruction: str,
        limit: int,
    ) -> Arguments:
        """Return the body with another end, and plain text output."""
        messages = [*prefix, wire.say("user", instruction)]
        return args, self._asking(
            kwargs, messages, limit, ("model", "keep_alive", "truncate", "tools", "think")
        )

    @staticmethod
    def _asking(
        kwargs: Options, messages: Sequence[Message], limit: int, kept: Sequence[str]
    ) -> dict[str, Any]:
        body = {name: kwargs[name] for name in kept if name in kwargs}
        inner = dict(kwargs.get("options") or {})
        inner.pop("stop", None)
        # A body without ``stream`` asks for a stream.
        return {
            **body,
            "messages": messages,
            "stream": False,
            "options": {**inner, "num_predict": limit},
        }


def completion_of(reply: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return Ollama's reply as a chat completion."""
    usage = {
        "prompt_tokens": reply.get("prompt_eval_count", 0),
        "completion_tokens": reply.get("eval_count", 0),
    }
    choice = {"message": reply.get("message"), "finish_reason": reply.get("done_reason")}
    return {"choices": [choice], "usage": usage} if "message" in reply else reply


@dataclass(frozen=True, slots=True)
class BedrockConverse(Converse):
    """Body of ``converse``: its arguments without the model."""

    model: str | None = None

    def read(self, args: Args, kwargs: Options) -> CallFacts:
        """Read the body, with the path's model."""
        return replace(Converse.read(self, args, kwargs), model=self.model)


@dataclass(frozen=True, slots=True)
class BedrockInvoke(Messages):
    """Body of ``invoke`` for Anthropic's models: that of their own API, with a version."""

    model: str | None = None

    def read(self, args: Args, kwargs: Options) -> CallFacts:
        """Read the body, with the path's model."""
        return replace(Messages.read(self, args, kwargs), model=self.model)

    def summary_call(
        self, args: Args, kwargs: Options, wire: MessageFormat, prompt: Prompt, limit: int
    ) -> Arguments:
        """Return a body that has the version too."""
        args, body = Messages.summary_call(self, args, kwargs, wire, prompt, limit)
        kept = ("anthropic_version", "anthropic_beta")
        return args, {**body, **{name: kwargs[name] for name in kept if name in kwargs}}
