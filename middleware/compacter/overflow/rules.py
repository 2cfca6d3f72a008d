# ruff: noqa: E501 - a row of a vocabulary is one line.
"""Does a text say that the request is too long for the model? Rules over meanings, sentence by sentence.

Every rule names one message that it is for, of our own wording. Strength says what may overrule it: a *plain*
statement stands against a doubt in another sentence, a *soft* one does not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from compacter.overflow import words
from compacter.overflow.vetoes import IDIOM, INPUT_PART, OUTPUT_PARAM, hard_veto, soft_veto

Strength = Literal["plain", "soft", "hint"]

_SENTENCE_END = re.compile(
    r"(?:(?<!\be\.g)(?<!\bi\.e)(?<!\bmax)(?<!\bapprox)(?<!\bmin)(?<!\bca)(?<!\bno)(?<!\bvs)[.!?](?=[\s\"'`)\]}]|$))"
    r"|[。！？\x1e;；]|[\"'`](?=\s?[,}])|\s-\s(?=\{)",
)
DOUBT = "doubt: "
"""Begins the answer of ``read`` where a sentence that sounds like a token limit is about another thing."""

MAX_SEGMENT = 3_000
"""Characters of one sentence that are read; what is longer is no sentence."""

CODE = re.compile(
    r"\b(?:max_?)?(?:model_?)?(?:context|prompt|input)_?(?:window|length|size|tokens?|limit|too)_?(?:limit_?|size_?)?(?:exceeded|overflow|exceeds_limit|too_long|long|error|too_large|limit)\b"
    r"|\bmodel_max_\w{0,20}_?exceeded\b|\bexceed_context_size_error\b|\bcontext_overflow\w{0,10}\b|\bprompt_too_(?:long|large)\b|\binput_too_(?:long|large)\b"
    r"|\b(?:max_)?(?:tokens?_limit|token_limit)_(?:reached|exceeded)\b|\bexceeds?_context\w{0,20}\b|\bmax_(?:context|prompt|input)_\w{0,12}_?exceeded\b|\btoo_many_(?:input_|prompt_)?tokens\b",
)
"""Error codes that name the fault: context_length_exceeded, exceed_context_size_error, tokens_limit_reached ..."""

TYPE = re.compile(
    r"context(?:window|length|size|limit|overflow)(?:exceed\w{0,4}|overflow|error|exception)?|prompttoolong|inputtoolong|contexttoolong|tokenlimit(?:exceed|reach)",
    re.IGNORECASE,
)
"""Class names that claim it. A claim only: libraries raise them for other things too."""

_TEMPLATE_NUMBER = r"(?:[~<{\[(]{0,3}(?:\d[\d,._' ]{0,15}\d|\d|[a-z_{}.()]{1,40})[km万]?[>}\])]{0,3})"
# "This model's maximum context length is 10 tokens": the first half; the second half may be another sentence.
_STATES_WINDOW = re.compile(
    rf"(?:{words.CONTEXT.pattern}|\bmax(?:imum)? (?:number of )?(?:input |prompt |total )?(?:tokens?|length)\b|\btoken limit\b|最大长度|最大トークン|최대 토큰|\bmaximal\w{{0,2}} (?:token\w{{0,3}}|lange)|\b(?:model|endpoint|deployment|it|which) (?:only |can )?(?:supports?|accepts?|takes?|allows?|handles?|holds?|processes)(?: only)?(?: up to| at most| a maximum of| a max of| no more than| contexts? of)?(?= ~?\d))"
    rf"[^\x1e]{{0,40}}?{_TEMPLATE_NUMBER}"
)
_STATES_REQUEST = re.compile(
    r"\b(?:token )?(?:count|length|size) (?:is|was|of) (?:about )?\d|\b(?:you|your (?:\w{1,12} ){1,3}|request|prompt|input|messages|conversation|it|and|but|which|however,?) ?(?:have |has |had )?(?:requested|resulted in|contains?|contained|has|have|had|is|are|was|were|used|uses|sent|supplied|provided|got|gave|needs?|requires?|asked for|submitted|totals?|amounts? to|comes? to)\b.{0,60}\d"
    r"|\b(?:requested|request(?:ed)?[ _]tokens|given|got|received|actual(?:ly)?|current length|used|you sent)\b.{0,20}[:=]? ?[<{~]?[\dy]"
    r"|\b(?:n_)?prompt_?tokens\b.{0,6}\d|(?:请求|输入|当前|实际|本次|您的|消息|传入).{0,20}\d|(?:リクエスト|入力|要求|現在).{0,20}\d|(?:요청|입력|현재).{0,20}\d"
    r"|(?:angefordert|angefragt|ihre|deine|nachrichten|anfrage|demande|votre|vos|messages|su solicitud|solicit|mensajes|mensagens|sua|seu|vostr|richiest|messaggi|запрос|вы |ваш|сообщен).{0,40}\d"
)
_NAMED_SUBJECT = rf"(?:{words.SUBJECT.pattern}|\btokens\b)"
_TOO_LONG_SUBJECT = re.compile(
    rf"(?:{_NAMED_SUBJECT}).{{0,70}}?(?:{words.TOO_LONG.pattern})|(?:{words.TOO_LONG.pattern})\W{{0,3}}(?:\w{{1,12}} ){{0,3}}(?:{words.SUBJECT.pattern})"
)
_TOO_MANY_TOKENS = re.compile(
    r"\btoo many (?:\w{1,14} ){0,3}tokens?\b|\btokens? count (?:is )?too (?:high|large)\b|(?:トークン|토큰).{0,8}(?:多すぎ|너무 많)|\bzu viele token|\btrop de (?:tokens|jetons)|\bdemasiados tokens|\btokens demais|\b(?:muitos|troppi) token|слишком много токенов|(?:tokens?|令牌|词元)(?:数量?)?(?:过多|太多)|\btext bytes\b"
)
_COMPARED = re.compile(r"\d ?(?:tokens?)?[)\]]? ?>=? ?[(\[]?\d|\d ?\+ ?\d{1,9} ?(?:tokens?)? ?>")
_OVERFLOW_OF = re.compile(
    r"\bcontext[ _-]?overflow|\b(?:context|prompt|history|conversation|tokens?) (?:\w{1,10} )?overflow|\boverflow\w{0,3} (?:the |its |of )?(?:model'?s? )?context|\bout of context\b|\bcontext (?:is |was )?(?:full|exceeded|exhausted)\b|\bcontext overflows\b|\bkeep the first \d"
)
_LENGTH_OF = re.compile(
    r"\b(?:length|size|len|window|long)\b|长度|長さ|길이|lange|longueur|longitud|comprimento|lunghezza|длин"
)
_TOKENS_GIVEN = re.compile(r"\d[\d,._' ]{0,15}(?:[km] )?-? ?(?:tokens?|トークン|토큰|токен|jetons?|个?token)")


@dataclass(frozen=True, slots=True)
class Finding:
    """What a text says: the rule, its strength, and where its sentences stand."""

    rule: str
    strength: Strength
    spans: tuple[tuple[int, int], ...] = ()


def segments(text: str) -> list[tuple[int, int]]:
    """Where the sentences of a normalised text begin and end."""
    cuts, start = [], 0
    for match in _SENTENCE_END.finditer(text):
        if match.start() > start:
            cuts.append((start, min(match.end(), start + MAX_SEGMENT)))
        start = match.end()
    if start < len(text):
        cuts.append((start, min(len(text), start + MAX_SEGMENT)))
    return cuts


def read(text: str) -> Finding | str | None:
    """What a normalised text says: a finding, the name of another kind of error, or None when it says neither.

    Of several clear statements the last decides: an error that lists its tries ends with the one that counts.
    """
    spans = segments(text)
    parts = [text[start:end] for start, end in spans]
    last: Finding | str | None = None
    softer: list[Finding] = []
    doubt: str | None = None
    for index, part in enumerate(parts):
        veto = hard_veto(part)
        if veto is not None:
            last = veto
            continue
        doubtful = soft_veto(part)
        if doubtful is not None:
            doubt = doubtful
            continue
        found = _judge(part, parts[index - 1] if index else "", parts[index + 1] if index + 1 < len(parts) else "")
        if found is None:
            continue
        around = tuple(spans[max(0, index - 1) : index + 3])
        finding = Finding(found[0], found[1], around)
        if finding.strength == "plain":
            last = finding
        else:
            softer.append(finding)
    if last is not None:
        return last
    if doubt is not None:
        return DOUBT + doubt
    softer.sort(key=lambda finding: finding.strength != "soft")
    return softer[0] if softer else None


def _judge(  # noqa: C901, PLR0912 - a list of rules, each one line
    segment: str, previous: str, following: str
) -> tuple[str, Strength] | None:
    """The first rule that a sentence meets."""
    plain = IDIOM.sub(" ", segment)
    if CODE.search(segment):  # {"code": "context_length_exceeded"}
        return "code in text", "plain"
    context = words.CONTEXT.search(plain) is not None
    exceed = words.EXCEED.search(plain) is not None
    too_long = words.TOO_LONG.search(plain) is not None
    token = words.TOKEN.search(plain) is not None
    subject = words.SUBJECT.search(plain) is not None
    asked = words.REQUEST.search(plain) is not None
    limit = words.LIMIT.search(plain) is not None
    model = words.MODEL.search(plain) is not None
    if context and (exceed or too_long):  # "the input is longer than the context window of this model"
        return "context exceeded", "plain"
    if _OVERFLOW_OF.search(plain):  # "context overflow while evaluating the prompt"
        return "context overflow", "plain"
    if (context or (subject and model)) and words.FULL.search(plain):  # "no room left in the context window"
        return "context full", "plain"
    if (
        _STATES_WINDOW.search(plain)
        and (context or token or model)
        and any(_STATES_REQUEST.search(part) for part in (plain, following[:300], previous[-300:]))
    ):
        return "window and request stated", "plain"  # "The context size is 10 tokens. You requested 12."
    if (subject or token) and exceed and limit and (token or model):  # "input tokens exceed the limit of 10"
        return "tokens exceed limit", "plain"
    if subject and exceed and limit and _LENGTH_OF.search(plain):  # "the prompt exceeds the maximum length"
        return "subject exceeds length", "soft"
    if (subject or asked) and exceed and token:  # "the request is longer than 10 tokens"
        return "longer than tokens", "plain"
    if _TOO_MANY_TOKENS.search(plain):  # "the prompt has too many tokens"
        return "too many tokens", "plain" if subject or asked or limit else "soft"
    if too_long and _TOO_LONG_SUBJECT.search(plain):  # "your prompt is too long"
        return "subject too long", "plain" if token or model or _TOKENS_GIVEN.search(plain) else "soft"
    nearby = plain + " " + following[:200]
    if (too_long or exceed) and asked and _TOKENS_GIVEN.search(nearby):  # "Request too large. Max size: 10 tokens."
        return "request too large in tokens", "plain"
    if subject and exceed and model:  # "the history exceeds what the model can read"
        return "subject exceeds model", "soft"
    if words.MUST.search(plain) and words.AT_MOST.search(plain) and _bounded_input(plain, token=token, context=context):
        return "bound on input", "plain"  # "inputs must have fewer than 10 tokens"
    if _COMPARED.search(plain) and (token or context or subject):  # "prompt tokens: 12 > 10"
        return "compared", "plain"
    if words.REDUCE.search(plain) and subject:  # "Please shorten the messages."
        return "advice", "hint"
    return None


def _bounded_input(segment: str, *, token: bool, context: bool) -> bool:
    """Whether the bound of a sentence lies on what was sent, not on a parameter."""
    without_output = OUTPUT_PARAM.sub(" ", segment)
    sent = INPUT_PART.search(without_output) is not None
    return (
        (sent and (token or context or "length" in segment))
        or (context and words.MODEL.search(segment) is not None)
        or ("max_total_tokens" in segment)
    )


def speaks_of_tokens(text: str) -> bool:
    """Whether a text is about tokens or a context at all."""
    plain = IDIOM.sub(" ", text)
    return words.TOKEN.search(plain) is not None or words.CONTEXT.search(plain) is not None or "_tokens" in plain


def counts_output(text: str) -> bool:
    """Whether a statement counts the room asked for the completion in.

    "Shorten the messages or the completion" is advice, no count: the sentence must set both against the limit.
    """
    for start, end in segments(text):
        part = IDIOM.sub(" ", text[start:end])
        if words.REDUCE.search(part) and not (words.EXCEED.search(part) or words.MUST.search(part)):
            continue
        if (
            OUTPUT_PARAM.search(part)
            and not hard_veto(part)
            and (words.CONTEXT.search(part) or words.EXCEED.search(part) or words.MUST.search(part) or "total" in part)
        ):
            return True
    return False
