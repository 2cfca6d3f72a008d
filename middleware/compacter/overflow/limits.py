"""The table of the detector: words by which a token limit is recognised, in English.

The rules that combine meanings are in ``detect`` ("a *context* and *exceeds* in one sentence"); the
words of other languages are in ``european`` and ``east_asian``.
"""

from __future__ import annotations

from typing import Final

from compacter.overflow.table import Row

LIMITS: Final[tuple[Row, ...]] = (
    # An error code. Snake case, so that it is one in running text too.
    Row(
        "code: context_length_exceeded",
        r"\b(?:max(?:imum)?_?)?(?:model_?)?(?:context|prompt|input|sequence|conversation)_?"
        r"(?:window|length|size|tokens?|limit)_?\w{0,6}_?(?:exceeded|exceeds|failed|reached)\b",
        "request failed: context_length_exceeded",
    ),
    Row(
        "code: context_overflow",
        r"\bcontext_?(?:window_?|length_?)?overflow\w{0,10}\b"
        r"|\bexceeds?_(?:max_)?context\w{0,20}\b",
        "request failed: context_window_overflow",
    ),
    Row(
        "code: input_limit",
        r"\b(?:context|prompt|input)_?(?:window|length|size)?_?(?:limit|error)\b(?! ?[=:(])",
        "request failed: input_limit",
    ),
    Row(
        "code: prompt_too_long",
        r"\b(?:context|prompt|input|history|conversation|messages)_(?:is_)?too_(?:long|large)\b",
        "request failed: prompt_too_long",
    ),
    Row(
        "code: token_limit_exceeded",
        r"\b(?:max_)?tokens?_limit_(?:reached|exceeded)\b|\bstatus_msg\W{1,5}token limit\b"
        r"|\b(?:model_)?max_\w{3,24}_exceeded\b",
        "request failed: token_limit_exceeded",
    ),
    # A class name.
    Row(
        "type: ContextWindowExceededError",
        r"context(?:window|length)?(?:limit|size)?(?:exceed|overflow|error)"
        r"|exceed\w{0,8}?(?:context|token)|tokenlimit(?:exceed|reach|error)",
        "ContextWindowExceededError",
    ),
    Row(
        "type: PromptTooLongError",
        r"(?:prompt|input|context|conversation)too(?:long|large)",
        "PromptTooLongError",
    ),
    # The context window of a model.
    Row(
        "context: context window",
        r"context[\s_-]{0,2}(?:window|length|size|len\b|limit|capacity|budget|space|maximum)s?",
        "it does not fit the context window",
    ),
    Row(
        "context: context of a model",
        r"\bmodel(?:'?s)? (?:context|window)\b|\bcontext of (?:the|this) \w{0,12} ?model\b"
        r"|\b(?:loaded|available|supported|configured) context\b|\btokens? (?:context|window)\b"
        r"|\b(?:exceeds?|than) (?:the )?context\b",
        "it does not fit the loaded context",
    ),
    Row(
        "context: context is full",
        r"\bcontext (?:\w{2,3} )?(?:full(?! of)|exhausted|overflow)",
        "the context is full",
    ),
    Row(
        "context: kv cache",
        r"\bkv cache (?=length|size|is full|has insufficient)",
        "the kv cache is full",
    ),
    Row(
        "context: max_model_len",
        r"\b(?:n_|num_)?ctx(?:[_ -]?(?:len|size))?\b|\btotal (?:sequence|context) length\b"
        r"|\bmax_?(?:seq(?:uence)?|model|context|position|total|input|prompt)"
        r"_?(?:len(?:gth)?|size|embeddings|tokens)?\b|\bmodel_max_\w{3,12}",
        "larger than n_ctx",
    ),
    Row("context: block size", r"\bblock[ _]size\b", "the prefix exceeds the model's block size"),
    Row(
        "input limit: maximum input length",
        r"\b(?:sequence|prompt|input|session) (?:length|max|token) ?(?:limit|maximum|max"
        r"|length)\b|\bmax(?:imum|\.)? (?:\w{3,10} ){0,2}(?:sequence|seq|context|prompt"
        r"|input)s?(?: (?:token )?(?:length|len|size)\b)?"
        r"|(?:model|llm)'?s? (?:max(?:imum)?|total) (?:sequence |token )?(?:length|len\b)"
        r"|\b(?:prompt|input)s? of (?:at most|up to)\b|\bmax_kv_size\b",
        "It exceeds the max seq length",
    ),
    # The input of the model.
    Row(
        "subject: prompt",
        r"\b(?:n_)?(?:input|prompt)_(?:tokens|ids|token_ids)\b|\b(?:prompts?|inputs?|context"
        r"|sequence|conversation|chat|history|messages|dialog(?:ue)?|transcript|thread)\b",
        "The prompt is too long",
    ),
    # The request, in texts without a better word for the messages.
    Row(
        "request: request",
        r"\b(?:request(?:ed|s)?|query|question|payload|message|texts?|content|documents?|files?)\b"
        r"(?!['\"] ?:)",
        "The request is too large for this model",
    ),
    Row(
        "token: token",
        r"(?<![a-z_])tok(?:en|s?\b)",
        "token limit exceeded",
    ),
    Row(
        "model: model",
        r"\b(?:llm|endpoint|deployment)\b|\bmodel",
        "The history is more than what the model takes: it exceeds it",
    ),
    Row(
        "exceed: exceeds",
        r"\bexce{1,2}d(?:s|ed|ing)?\b|\b(?:surpass|overshoot|overflow)(?:s|ed|ing|es)?\b|\bexcess\b"
        r"|\boutgr(?:ow|ew)|\b(?:longer|larger|greater|bigger|more|higher) than\b|\bover the\b"
        r"|\bgreater or equal\b",
        "It surpasses the context window",
    ),
    Row(
        "exceed: is over",
        r"(?:\b(?:is|are|was|goes|went|grown|tokens?)|\d) (?:over|above|beyond|past)\b",
        "The chat is over what the model takes, its context window",
    ),
    Row(
        "exceed: window too small",
        r"\btoo small(?: for (?:the|this|your)|: (?:the |your )?prompt)\b",
        "The context window is too small for this chat",
    ),
    Row(
        "too long: too long",
        r"\btoo[ -](?:long|large|big|lengthy)\b|\boversized?\b|\bexcessively long\b"
        r"|\blonger than that\b|\bcannot truncate\b|\b(?:is|are) (?:longer|larger)\b(?! than)",
        "The chat is too long",
    ),
    Row(
        "too many: too many tokens",
        r"\b(?:too many (?:\w{1,14} ){0,2}tokens?|tokens? (?:count|total) (?:is )?too (?:high"
        r"|large)|too many (?:total )?text bytes)\b",
        "The prompt has too many tokens",
    ),
    Row(
        "full: full",
        r"\bis full\b|\bfilled up\b|\bexhausted\b|\bmaxed out\b"
        r"|\b(?:limit|window|length) (?:hit|full)\b|\b(?:has|have) hit (?:its|the)\b"
        r"|(?<!be )(?<!not )\breached\b",
        "The context window is full",
    ),
    Row(
        "full: no room",
        r"\bout of (?:room|space|context)\b|\bno longer fits?\b"
        r"|\b(?:no|not enough|insufficient) (?:more )?"
        r"(?:room|space|capacity|tokens available for)\b"
        r"|(?:\bnot|n't|\bcannot|\bunable to|\bdoesnt) (?:\w{1,10} ){0,3}(?:fit|accommodate)\b",
        "The context window has no room",
    ),
    Row(
        "limit: limit",
        r"\b(?:max(?:imum)?|capacity|allow(?:s|ed)|threshold|cap|supported)\b|\blimit",
        "The tokens exceed what is allowed",
    ),
    Row(
        "length: length",
        r"\b(?:length|size|len|long)\b",
        "The prompt exceeds the allowed length",
    ),
    # A length must not be exceeded.
    Row(
        "bound: must be at most",
        r"\b(?:must|should|shall|ha(?:s|ve) to|needs? to|can|may)(?: only)? (?:not )?"
        r"(?:be|have|contain|exceed)\b.{0,30}?"
        r"(?:\d|<|\b(?:less|fewer|most|more|greater|larger|longer|shorter|smaller|under|below"
        r"|within|between)\b)",
        "The input must have less than 8192 tokens",
    ),
    Row(
        "bound: cannot exceed",
        r"\b(?:cannot|can't) (?:be (?:more|greater|larger|longer)|have more|exceed)\b|\brange of\b",
        "Range of input length: [1, 8192]",
    ),
    Row(
        "bound: only so much",
        r"\b(?:expected|accepts|takes|allows|supports|handles?"
        r"|limit(?:ed)?(?: \w{2,8}){0,2} to)(?: only)?"
        r"(?: (?:prompt|input|message|context)\w{0,2} of)?(?: at most| up to)? \d"
        r"|\b(?:can|could|will|may) (?:only|at most) \w{2,10}\b.{0,40}? \d",
        "This input: expected at most 8192 tokens",
    ),
    Row(
        "bound: maximum context",
        r"\bmax(?:imum)? (?:\w{3,10} )?context (?:length|window|size)\b.{0,20} is (?:\d|\*|<|\[)",
        "The maximum context length is 8192 tokens. However, your",
    ),
    # Advice to shorten it.
    Row(
        "reduce: reduce",
        r"\b(?:reduc|shorten|decreas|truncat|trim|shrink|shorter|compact|drop|remov"
        r"|summari[sz])\w{0,4}\b",
        "Please reduce the length of the messages.",
    ),
)
