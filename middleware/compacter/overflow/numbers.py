"""Find the limit and the size of the request among the numbers of a text, by the words beside them, not by position.

A number without such words gets the remaining role if its size allows: the request is larger than the limit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple

from compacter.overflow.table import Row, Table

Kind = Literal["input", "input_plus_output"]
Role = Literal["limit", "sent", "input", "output"]


@dataclass(frozen=True, slots=True)
class TokenLimit:
    """A token limit as the provider stated it; numbers are in tokens, None if they are not stated."""

    limit: int | None = None
    """Largest request that the provider accepts."""
    requested: int | None = None
    """Size of the request: the stated total, else the sum of the stated parts."""
    kind: Kind = "input"
    """``input_plus_output`` if the limit includes the tokens requested for the completion (``max_tokens``)."""
    input_tokens: int | None = None
    """Tokens of the messages, if stated apart."""
    output_tokens: int | None = None
    """Tokens reserved for the completion, if stated apart."""
    source: str = ""
    """Name of the rule that matched; never a part of the message."""


class Number(NamedTuple):
    """An integer that may count tokens, with its position in the text."""

    value: int
    start: int
    end: int


_MAX_NUMBERS: Final = 200
"""Most numbers read of one text; an error with more of them is a dump."""

_REACH: Final = 80
"""Distance in characters within which a word can determine the role of a number."""

_SMALLEST: Final = 16
"""Smallest number that counts tokens without a word for it; smaller ones count attempts, roles or tools."""

_SCALE: Final = {
    **dict.fromkeys(("k", "thousand", "mil", "тыс"), 1_000),
    **dict.fromkeys(("m", "million", "mio", "млн"), 1_000_000),
    **dict.fromkeys(("万", "萬", "만"), 10_000),
}
# 8192, 8,192, 8.192, 8_192, 8'192, 8 192, 128k, 1.2M; not a part of a date, a version, a name or a broken number.
_NUMBER: Final = re.compile(
    r"(?:(?<![a-z0-9_\x1f])|(?<= is))(?<!\d[.,:])(?<!\d ['’])(?<![a-z]-)(?<![a-z]\.)(?<!\d-)"
    r"(?P<body>\d{1,3}(?P<sep>[,._' ])\d{3}(?:(?P=sep)\d{3}){0,3}(?!\d)(?![,._]\d)"
    r"|\d{1,2}(?:,\d{2}){1,3},\d{3}(?!\d)"
    r"|\d{1,12}(?P<fraction>\.\d{1,3})?)"
    r"(?: ?(?P<scale>k|m|万|萬|만|thousand|million|mio|mil|тыс|млн)(?![a-z]))?"
    r"(?![a-z0-9_%\x1f]|\.\d|:\d|-\d|-[a-su-z]|/\d{1,2}/)|(?:(?<![a-z0-9_.:/-])|(?<= is))(?P<glued>\d{2,9})(?=tok)"
)
_UNIT_WORD: Final = r"-? ?(?:toks?\b|tokens?\b|個?のトークン|トークン|个?tokens?|토큰|токен\w{0,3}|jetons?|词元|令牌)"
_CLOSE: Final = r"[)\]\"'`}]{0,3} ?"
_UNIT: Final = re.compile(rf"{_CLOSE}(?:of )?(?:{_UNIT_WORD})?{_CLOSE}")
_IS_TOKENS: Final = re.compile(rf"[)\]]? ?-?(?:`?\w{{1,12}}`? )?(?:{_UNIT_WORD})")
_FILLER: Final = re.compile(
    r"(?:[\s:=(\[~\"'`*<|-]|\b(?:is|of|to|was|are|were|be|a|an|the|about|approximately|around|roughly|only|just"
    r"|at least|currently|set|for this model|which|equals?|tokens?|ist|von|est|de|es|di|e|sao|bei|nur)\b"
    r"|[为是は을를은는이がで約约])+$"
)
_OVERSHOT: Final = re.compile(
    r"\b(?:by|um|por|на)(?: (?:about|approximately|around|roughly|at least|more than|over|nearly))? ?~?[(\[]?$"
)
_CLAUSE: Final = re.compile(r"[.!?;] |[。；\x1e]")
# "400 the prompt is too long", at the beginning of a statement; not "(500 in the messages, 512 in the completion)".
_STATEMENT: Final = re.compile(r"(?:^|[-:>|\"'`{\x1e]) ?$")
_STATUS_OF_WORDS: Final = re.compile(r" ?[-:]? ?[`'\"{(]{0,2}(?!\w{0,20}tokens?\b|(?:in|for|from|of)\b)[a-z]")
# "409 requested, 256 allowed": a clause of a number and one word, which says what was counted.
_ONE_WORD: Final = re.compile(r" ?\w{2,16}(?= ?(?:[,;.)\]]|$))")
_STATUS_IN_BRACKETS: Final = re.compile(r"[>\])](?! ?-?tok)")
_LOWER_BOUND: Final = re.compile(r", ?\d{2,12}[\])]")
_ADDED: Final = re.compile(r"[)\]]? ?(?:tokens? ?)?[)\]]?,? ?(?:\+|and\b|plus\b|&|(?:which )?together\b)")
_IS_MORE: Final = re.compile(
    rf"{_CLOSE}(?:{_UNIT_WORD})?{_CLOSE}(?:>|/ ?\d|(?:which |that )?(?:exce+eds?\b|exceeding|surpass(?:es|ing))"
    r"|(?:(?:were|was) )?(?:given|supplied|provided|received|submitted|sent|used|in use|requested)\b)"
)

_N: Final = r"\d[\d,._']{0,15}"
_T: Final = r" ?(?:tokens? ?)?"
_SUM: Final = re.compile(
    rf"(?P<a>{_N}){_T}\+ ?(?P<b>{_N}){_T}(?:= ?{_N}{_T})?(?:>=?|exceeds?|is (?:greater|more) than) ?(?P<c>\d)"
)
_COMPARED: Final = re.compile(rf"(?P<a>{_N}){_T}[)\]]? ?(?P<sign>[<>]=?|/|of|out of) ?[(\[]?(?P<b>\d)")
_REST: Final = re.compile(rf"(?P<out>{_N}) ?>=? ?(?P<lim>{_N}) ?- ?(?P<inp>\d)")


def measure(
    text: str,
    table: Table,
    *,
    near: tuple[int, int] | None = None,
    codes: frozenset[str] = frozenset(),
    counted: bool = False,
    source: str = "",
    guess: bool = True,
) -> TokenLimit:
    """Return the numbers of a text that states a token limit, by role.

    Args:
        text: the normalised message.
        table: the patterns.
        near: start and end of the deciding sentences, in characters; their numbers take precedence. None: everywhere.
        codes: status and codes of the error, which do not count tokens.
        counted: whether the limit includes the completion.
        source: the rule that decided.
        guess: whether a number without words for it gets the remaining role.
    """
    numbers = token_counts(text, table, codes)
    best: dict[Role, tuple[bool, bool, int, int]] = {}
    unclaimed: set[int] = set()
    distant: set[int] = set()  # Limits whose word is too far away to be certain if there are other numbers.
    for index, number in enumerate(numbers):
        start = max(numbers[index - 1].end if index else 0, number.start - _REACH)
        end = min(numbers[index + 1].start + 1 if index + 1 < len(numbers) else len(text), number.end + _REACH)
        is_near = near is None or near[0] <= number.start <= near[1]
        role, close = _role(text[start : number.start], text[number.end : end], table)
        if role in {"sent", "input"} and number.value < _SMALLEST:
            continue  # "attempt 3 of 5"
        if role is not None:
            # A number in the deciding sentences takes precedence, then one with its words next to it, then the last.
            best[role] = max(best.get(role, (False, False, -1, 0)), (is_near, close, number.start, number.value))
        if is_near and role in {None, "limit"}:
            (distant if role and not close else unclaimed).add(number.value)
    chosen: dict[Role, int] = {role: claim[-1] for role, claim in best.items()}
    _calculate(text, {number.start: number.value for number in numbers}, chosen, table)
    if guess:
        unsure = chosen.get("limit") in distant and not {"sent", "input"} & chosen.keys()
        far = chosen.pop("limit") if unsure else None
        rest = {value for value in unclaimed | distant if value >= _SMALLEST} - set(chosen.values())
        limit, sent = chosen.get("limit"), chosen.get("sent", chosen.get("input"))
        over = [value for value in rest if limit is not None and value > limit]
        under = [value for value in rest if sent is not None and value < sent]
        if sent is None and len(over) == 1:
            chosen["sent"] = over[0]
        elif limit is None and sent is not None and len(under) == 1:
            chosen["limit"] = under[0]
        elif limit is None and sent is None and rest == {far}:
            chosen["limit"] = rest.pop()
        elif limit is None and sent is None and len(rest) == 2:
            chosen["limit"], chosen["sent"] = min(rest), max(rest)

    limit, total, sent, output = (chosen.get(role) for role in ("limit", "sent", "input", "output"))
    if output and total is not None and sent is None and output < total and counted:
        sent = total - output
    if total is None or (sent is not None and output is not None and total == sent and total < (limit or 0)):
        total = sent + (output or 0) if sent is not None else None
    both = bool(output) or (counted and output is None)
    if output is None and (not both or sent == total):
        sent = None
    return TokenLimit(limit, total, "input_plus_output" if both else "input", sent, output, source)


def token_counts(text: str, table: Table, codes: frozenset[str] = frozenset()) -> list[Number]:
    """Return the numbers of a text that may count tokens, in order, without codes, seconds, bytes, dates and so on."""
    found: list[Number] = []
    for match in _NUMBER.finditer(text):
        scale = _SCALE.get(match["scale"] or "", 1)
        if match["fraction"] and scale == 1 and not float(match["body"]).is_integer():
            continue
        digits = match["body"] if match["fraction"] else re.sub(r"\D", "", match["body"] or match["glued"])
        value = round(float(digits) * scale)
        before, after = text[max(0, match.start() - 40) : match.start()], text[match.end() : match.end() + 40]
        opened = before.endswith(("[", "(", "<"))
        if table["no count after"].match(after) or _OVERSHOT.search(before) or (opened and _LOWER_BOUND.match(after)):
            continue
        if not _IS_TOKENS.match(after):
            if table["no count before"].search(before) or str(value) in codes:
                continue
            opens = _STATEMENT.search(before) and _STATUS_OF_WORDS.match(after)
            if opens and 400 <= value < 600 and not _role(before, "", table)[1]:
                word = _ONE_WORD.match(after)
                if word is None or _role("", word[0], table)[0] not in {"sent", "limit"}:
                    continue
            if opened and value % 1024 and _STATUS_IN_BRACKETS.match(after):
                if 400 <= value < 600 and not _role(before[:-1], "", table)[1]:
                    continue
                # A lone number in brackets at the end is a provider's code, "exceeds limit (2013)"; 8192 is not.
                if value < 10_000 and not re.search(r"\d", text[: match.start()] + text[match.end() :]):
                    continue
        found.append(Number(value, match.start(), match.end()))
        if len(found) == _MAX_NUMBERS:
            break
    return found


def _role(before: str, after: str, table: Table) -> tuple[Role | None, bool]:
    """Return the role of a number between two pieces of text, and whether its words are next to it."""
    clause = _CLAUSE.split(before)[-1]
    filler = _FILLER.search(clause)
    edge = filler.start() if filler else len(clause)
    # The nearest words before it; of two with the same end the longer.
    left: tuple[int, int, Role | None] = (-1, 0, None)
    for role in _ROLES:
        for match in table[f"{role} before"].finditer(clause):
            if match.group() and (min(match.end(), edge), -match.start()) > left[:2]:
                left = (min(match.end(), edge), -match.start(), role)
    close = left[0] >= edge
    unit = _UNIT.match(after)
    rest = after[unit.end() :] if unit else after
    right: Role | None = next((role for role in _ROLES if table[f"{role} after"].match(rest)), None)
    if right is None:
        return left[2], close
    if close and left[2] == "output" and right == "sent" and _ADDED.match(before):
        return "output", True  # "prompt 10 + max_tokens 5 exceeds 12": the sum exceeds it
    if close and left[2] == "limit" and right != "limit" and not _IS_MORE.match(after):
        return "limit", True  # "a maximum of 8192 input tokens"
    return right, True


def _calculate(text: str, values: dict[int, int], chosen: dict[Role, int], table: Table) -> None:
    """Read "12 > 10", "10 < 12", "10 + 5 > 12" and "5 > 12 - 10"; names before a sum are in the same order."""
    for match in _COMPARED.finditer(text):
        first, second = values.get(match.start("a")), values.get(match.start("b"))
        if first is None or second is None or first == second or min(first, second) < _SMALLEST:
            continue
        if first > second or "<" in match["sign"]:  # 7000 / 8192 is not too long
            chosen["limit"], chosen["sent"] = min(first, second), max(first, second)
    for match in _SUM.finditer(text):
        first, second, bound = (values.get(match.start(name)) for name in ("a", "b", "c"))
        if first is None or second is None or bound is None:
            continue
        named = text[max(0, match.start() - 120) : match.start()]
        output, subject = table["output"].search(named), table["subject"].search(named)
        swapped = output is not None and subject is not None and output.start() < subject.start()
        chosen["input"], chosen["output"] = (second, first) if swapped else (first, second)
        chosen["limit"], chosen["sent"] = bound, first + second
    for match in _REST.finditer(text):
        output_tokens, bound, input_tokens = (values.get(match.start(name)) for name in ("out", "lim", "inp"))
        if output_tokens is not None and bound is not None and input_tokens is not None:
            chosen["output"], chosen["input"], chosen["limit"] = output_tokens, input_tokens, bound
            chosen["sent"] = output_tokens + input_tokens


_ROLES: Final[tuple[Role, ...]] = ("limit", "sent", "output", "input")

# Words before or after a number that determine its role ("no count": not tokens). In the samples the limit is 8192 and
# the request 9000 tokens; without its row the numbers of a sample are read wrongly.
# fmt: off
NUMBER_WORDS: Final[tuple[Row, ...]] = (
    Row("limit before: maximum", (r"\bmax(?:imum|imal\w{0,2}|\.)?(?: (?:allowed|supported|permitted|number|total|input"
        r"|prompt|context|sequence|tokens?|length|size|window|limit|reached|count|combined|capacity|configured|model"
        r"|request|of|is|was|for|the|this|your|has|which|that|to)){0,9}|(?:\b|_)max_(?!(?:new_|completion_"
        r"|output_)?tokens)\w{1,24}|\b(?:(?:n|num)_)?ctx\b|\btoken_limit\b|\blimit(?:s|ed|e)?\b(?: (?:of|is|was|for|the"
        r"|this|your|our|a|an|model|has|have|which|that|to|tokens?|prompt|input|messages)){0,4}"),
     "The prompt is too long, maximum 8192"),
    Row("limit before: context window", (r"\bcontext (?:is|holds|of)\b|\bcontext[ _-](?:window|length|size|limit|len"
        r"|capacity|budget)(?: holds| limit)?(?: (?:of|is|was|for|the|this|your|our|a|an|model|has|have|which|that|to"
        r"|tokens?)){0,4}|\b(?:model'?s?|loaded|available|supported) (?:context|window"
        r"|(?:\w{5} )?sequence length)\b(?![ _-](?:window|length|size|limit|len|cap|bud))"),
     "Prompt too long; loaded context 8192"),
    Row("limit before: at most", (r"\bat most\b|\bup to\b|<=?|\bfit (?:in|into|within)\b(?: (?:a"
        r"|the))?(?: context)?(?: (?:window|length))?(?: of)?|\b(?:(?<=, )have|truncate to|under|below|within)\b"
        r"|\b(?:less|fewer|shorter) than(?: or equal to)?(?: max_?tokens)?|\b(?:allow(?:s|ed)?|supports?|accepts?"
        r"|stops? at|loaded with|takes?(?! up)|handles?|process(?:es)?(?!:)|available|configured|capacity|threshold"
        r"|only|expected|reads?|window)\b(?: (?:at most|up to|only))?|\[[01], ?|\bbetween \d{1,3} and\b"),
     "The prompt is too long, at most 8192"),
    Row("limit before: more than", (r"\b(?:longer|larger|greater|more|bigger|higher) than\b|\bbeyond\b|\babove\b"
        r"|\bover\b|[^-]>=?|\bexce{1,2}d(?:s|ing)?\b|\bexce{1,2}ded\b(?! ?[:,;(])|\bsurpass(?:es|ing)?\b"),
     "The prompt is longer than 8192 tokens"),
    Row("limit before: other languages", (r"(?:最大|上限|限制|制限|最长|最多|不能超过|不得超过|不超过|超过|超出|小于"
        r"|窗口)(?:输入|上下文|允许|支持|入力|コンテキスト|トークン)?的?(?:长度|限制|上限|了|为|長|数|サイズ)?(?:である"
        r"|の|値)?|(?:최대|한도|제한)(?: ?(?:컨텍스트|입력|토큰))?(?: ?(?:길이|수|크기))?|\bgrenze\b(?: von)?"
        r"|\bhochst\w{0,10}|kontextfenster|(?:fenetre de contexte|(?:ventana|janela) de contexto"
        r"|finestra di contesto)(?: d\w{1,2} mod\w{1,3})?(?= ?\(| de \d)|uberschreitet|ubersteigt|\b(?:langer"
        r"|mehr) als\b|depasse(?: la limite)?|\baccepten?t?\b(?: que)?|\berlaubt\b(?: aber| sind)?|\badmite\b"
        r"|контекст модели|\bmaximale?\b(?: (?:de|du|contexte|est)){0,4}|excede|supera|\bmaxim[ao]\b(?: (?:de|del"
        r"|contexto|este|modelo|es|permitid[ao])){0,6}|ultrapassa|\bmassim\w(?: (?:di|consentit\w))?|eccede"
        r"|лимит\w{0,2}|максим\w{0,10}(?: (?:длин\w{1,3}|контекста|числ\w)){0,2}|предел\w{0,2}|превыша\w{1,3}"),
     "提示词过长，不超过 8192"),
    Row("limit after: maximum", (r"(?:is |was |are |as )?(?:the |model'?s? |our |its )?(?:model |token |input |prompt "
        r"|total )?(?:(?:max(?:imum)?|limit)\b(?! ?[=:(] ?\d)|cap\b|ceiling\b|context\b(?: window| length| size"
        r"| limit)?(?! \d)|window\b|allowed\b|supported\b|available\b)"), "The prompt is too long, 8192 cap"),
    Row("limit after: other languages", (r"上限|限制|の?(?:上限|制限|最大)|を(?:超|上回|オーバー)|に対し|(?:을"
        r"|를) (?:초과|넘)|(?:의 )?(?:한도|제한)|hochst|maximum|maximal|erlaubt|autorise|au maximum|permitid|maximo"
        r"|consentit|massimo|максим|лимит|допустим"), "提示词过长，8192 限制"),
    Row("sent before: requested", (r"\brequest(?:ed|s|ing)?\b(?:[_ ]tokens?| a total| about| up to| count| size"
        r"| length){0,2}|\b(?:contain|total|hold|use|come|amount|add|sum|need|require)(?:s|d|ed"
        r"|ing)?\b(?: (?:up )?(?:of|to|tokens?))?(?: over| more than)?|\b(?:ha(?:s|d|ve)|result(?:ed|s) in)\b(?: over"
        r"| more than)?|\b(?:will take|takes up)\b|\b(?:got|gave|given|received|supplied|provided|sen[dt]|submitted"
        r"|asked for|passed)\b"), "The context window is exceeded, requested 9000"),
    Row("sent before: current", (r"\b(?:current|actual|used|estimated|measured)(?:ly)?(?: (?:length|size|tokens?|usage"
        r"|count))?|\btoo (?:long|large|many|big)\b(?: tokens)?|\bkeep the first\b|\bcount(?: of)?\b"
        r"|\b(?:was|were|value)\b|\b(?:n|num|total)_tokens\b|\btoken_count\b|\bsequence(?: length)?(?: is| of)?\b"),
     "The context window is exceeded, currently 9000"),
    Row("sent before: other languages", (r"(?:请求|当前|实际|本次|共|总计|达到|传入|发送|您的)[了的]?总?(?:token数?"
        r"|tokens?|长度|数量|为|是)?|总长度|总数|(?<!上下文)长度|(?:リクエスト|現在|合計|要求"
        r"|実際)[はの]?(?:トークン数)?|トークン数|に対し[て、]?|(?:요청|현재|총|전송|실제)(?:된"
        r"|한)?(?: ?토큰)?(?: ?수)?|토큰 수|已使?用|\b(?:hat|umfasst)\b|\bange(?:fordert|fragt)\w{0,2}|\benthalt"
        r"|\bsind\b|\baktuell\w{0,2}|\bdemande\w{0,2}|\bcontient|\bcompt\w{1,2}\b|\bcomporte\b|\bsolicit\w{1,5}"
        r"|\bcontiene\b|\btiene\b|\benviad\w{1,2}\b|\bcontem\b|\btem\b|\bpossui\b|\brichiest\w{1,2}|\bha\b"
        r"|запрошен\w{0,2}|содерж\w{1,3}|составля\w{1,3}|получен\w{0,2}"), "超出上下文窗口，当前 9000"),
    Row("sent after: exceeds", (r"(?:,? ?(?:which |that |and )?(?:is |are |was |were )?(?:>=?|exce{1,2}d(?!ed(?: by"
        r"| ?[:,;.(]|$))|surpass(?!ed)|too (?:long|large|many)|over\b|above\b|(?:longer|larger|greater|more"
        r"|bigger) than))|cannot |vs\b|/ ?\d|(?:for|out of|of|against|versus) (?:a |an |the )?(?:max|limit|\d)"),
     "Context window: 9000 exceeds it"),
    Row("sent after: were sent", (r"(?:were |was |is )?(?:found|given|supplied|provided|requested|received|submitted"
        r"|sent|used|passed|in use)\b|long\b"), "The context window is exceeded: 9000 were sent"),
    Row("sent after: other languages", (r"超过|超出|大于|が(?:上限|最大|制限|コンテキスト)|が(?:入力|リクエスト|要求"
        r"|送信)|uberschr(?!itten)|uberst|ange(?:fordert|fragt)|(?:bei|von) (?:einem |maximal)|depass|demande"
        r"|(?:pour|sur) (?:un )?max|exced|super[ao]|solicitad|ultrapass|eccede|richiest|превыша|больше|запрош"
        r"|при максимуме"), "上下文超长：9000 大于"),
    Row("input before: prompt", (r"\b(?:n_)?(?:prompt|input|messages?|context|text)[_ ]?(?:tokens?|length|len"
        r"|size)?(?: (?:length|count|has|is|of))?\b(?: at least)?"), "It exceeds the context window: prompt 9000"),
    Row("input before: east Asian", (r"(?:输入|提示词?|消息)的?(?:长度|tokens?|token数)?|入力(?:トークン)?(?:数|長)?"
        r"|プロンプト長?|입력(?: ?토큰)?(?: ?수)?"), "超出最大上下文，输入 9000"),
    Row("input after: in the messages", (r"(?:(?:in|for|from|of|as) (?:the |your )?(?:text )?)?`?'?(?:requests?\b"
        r"|messages?\b|prompts?\b|inputs?\b|conversation|text\b)"),
     "The context window is exceeded, as there are 9000 in the prompt"),
    Row("output before: max_tokens", (r"\bmax(?:imum)?_?tokens\b|\bmax[_ ]?(?:new|completion|output)[_ ]?tokens\b"
        r"|\bcompletion\b|\boutput(?: tokens?)?\b|\breserved\b|\bgeneration\b"),
     "The context window of 8192 is exceeded: messages 8000, max_tokens 1000"),
    Row("output after: in the completion", (r"(?:reserved )?(?:(?:in|for|from|as|of) (?:the "
        r"|your )?(?:requested )?)?`?'?(?:completion|output|response|generation|reply|answer|max_\w{0,20}tokens)"),
     "The context window of 8192 is exceeded: messages 8000, 1000 for the completion"),
    Row("no count before: status", (r"\b(?:status(?:[_ ]?code)?|error(?:[_ ]?code)?|err(?:no|code)?|code|https?|line"
        r"|port|attempts?|retr(?:y|ied)|version|v|ref|id|pid|step|index|trace|after|temperature|seed|错误码|エラー"
        r"|오류)[\"']?(?: ?[:=#] ?| \(?|\()[\"'#-]?$"), "The context window is exceeded, error 8193"),
    Row("no count after: seconds", (r"[)\]]? ?-?(?:seconds?|secs?|s\b|ms\b|min(?:ute)?s?\b|hours?|days?|秒|分钟|секунд"
        r"|sekunden|secondes|segundos)|[)\]]? ?-?(?:bytes?|[kmg]i?b\b|char(?:acter)?s?\b|字符|字节|文字|글자|zeichen"
        r"|caract|символ)|[)\]]? ?-?(?:images?|documents?|tools?|files?(?! \")|pages?"
        r"|messages?\b(?! (?:tokens?|limit|length))|times?\b|attempts?\b|requests?\b"
        r"|retries|bad request|-? ?\{|draft|% |percent|parameters?\b|gpus?\b)"),
     "The context window is exceeded, it took 950 ms"),
    Row("no count after: overshoot", (r" ?tokens? (?:over|too many|too long|longer|more than|above|beyond|past)\b"),
     "The context window is exceeded: it has 808 tokens too many"),
)
# fmt: on
