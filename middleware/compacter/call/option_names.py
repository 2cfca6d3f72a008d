"""Names of the arguments and options of the providers' APIs, and whether a request for a summary
keeps each.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

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
CARRIED = _names(
    *(place for place in PLACES if "." not in place),
    # Model, key and account.
    "self model model_id modelId deployment_id client api_key api_type organization project",
    "workspace_id user_profile_id billing_policy inference_geo access_programs model_list",
    "litellm_credential_name ssl_verify shared_session",
    # Timeouts and retries.
    "timeout request_timeout max_retries num_retries retry_strategy",
    # Headers and query parameters.
    "headers extra_headers extra_query betas anthropic_version anthropic_beta http_options",
    "contentType accept",
    # Price and cache.
    "service_tier prompt_cache_key prompt_cache_options prompt_cache_retention cache caching",
    "serviceTier performanceConfig performanceConfigLatency",
    # Sampling and guardrails.
    "temperature top_p topP top_k seed safety_settings model_armor_config",
    "guardrailConfig guardrailIdentifier guardrailVersion",
    # litellm's handling of these options, and its mock replies.
    "drop_params additional_drop_params allowed_openai_params mock_response",
)
"""Options that are copied from the call into a request for a summary, by their names in any
vendor's SDK."""
CARRIED_PREFIXES = ("aws_", "azure_", "vertex_", "watsonx_")
"""Prefixes of litellm's credentials and regions, by provider."""
NOT_FOR_NATIVE = _names(
    # Form and end of the reply.
    "response_format text_format text output_format modalities audio prediction n logprobs",
    "top_logprobs include moderation max_tool_calls stop stop_sequences stopSequences",
    "response_schema response_json_schema response_mime_type response_modalities outputConfig",
    "candidate_count response_logprobs speech_config image_config",
    # Streaming.
    "stream stream_options background continuation_token automatic_continuation",
    # State of the conversation on the server; storage, metadata and fallbacks of the call.
    "thread previous_response_id conversation compaction truncation store metadata",
    "litellm_metadata diagnostics fallbacks fallback_credit_token extra_body requestMetadata",
    "should_return_http_response",
)
"""Options that are left out of every request for a summary."""
LEFT_OUT = NOT_FOR_NATIVE | _names(
    *OUTPUT_PARAMS,
    # Tools.
    "tools tool_choice parallel_tool_calls functions function_call mcp_servers container",
    "web_search_options multi_agent include_server_side_tool_invocations",
    # Reasoning and style.
    "reasoning_effort reasoning thinking frequency_penalty presence_penalty logit_bias speed",
    "verbosity output_config enable_json_schema_validation parse_as image",
    # Prompt of the conversation, and its caching.
    "system instructions prompt context_management cache_control background_options",
    "safety_identifier",
)
"""Options that are left out of a request to summarize a transcript, also if they are parameters of
a user's own function. A request that continues the call's messages leaves out ``NOT_FOR_NATIVE``
alone: the others are part of the provider's cached prompt."""
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
    "reasoning.effort": ("none", "minimal"),
    "reasoning_effort": ("none", "minimal"),
}
# Path in an option -> the value there that disables something.


def other_limit(error: Exception, name: str, limit: int) -> tuple[str, int | None] | None:
    """Return the name of an output limit that a server may take, after it has refused one, and
    the most that it takes, if stated; ``None`` if the error is about something else.

    Args:
        error: Exception of the request.
        name: Option with which it was sent.
        limit: Its number, in tokens.
    """
    text = str(error)
    named = [each for each in OUTPUT_PARAMS if each in text]
    others = [each for each in named if each != name]
    stated = [int(number) for number in _NUMBER.findall(text) if int(number) < limit]
    if not named:
        return None
    if stated and not others:
        return name, max(stated)
    return next(iter(others), _OTHER_NAMES.get(name, "")), None


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
