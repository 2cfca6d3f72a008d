# ruff: noqa: E501 - a row of a vocabulary is one line.
"""Which number is the limit and which is what was sent: told by the words beside it, never by its place."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from compacter.overflow import words
from compacter.overflow.numbers import Number, token_counts
from compacter.overflow.token_limit import TokenLimit
from compacter.overflow.vetoes import OUTPUT_PARAM

if TYPE_CHECKING:
    from collections.abc import Iterable

Role = Literal["limit", "requested", "input", "output"]

_REACH = 90
"""Characters beside a number in which a word can speak for it."""

_UNIT = r"(?:-? ?(?:tokens?|toks?\b|個?のトークン|トークン|个?tokens?|토큰|токен\w{0,3}|jetons?|词元|令牌))?"
_CLOSE = r"[)\]\"'`}]{0,3} ?"
_OF_OUTPUT = r"`?'?(?:completion|output|outputs?|response|generation|generated|reply|answer|new tokens|max_\w{0,20}tokens|salida|respuesta|sortie|reponse|ausgabe|antwort|saida|resposta|risposta|вывод|ответ|输出|补全|回复|出力|応答|출력|응답)"
_OF_INPUT = r"`?'?(?:requests?\b|messages?\b|prompts?\b|inputs?\b|conversation|history|context\b|text\b|entrada|eingabe|nachrichten|entree|mensajes|mensagens|messaggi|ввод|сообщени|промпт|输入|提示|消息|入力|プロンプト|입력|프롬프트)"

_RIGHT: tuple[tuple[Role, re.Pattern[str]], ...] = (
    (
        "limit",
        re.compile(
            r"(?:is |was |are |as )?(?:the |model'?s? |our |its )?(?:model |token |input |prompt |total )?(?:max(?:imum)?\b|limit\b|cap\b|ceiling\b|context\b(?: window| length| size| limit)?(?! \d)|window\b|allowed\b|supported\b|上限|限制|の上限|の制限|の最大|をを?超|を上回|をオーバー|을 (?:초과|넘)|를 (?:초과|넘)|(?:의 )?(?:한도|제한)|hochst|maximum|erlaubt|autorise|permitid|consentit|лимит|максимум)"
        ),
    ),
    (
        "requested",
        re.compile(
            r"(?:,? ?(?:which |that |and )?(?:is |are |was |were |already )?(?:>=?|exce+e?d(?!ed by)|surpass|over the\b|(?:is|are) (?:over|above|too)|too (?:long|large|many)|longer than|larger than|greater than|more than|bigger than)|must |should |cannot |(?:pour|for|out of|of|against|versus|bei|von|sur|su|de|con|при|из) (?:un |une |a |an |the |einem |um |una |il |le |la )?(?:max|limit|mass)|can't |vs\b|v\. |/ ?\d|given\b|supplied\b|provided\b|requested\b|received\b|submitted\b|sent\b|solicitad|demande|angefordert|angefragt|richiest|usad|gevraagd|запрош|used\b|in use\b|(?:were|was) \w{2,10}\b|超过|超出|大于|が(?:上限|最大|制限|コンテキスト)|で(?:上限|最大)|uberschr|uberst|depass|exced|super[ao]|ultrapass|eccede|превыша|больше)"
        ),
    ),
    (
        "output",
        re.compile(
            rf"(?:(?:in|for|from|as|of|fur|pour|dans|para|en|na|no|nel|nella|per|для|в) (?:the |your |la |le |el |die |den |das |der |il |a |o )?(?:requested )?)?{_OF_OUTPUT}"
        ),
    ),
    (
        "input",
        re.compile(
            rf"(?:(?:in|for|from|of|im|in der|dans|en|para|em|na|nel|nella|nei|в) (?:the |your |la |le |les |el |los |die |den |il |i |a |o |as |input |su |sua )?)?{_OF_INPUT}"
        ),
    ),
)
_RIGHT_HEAD = re.compile(rf"{_CLOSE}(?:of )?{_UNIT}{_CLOSE}")

_ADDED = re.compile(r"[)\]]? ?(?:tokens? ?)?[)\]]?,? ?(?:\+|and\b|plus\b|&)")
# What stands to the right and leaves no doubt: it exceeds, it was sent.
_ACTIVE = re.compile(
    rf"{_CLOSE}{_UNIT}{_CLOSE}(?:>|/ ?\d|(?:which |that )?exce+eds? |exceeding |exceeded (?:the|this|its|max|model|context)|(?:were |was )?(?:sent|given|supplied|provided|received|submitted|used|in use)\b|(?:solicitad|demande|angefordert|angefragt|richiest|usad|gevraagd|запрош)\w{{0,3}})"
)

_FILLER = re.compile(
    r"(?:[\s:=(\[~\"'`*<|-]|\b(?:is|of|to|was|are|were|be|a|an|the|about|approximately|approx\.?|around|roughly|only|just|at least|currently|set|for this model|for the model|for this request|per request|i\.e\.?|which|equals?|tokens?|ist|von|est|de|es|di|e|sao|som|auf|bei|nur)\b|[为是は을를은는이がで約约以共有达])+$"
)

_LEFT: tuple[tuple[Role, re.Pattern[str]], ...] = (
    (
        "limit",
        re.compile(
            r"\bmax(?:imum|imal\w{0,2}|\.)?(?: (?:allowed|supported|permitted|model|number|total|of|input|prompt|context|sequence|token|tokens|length|size|window|limit|count|len|request|combined|for|this|capacity|allowable|seq|configured|valid|text|message)){0,6}"
            r"|\bmax_(?!(?:new_|completion_|output_)?tokens)\w{1,24}|\b(?:n|num)_ctx\b|\blimit(?:s|ed|e)?\b(?: (?:for|of|is|this|the|model|exceeded|on|allowed|tokens?)){0,4}|\bcontext[ _-](?:window|length|size|limit|len|capacity|budget)(?: (?:for|of|is|this|the|model|limit|available)){0,5}"
            r"|\ballow(?:s|ed)?\b|\bat most\b|\bup to\b|\b(?:less|fewer|lower|no more|longer|larger|greater|more|bigger|higher|shorter) than(?: or equal to)?|<=?|\bunder\b|\bbelow\b|\bbeyond\b|\babove\b|\bover\b|\bexce+e?d(?:s|ed|ing)?\b|\bcap(?:acity|ped at)?\b|\bwindow\b|\bthreshold\b|\bsupports?(?: (?:only|at most|up to))?|\bavailable\b|\bconfigured\b|\baccepts?\b|\bwithin\b|\bbudget\b|\bonly\b|\[[01], ?|\bbetween \d{1,3} and\b|[^-]>=?|\bmodel'?s? context(?: (?:window|length|size|limit))?\b|\bwindow holds\b|\bcontext is\b|\bexpected\b|\bmodel_max\w{0,20}|\btoken_limit\b|\bwindow_size\b|^[)\] ]{0,2}/ ?$"
        ),
    ),
    (
        "limit",
        words.meaning(
            (
                r"(?:最大|上限|限制|最长|最多|不能超过|不得超过|不超过|超过|超出|小于|窗口)(?:输入|上下文|允许|支持)?(?:的)?(?:长度|窗口|大小|限制|上限|token数?|tokens?|数|了)?",
                r"(?:最大|上限|制限|ウィンドウ|コンテキスト長)(?:入力|コンテキスト|トークン)?(?:長|数|サイズ)?(?:である|の)?",
                r"(?:최대|한도|제한)(?: ?(?:컨텍스트|입력|토큰))?(?: ?(?:길이|수|크기))?",
                r"\bmaxim\w{0,4}(?: (?:de|del|da|do|di|permitid\w|de la|de tokens|tokens))?|\blimite?s?(?: (?:de|del|da|di|du|von))?|\bmassim\w(?: (?:di|consentit\w))?|\bgrenze\b(?: von)?|\bhochst\w{0,10}|kontextfenster\w{0,2}|\bfenetre de context\w{0,2}|\b(?:ventana|janela) de context\w{0,2}|\bfinestra di contest\w{0,2}|окн\w{0,3}(?: контекста)?|лимит\w{0,2}|максим\w{0,10}(?: (?:длин\w{1,3}|контекста|числ\w)){0,2}|предел\w{0,2}|uberschreitet|ubersteigt|depasse(?: la limite)?|excede|supera|ultrapassa|eccede|превыша\w{1,3}|\blonger als\b|\blanger als\b|\bmehr als\b|\blimiet\w{0,2}|\baccepten?t? que\b|\bmaksymaln\w{1,3}(?: \w{1,12}){0,3}|\bprzekracza\b|\bazami\b",
            )
        ),
    ),
    (
        "requested",
        re.compile(
            r"\brequest(?:ed|s|ing)?\b(?:[_ ]tokens?| a total| about| up to| token count| size| length){0,2}|\b(?:request|prompt|input|messages?|conversation) (?:has|have|contains?|is|was|of|uses?|needs?|requires?|totals?|with|size|resulted in)\b"
            r"|\bresult(?:ed|s) in\b|\bcontain(?:s|ed|ing)?\b|\bhas\b|\bhad\b|\bhave\b|\bgot\b|\bgave\b|\bgiven\b|\breceived\b|\bsupplied\b|\bprovided\b|\bsent\b|\btotal(?:s|ing|led)?(?: (?:of|tokens?|length|size))?\b|\bcurrent(?:ly)?(?: (?:length|size|tokens?|usage|count))?\b|\bactual(?:ly)?(?: (?:length|size|tokens?))?\b|\b(?:adds?|sums?|summing|adding) (?:up )?to\b|\b(?:request|prompt|messages|conversation|it) holds?\b|\bused\b|\buses\b|\bwas\b|\bwere\b"
            r"|\bcount(?: of)?\b|\btoo (?:long|large|many|big)\b(?: tokens)?|\bkeep the first\b|\bestimated\b|\bmeasured\b|\bneeds?\b|\brequires?\b|\basked for\b|\bsubmitted\b|\bcomes? to\b|\bamounts? to\b|\bvalue\b|\bprocess\b|\bn_tokens\b|\btotal_tokens\b|\bnum_tokens\b|\btoken_count\b"
        ),
    ),
    (
        "requested",
        words.meaning(
            (
                r"(?:请求|当前|实际|本次|共|总计|达到|传入|发送|您的)(?:了|的)?(?:总)?(?:token数?|tokens?|长度|数量|为|是)?|token(?:总)?数(?:量)?|总长度|总数|长度",
                r"(?:リクエスト|現在|合計|要求|実際)(?:は|の)?(?:トークン数)?|トークン数|(?:요청|현재|총|전송|실제)(?:된|한)?(?: ?토큰)?(?: ?수)?|토큰 수",
                r"\bangefordert\w{0,2}|\bangefragt|\benthalt|\bhat\b|\bhaben\b|\bsind\b|\bdemande\w{0,2}|\bcontient|\bcompte|\bsolicit\w{1,5}|\bcontien\w{1,2}|\btien\w{1,2}\b|\bcontem\b|\btem\b|\bpossui\b|\bricchiest\w|\brichiest\w{1,2}|\bcontien\w|\bha\b|запрошен\w{0,2}|содерж\w{1,3}|составля\w{1,3}|получен\w{0,2}|передан\w{0,2}|\bfornit\w|\bgevraagd\w?|\bzadano\b|\bistenen\b|\bactuel\w{0,2}|\bcomporte\w{0,2}\b|\bactual\b|\baktuell\w{0,2}|\batual\b",
            )
        ),
    ),
    (
        "input",
        re.compile(
            r"\b(?:n_)?(?:prompt|input|inputs|message|messages|context)[_ ]?(?:tokens?|length|len|size|token count)?(?: (?:length|count|contains|has|is|of))?\b(?: contains| has| is)?(?: at least)?|\blength of (?:the )?(?:messages|prompt|input)\b"
            r"|(?:输入|提示词?|消息|上下文)(?:的)?(?:长度|tokens?|token数)?|入力(?:トークン)?(?:数|長)?|プロンプト(?:長)?|입력(?: ?토큰)?(?: ?수)?|\beingabe|\bentrada\b|\bentree\b|входн\w{1,3}"
        ),
    ),
    (
        "output",
        re.compile(
            OUTPUT_PARAM.pattern
            + r"|\bcompletion\b|\boutput(?: tokens?)?\b|\b(?:max_?tokens?|reserved|generation)\b|输出(?:长度)?|出力|출력|\bsalida\b|\bsortie\b|\bausgabe\b|\bsaida\b"
        ),
    ),
)

_SUM = re.compile(
    r"(?P<a>\d[\d,._' ]{0,15}?) ?(?:tokens? ?)?\+ ?(?P<b>\d[\d,._']{0,15}) ?(?:tokens? ?)?(?:= ?(?P<t>\d[\d,._']{0,15}) ?(?:tokens? ?)?)?(?:>=?|exceeds?|is (?:greater|more) than) ?(?P<c>\d)"
)
_DIFFERENCE = re.compile(r"(?P<out>\d[\d,._']{0,15}) ?>=? ?(?P<lim>\d[\d,._']{0,15}) ?- ?(?P<inp>\d)")


@dataclass(frozen=True, slots=True)
class _Said:
    """One number with the role that the words beside it give it."""

    number: Number
    role: Role
    strong: bool
    near: bool


def measure(
    text: str,
    spans: Iterable[tuple[int, int]] = (),
    codes: frozenset[str] = frozenset(),
    *,
    counted: bool = False,
    source: str = "",
    settle: bool = True,
) -> TokenLimit:
    """The numbers of a text that states a token limit, by role.

    ``spans`` is where the statement stands: numbers there come before those elsewhere. ``counted`` says that the
    room for the completion is part of the sum although no number is given for it. ``settle=False`` leaves numbers out
    that no word claims.
    """
    numbers = token_counts(text, codes)
    zones = tuple(spans)
    said: list[_Said] = []
    loose: list[Number] = []
    for index, number in enumerate(numbers):
        before = max(numbers[index - 1].end if index else 0, number.start - _REACH)
        after = numbers[index + 1].start if index + 1 < len(numbers) else len(text)
        near = not zones or any(start <= number.start <= end for start, end in zones)
        role = _role(text[before : number.start], text[number.end : min(after + 1, number.end + _REACH)])
        if role is None:
            if near:
                loose.append(number)
        else:
            said.append(_Said(number, role[0], role[1], near))
    chosen = _chosen(said)
    _arithmetic(text, numbers, chosen)
    if not settle:
        return _limit_of(chosen, counted=counted, source=source)
    loose += [item.number for item in said if item.near and item.role == "limit" and not item.strong]
    _settle(loose, chosen)
    return _limit_of(chosen, counted=counted, source=source)


def _role(before: str, after: str) -> tuple[Role, bool] | None:
    """The role of a number between two stretches of text, and whether it is beyond doubt."""
    before = re.split(r"[.!?;。；\x1e] |[。；\x1e]", before)[-1]
    left = _left(before)
    right = _right(after)
    if right is None:
        return left
    if left is not None and left == ("output", True) and right == "requested" and _ADDED.match(before):
        return left  # "prompt 10 + max_tokens 5 exceeds 12": what exceeds is the sum
    if right == "requested" and _ACTIVE.match(after):
        return right, True
    if left is not None and left[0] == "limit" and left[1] and right in {"input", "output", "requested"}:
        return left  # "a maximum of 8192 input tokens" speaks of the limit
    return right, True


def _right(after: str) -> Role | None:
    head = _RIGHT_HEAD.match(after)
    rest = after[head.end() :] if head else after
    return next((role for role, pattern in _RIGHT if pattern.match(rest)), None)


def _left(before: str) -> tuple[Role, bool] | None:
    """The nearest word that gives a role; of two that end together the longer one. True when it touches the number."""
    filler = _FILLER.search(before)
    edge = filler.start() if filler else len(before)  # a cue that reaches it touches the number
    best: tuple[int, int, Role] | None = None
    for role, pattern in _LEFT:
        for match in pattern.finditer(before):
            key = (min(match.end(), edge), -match.start(), role)
            if match.group() and (best is None or key[:2] > best[:2]):
                best = key
    return None if best is None else (best[2], best[0] >= edge)


def _chosen(said: Iterable[_Said]) -> dict[Role, int]:
    """One number a role: what stands in the statement itself first, then what is beyond doubt, then the last."""
    best: dict[Role, tuple[tuple[bool, bool, int], int]] = {}
    for item in said:
        key = (item.near, item.strong, item.number.start)
        if item.role not in best or key > best[item.role][0]:
            best[item.role] = (key, item.number.value)
    return {role: value for role, (_, value) in best.items()}


def _arithmetic(text: str, numbers: list[Number], chosen: dict[Role, int]) -> None:
    """Sums such as "10 + 5 > 12" and "5 > 12 - 10" say it all; the names stand before them in the same order."""
    values = {number.start: number.value for number in numbers}
    for match in _SUM.finditer(text):
        first, second, bound = (values.get(match.start(name)) for name in ("a", "b", "c"))
        if first is None or second is None or bound is None:
            continue
        named = text[max(0, match.start() - 120) : match.start()]
        output = OUTPUT_PARAM.search(named)
        sent = re.search(r"input|prompt|messages", named)
        swapped = output is not None and sent is not None and output.start() < sent.start()
        chosen["input"], chosen["output"] = (second, first) if swapped else (first, second)
        chosen["limit"] = bound
        total = values.get(match.start("t")) if match["t"] else None
        chosen["requested"] = total if total is not None else first + second
    for match in _DIFFERENCE.finditer(text):
        output_tokens, bound, sent_tokens = (values.get(match.start(name)) for name in ("out", "lim", "inp"))
        if output_tokens is not None and bound is not None and sent_tokens is not None:
            chosen["output"], chosen["input"], chosen["limit"] = output_tokens, sent_tokens, bound
            chosen["requested"] = output_tokens + sent_tokens


def _settle(loose: list[Number], chosen: dict[Role, int]) -> None:
    """Numbers that no word claims: the missing role takes what is left, if it makes sense as that role."""
    rest = [number.value for number in loose if number.value not in chosen.values() and number.value >= 16]
    sent = chosen.get("requested", chosen.get("input"))
    if "limit" in chosen:
        if sent is None:
            over = [value for value in rest if value > chosen["limit"]]
            if len(over) == 1:
                chosen["requested"] = over[0]
    elif sent is not None:
        under = [value for value in rest if value < sent]
        if len(under) == 1:
            chosen["limit"] = under[0]
    elif len(rest) == 2 and rest[0] != rest[1]:
        chosen["limit"], chosen["requested"] = min(rest), max(rest)


def _limit_of(chosen: dict[Role, int], *, counted: bool, source: str) -> TokenLimit:
    limit, total = chosen.get("limit"), chosen.get("requested")
    sent, output = chosen.get("input"), chosen.get("output")
    if output is not None and total is not None and sent is None and 0 < output < total:
        sent = total - output if counted else None
    if total is None:
        total = sent + output if sent is not None and output is not None else sent
    elif sent is not None and output is not None and sent + output == total + output and total < (limit or 0):
        total = sent + output
    both = bool(output) or (counted and output is None)
    if output is None and not both:
        sent = None if sent == total else sent
    return TokenLimit(limit, total, "input_plus_output" if both else "input", sent, output, source)
