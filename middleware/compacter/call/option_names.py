"""Names of the arguments and options of the providers' APIs, and whether a request for a summary
keeps each.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from compacter.messages.fields import dig, field


def _names(*groups: str) -> frozenset[str]:
    return frozenset(" ".join(groups).split())


MESSAGE_PARAMS = ("messages", "input", "contents")
PARAM_OF = {"responses": "input", "gemini": "contents"}
"""Name of the messages argument by wire format, if it is not ``messages``."""
OUTPUT_PARAMS = (
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "max_new_tokens",
    "num_predict",
    "maxTokens",
)
_OTHER_NAMES = {"max_tokens": "max_completion_tokens", "max_completion_tokens": "max_tokens"}
_NUMBER = re.compile(r"\b\d{3,7}\b")
_STREAM = re.compile(r"\bstream(?:ing)?\b", re.IGNORECASE)
# A name that an error is about: in quotes, after a colon, or as the value of `param`.
_QUOTED = r"(?:['\"`]|: ){}(?:['\"`.\s]|$)"
BESIDE = _names(
    "tools functions toolConfig prompt",
    "system instructions system_instruction",
    "response_format text_format response_schema response_json_schema",
)
"""Options whose content is part of the prompt."""
PLACES = (
    "base_url",
    "api_base",
    "api_version",
    "custom_llm_provider",
    "region_name",
    "aws_region_name",
    "deployment_id",
    "betas",
    "anthropic_beta",
    "additionalModelRequestFields.anthropic_beta",
    "extra_headers.anthropic-beta",
    "headers.anthropic-beta",
    "extra_body.provider",
    "extra_body.models",
    "extra_body.options.num_ctx",
    "extra_body.num_ctx",
    "num_ctx",
)
"""Paths of the options of a call that select another server than the client's, or another context
window. A memory separates conversations by server, so each vendor's name for an address is here."""
INNER = ("extra_body", "additionalModelRequestFields")
"""Options that have options of the same kind as members, each of which is decided on by itself."""
NOT_FOR_NATIVE = _names(
    # Form and end of the reply.
    "response_format text_format text output_format modalities audio prediction n logprobs",
    "top_logprobs include moderation max_tool_calls stop stop_sequences stopSequences",
    "response_schema response_json_schema response_mime_type response_modalities outputConfig",
    "candidate_count response_logprobs speech_config image_config generation_output_config",
    "audio_transcription_config additionalModelResponseFieldPaths trace",
    # The same of servers of open models.
    "format guided_json guided_regex guided_choice guided_grammar structured_outputs grammar",
    "json_schema regex ebnf min_tokens ignore_eos stop_token_ids echo best_of",
    "add_generation_prompt continue_final_message prefill",
    # Streaming.
    "stream stream_options background continuation_token automatic_continuation",
    # State of the conversation on the server; storage, ids and fallbacks of the call.
    "thread previous_response_id conversation compaction truncation transforms store",
    "litellm_metadata diagnostics fallbacks fallback_credit_token requestMetadata",
    "context_window_fallback_dict litellm_call_id litellm_logging_obj completion_call_id",
    "should_return_http_response",
)
"""Options that are left out of every request for a summary."""
LEFT_OUT = NOT_FOR_NATIVE | _names(
    *OUTPUT_PARAMS,
    # Tools, and what looks something up.
    "tools tool_choice parallel_tool_calls functions function_call mcp_servers container",
    "web_search_options multi_agent include_server_side_tool_invocations toolConfig tool_config",
    "automatic_function_calling plugins web_search enable_search search_options",
    "search_parameters data_sources documents",
    # Reasoning and style.
    "reasoning_effort reasoning thinking think thinking_config frequency_penalty",
    "presence_penalty logit_bias speed verbosity output_config enable_json_schema_validation",
    "parse_as image",
    # Prompt of the conversation, and its caching.
    "system system_instruction instructions prompt prompt_id prompt_variables prompt_version",
    "prompt_label promptVariables context_management cache_control cached_content",
    "background_options safety_identifier audio_timestamp media_resolution",
    "enable_enhanced_civic_answers",
)
"""Options that are left out of a request to summarize a transcript, by their names in any vendor's
API; all others go along, as the request must go where the call goes. A request that continues the
call's messages leaves out ``NOT_FOR_NATIVE`` alone: the others are part of the provider's cached
prompt."""
THINKING = (
    "thinking.budget_tokens",
    "config.thinking_config.thinking_budget",
    "additionalModelRequestFields.thinking.budget_tokens",
)
"""Paths to the largest number of tokens that the model may think."""
_OFF: Mapping[str, tuple[object, ...]] = {
    "store": (False,),
    "thinking.type": ("disabled",),
    "thinking_config.thinking_budget": (0,),
    "think": (False,),
    "reasoning.effort": ("none", "minimal"),
    "reasoning.enabled": (False,),
    "reasoning_effort": ("none", "minimal"),
}
# Path in an option -> the value there that disables something.


@dataclass(frozen=True, slots=True)
class Form:
    """Form in which a server takes requests for summaries, where it has refused another one."""

    limit: str | None = None
    """Name of the output limit; ``None`` for the usual one, "" for none."""
    most: int | None = None
    """Largest output limit, in tokens."""
    streams: bool = False
    """Whether the reply must be a stream."""
    without: frozenset[str] = frozenset()
    """Options of the call that are left out."""


USUAL = Form()


def other_form(said: str, form: Form, name: str, limit: int, options: Iterable[str]) -> Form | None:
    """Return a form that a server may take, after it has refused a request for a summary; ``None``
    if the refusal names nothing of its form.

    Args:
        said: Text of the refusal.
        form: Form of the request.
        name: Its option for the output limit.
        limit: The limit, in tokens.
        options: Names of its other options, taken over from the call.
    """
    named = [each for each in OUTPUT_PARAMS if each in said]
    others = [each for each in named if each != name]
    stated = [int(number) for number in _NUMBER.findall(said) if int(number) < limit]
    if _STREAM.search(said) and not form.streams:
        return replace(form, streams=True)
    if stated and named and not others:
        return replace(form, limit=name, most=max(stated))
    if named:
        return replace(form, limit=next(iter(others), _OTHER_NAMES.get(name, "")), most=None)
    refused = {each for each in options if re.search(_QUOTED.format(re.escape(each)), said)}
    return replace(form, without=form.without | refused) if refused else None


def is_off_switch(name: str, value: object) -> bool:
    """Return whether an option disables something that must stay disabled in a request for a
    summary.
    """
    return any(
        path.partition(".")[0] == name and dig({name: value}, path) in off
        for path, off in _OFF.items()
    )


def forces_call(name: str, value: object) -> bool:
    """Return whether an option is a ``tool_choice`` that forces the model to call a tool."""
    kind = field(value, "type") if isinstance(value, Mapping) else value
    return name == "tool_choice" and kind not in (None, "auto", "none")
