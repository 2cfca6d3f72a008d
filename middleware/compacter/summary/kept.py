"""Kept lines: what stays word for word in a summary, with a model or without one.

A *source* is a function from the head to lines, each with a weight. ``SOURCES`` lists those of
every summary; ``story`` is what a summary without a model tells beside them. One budget and one
choice serve all: heavier lines first, and of equal ones the newer. Then the lines stand in order of
time, each under its speaker, with an ellipsis where something is left out.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, groupby
from typing import Any, NamedTuple

from compacter.messages.fields import flat
from compacter.summary.head import ELLIPSIS, Head, Said
from compacter.summary.message import LATER, RULE, rule_lines
from compacter.text.sentences import LONGEST, has_code
from compacter.text.values import parse
from compacter.text.words import clip, stems, words


class Line(NamedTuple):
    """Something that may stay word for word."""

    weight: float
    said: Said
    text: str
    """A sentence, a line or a short message, on one line."""
    at: int = 0
    """Its place within what was said."""


Source = Callable[[Head], Iterator[Line]]
_Key = tuple[int, str, int, str]
"""Place, speaker, place within, text."""

# -- weights, and how much less each further line of a kind is worth than the one before -----------

_STATE = 90.0
_TASK = 80.0
_NAMES = 75.0
_CORRECTION = 70.0
_DECISION = 60.0
_WISH = 55.0
_MESSAGE = 50.0
_FAILURE = 40.0
_STORY = 10.0
_FADES = 0.93
# A question is worth less: most were answered.
_ASKED = 0.6
# A closed item of a list is worth less than an open one.
_CLOSED = 0.7

# -- sizes in characters ---------------------------------------------------------------------------

_SHORT = 320
"""Longest message of a user that is kept whole: about three lines."""
_FIRST = 600
"""Characters of the first request, of which the beginning is kept."""
_WHOLE_LIST = 1_200
"""Longest call with a list of work that is kept whole; of a longer one the items."""
_NAMES_SIZE = 300
"""Characters of the line of names: in real runs it halved the steps that lack one (.060 to .028);
with 600 characters .018."""
_LONGEST = 300
_FIRST_OF_REPLY = 3
_LEAST = 16
_HANDLING = 12
"""Characters added to each cost: a fragment ("Yes.", "Oh no!") is worth less than its size."""
_VALUED = 6
"""Times that a statement of somebody with a figure in it is worth another."""
_SHAPE = 60
_SERIES = 3
"""Lines that differ only in digits: the first ones show what the series is."""
_BEHIND = 10_000
"""Place of what is found by its form, behind the numbers of sentences."""

# -- rules -----------------------------------------------------------------------------------------

_LONGEST_RULE = 320
_MOST_LATER = 3
"""Most later statements about rules: after ten compactions ten of fifteen kept rules were false
ones of these."""
_RULE_SHARE = 3
"""Rules take at most this part of a summary, but a small one's first 400 characters."""
_RULE_SIZE = 400
_LASTING_WORDS = """
    alway never now here going times circumstance immer nie jetzt sofort künftig nun toujours jamais
    désormais dorénavant maintenant siempre nunca ahora adelante sempre agora d'ora diante altijd
    nooit vanaf всегда никогда отныне впредь zawsze nigdy teraz zaman asla bundan 总是 永远
    从现在 从今 以后 今后 今後 不要再 總是 永遠 從現在 必ず 決して 絶対 これから 항상 절대
    앞으로 반드시 دائما أبدا हमेशा कभी
"""
_LASTING = tuple(_LASTING_WORDS.split())
"""Parts of words for what lasts: a text without any is read no further."""
_ORDERS = re.compile(
    r"(?i)^(?:[-*•>\d.)\s\"'“*_]{0,8})(?:(?:and|but|so|ok(?:ay)?|also|then|oh|well|remember|note|"
    r"important|rules?|please|just|hey|again|nb|ps|bitte|und|aber|s'il (?:te|vous) pla[iî]t|"
    r"por favor|per favore|пожалуйста|alsjeblieft|proszę|lütfen)\b[\s,:!-]{0,3}){0,3}"
    r"(?:(?:you (?:must|should|can|may|will|are to|have to|need to) |i want you to |try to |make "
    r"sure (?:to |you )|do )?(?:always|never)\s(?!(?:mind|knew|know|been|seen|heard|had|thought|"
    r"tried|got|did|was|were|is|has|have|wanted|liked|loved|said|say|again|ever|forget|up|here|"
    r"there|a|an|the|so|good|fun|nice|great|happy|glad|something|in|on|at|too)\b)|"
    r"(?:from (?:now|here) on|going forward|at all times|under no circumstances)\b|"
    r"(?!the|a|an|my|our|his|her|their|it|that|this|i|we|he|she|they)[^.!?]{4,80}\b"
    r"(?:from (?:now|here) on|going forward|at all times)\b)"
)
"""An English order with such a word at its beginning."""
_OTHER = re.compile(
    r"(?i)^[^,.!?。！？]{0,40}?(?:\b(?:immer|nie|niemals|ab (?:jetzt|sofort)|künftig|toujours|"
    r"von (?:jetzt|nun) an|jamais|désormais|dorénavant|à partir de maintenant|siempre|nunca|"
    r"a partir de ahora|de ahora en adelante|sempre|a partir de agora|d'ora in poi|altijd|nooit|"
    r"de agora em diante|vanaf nu|всегда|никогда|отныне|впредь|zawsze|nigdy|od teraz|her zaman|"
    r"asla|bundan sonra)\b|总是|永远|从现在开始|从今以后|以后都|今后|不要再|總是|永遠|從現在|"
    r"必ず|決して|絶対に|今後は|これからは|항상|절대|앞으로|반드시|دائما|أبدا|हमेशा|कभी)"
)
_OF_ONESELF = re.compile(
    r"(?i)\b(?:i|i'm|i've|we|he|she|they|ich|wir|er|je|j'|nous|il|elle|yo|me|nos|eu|io|ik|wij|я|мы|"
    r"он|она|ja|noch|fast|wie|comme|como|come|zoals|как)\b|我们?|私|僕|나는|저는"
)
"""Whose habits are told orders nothing: "I never eat eggs.", "wie immer"."""
_CHANGES = re.compile(
    r"(?i)\b(?:now|again|instead|no longer|any ?more|except|unless|exception|forget|drop|scrap|"
    r"cancel|withdr\w+|lift\w*|changed? (?:my|our) mind|is (?:fine|ok(?:ay)?|allowed)|may|"
    r"after all|nicht mehr|doch|wieder|jetzt|außer|stattdessen|plus besoin|maintenant|"
    r"sauf|finalement|ya no|ahora|salvo|excepto|más bien|больше не|теперь|кроме)\b|"
    r"现在|不用|除了|もう|これから|이제"
)
"""A word with which people change what they said."""
_NEARLY_ALL = 0.7
_HALF = 0.5
_SAME = 0.4
"""Share of a rule's topic that a statement about it has."""
_EMPTY = stems(
    "always never again from now on please make sure keep want need use when whenever every each"
)


def is_rule(sentence: str) -> bool:
    """Return whether a user's sentence is plainly meant to last: always, never, from now on."""
    if not 8 <= len(sentence) <= _LONGEST_RULE:
        return False
    plain = sentence.rstrip(" \"'*_)”")
    if plain.endswith(("?", "？", "؟", ":", "：", "…")) or has_code(plain):
        return False
    if _ORDERS.match(plain):
        return True
    other = _OTHER.match(plain)
    return other is not None and not _OF_ONESELF.search(plain)


def rules(head: Head, room: int, quoted: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the lines of rules: declared, of the earlier summary, and those that the user's own
    words show; then what the user said about them later. ``room`` is that of the summary, in
    characters; ``quoted`` are sentences of the user that a model calls rules.
    """
    fixed = rule_lines(head.declared)
    lines = dict.fromkeys(line for line in head.prior.rules if line not in fixed)
    topics = [stems(line) - _EMPTY for line in (*fixed, *lines)]
    quoted = set(quoted)
    for said in head.said:
        if said.speaker != "User" or said.place < 0:
            continue
        low = said.text.lower()
        short = len(low) <= _SHORT
        may_change = bool(topics) and short and _CHANGES.search(low)
        may_last = any(word in low for word in _LASTING)
        for sentence in said.sentences if quoted or may_change or may_last else ():
            if sentence in quoted or is_rule(sentence):
                lines[RULE + sentence] = None
                topics.append(stems(sentence) - _EMPTY)
            elif may_change and _is_later(sentence, topics):
                lines.pop(LATER + sentence, None)
                lines[LATER + sentence] = None
    later = [line for line in lines if line.startswith(LATER)]
    left = max(0, room // _RULE_SHARE, min(room * 2 // 3, _RULE_SIZE))
    left -= sum(len(line) + 1 for line in fixed)
    chosen = set[str]()
    for line in (
        *later[: -_MOST_LATER - 1 : -1],
        *(each for each in reversed(lines) if each not in later),
    ):
        if len(line) < left:
            left -= len(line) + 1
            chosen.add(line)
    return (*fixed, *(line for line in lines if line in chosen and line not in fixed))


def is_about(some: set[str], others: set[str]) -> bool:
    """Return whether the longer of two texts has nearly all words of the shorter."""
    both = len(some & others)
    sizes = (len(some), len(others))
    return both > _NEARLY_ALL * min(sizes) and both >= _HALF * max(sizes)


def _is_later(sentence: str, topics: Sequence[set[str]]) -> bool:
    """Return whether a statement changes something about a rule."""
    if sentence.endswith(("?", "？")) or not _CHANGES.search(sentence):
        return False
    about = stems(sentence) - _EMPTY
    return any(
        len(about & topic) > _SAME * min(len(about), len(topic)) for topic in topics if about
    )


# -- sources ---------------------------------------------------------------------------------------

_STATE_KEYS = ("status", "state")
_TEXT_KEYS = ("content", "step", "title", "subject", "task", "text", "name", "description", "item")
_ID_KEYS = ("id", "taskId", "task_id", "todo_id", "todoId", "item_id")
_IS_CLOSED = re.compile(
    r"(?i)complete|done|finish|resolv|cancel|skip|drop|abandon|delet|called off"
)
_CHECK = re.compile(
    r"(?m)^\s{0,12}\+?(?:[-*+•]|\d{1,3}[.)])?\s{0,4}(?:\[[ xX~/-]\]|[☐☑☒])\s+\S.{0,300}$"
)
_CREATED = re.compile(
    r"(?im)^(?:task|todo|item) #?(\w{1,36}) (?:was )?(?:created|added)\b.{0,30}: .{2,300}$"
)
_CORRECTS = re.compile(
    r"(?i)^\W{0,3}(?:no|nope|wrong|actually|correction|instead|wait|sorry|nein|falsch|doch|non|"
    r"en fait|нет)\b|\b(?:changed? (?:my|our) mind|change of plan|i meant|must be|(?:is|are) now|"
    r"new .{1,40}:|instead of|rather than|no longer|not .{1,40}\bbut\b|decided again|scratch that|"
    r"(?:re)?named|moved|changed|extended|undo|revert|from now on|nicht mehr|stattdessen|sondern|"
    r"plutôt|au lieu|ya no|en vez)\b|改成|改为|変更|取消|不对|而是|ではなく|아니라"
)
_DECIDES = re.compile(
    r"(?i)^\W{0,6}(?:decisions?|decided|resolved|agreed|conclusion|entscheidung|beschlossen|"
    r"décision|decisión|decisão|решение|решено)\b|\b(?:(?:we|i|they|you)(?:'ve| have)? (?:decided|"
    r"agreed|settled|chose|chosen)|(?:go|going|went) with|let's use|we(?:'ll| will) use|"
    r"wir nehmen|on prend|nos quedamos con)\b|决定|決定"
)
_WISHES = re.compile(
    r"(?i)\b(?:always|never|must|should|shall|do not|don't|only|please|make sure|ensure|prefer|"
    r"avoid|remember|instead|want|need|rather|better|try to|use|keep|note|immer|nie|bitte|soll\w*|"
    r"muss|nur|nicht|toujours|jamais|doit|dois|faut|siempre|nunca|debe|solo|всегда|никогда|нужно|"
    r"надо)\b|必须|不要|请|必ず|ください|항상|하지"
)
_FAILS = re.compile(
    r"(?m)^.{0,60}?(?:\b(?:ERROR|Error|FAILED|Failed|FATAL|Fatal|Exception|Traceback|denied|"
    r"rejected|refused|not found|No such|timed out|failed|cannot|fatal)\b|"
    r"[a-z](?:Error|Exception)\b).{0,300}$"
)
_MERGES = re.compile(r"\"merge\":\s?true")
_DIGITS = re.compile(r"\d+")
_IDENTIFIER = re.compile(r"[\w./#:@-]{6,100}")
_TELLING = re.compile(r"[^\W\d_].*\d|\d.*[^\W\d_]|\w[/_.]\w|[a-z][A-Z]")


def task(head: Head) -> Iterator[Line]:
    """The first request: its beginning."""
    first = next((said for said in head.said if said.speaker == "User"), None)
    left = _FIRST
    for at, sentence in first.pieces if first else ():
        left -= len(sentence)
        if left > 0 and first:
            yield Line(_TASK - at / 10, first, sentence, at)


def messages(head: Head) -> Iterator[Line]:
    """The user's short messages, the newest first; corrections before others, questions after."""
    weights = {_CORRECTION: 1.0, _MESSAGE: 1.0}
    for said in head.by("User"):
        if len(said.text) <= _SHORT or said.place < 0:
            kind = _CORRECTION if _CORRECTS.search(said.text) else _MESSAGE
            weight = kind * weights[kind]
            for at, text in said.pieces:
                asks = text.endswith(("?", "？", "؟"))
                yield Line(weight * (_ASKED if asks else 1), said, text, at)
            weights[kind] *= _FADES


def wishes(head: Head) -> Iterator[Line]:
    """Sentences of the user's longer messages that say how it shall be done, the newest message
    first.
    """
    weight = _WISH
    for said in head.by("User"):
        if len(said.text) > _SHORT and said.place >= 0:
            for at, text in said.pieces:
                if len(text) <= _LONGEST and _WISHES.search(text):
                    yield Line(weight - at / 1000, said, text, at)
            weight *= _FADES


def decisions(head: Head) -> Iterator[Line]:
    """What was settled, the newest first."""
    weight = _DECISION
    for said in head.by("Assistant", "User"):
        if _DECIDES.search(said.text):
            for at, text in said.pieces:
                if len(text) <= _LONGEST and _DECIDES.search(text):
                    yield Line(weight, said, text, at)
                    weight *= _FADES


def failures(head: Head) -> Iterator[Line]:
    """What went wrong, the newest first: one line of each result."""
    weight = _FAILURE
    shapes = set[str]()
    for said in head.by("Tool", kind="result"):
        line = _FAILS.search(said.text)
        text = flat(line[0]) if line else ""
        shape = _DIGITS.sub("0", text)
        if line and shape not in shapes and len(text) <= _LONGEST:
            shapes.add(shape)
            yield Line(weight, said, text, _BEHIND + line.start())
            weight *= _FADES


def states(head: Head) -> Iterator[Line]:
    """The newest state of lists of work: the last call of each tool that keeps one, word for word,
    changes of single items since, and the last checklist.
    """
    listed = set[str]()
    fresh_ids: dict[str, str] = {}
    has_checklist = False
    view = ((said, True) for said in reversed(head.view))
    for said, is_in_view in chain(view, ((said, False) for said in head.by("Tool", "Assistant"))):
        text = said.text
        lines: Iterable[Line] = ()
        if said.kind == "call" and "stat" in text and said.speaker not in listed:
            records = list(find_records(parse(text)))
            fresh = [each for each in records if _name_of(each) not in fresh_ids]
            fresh_ids.update((_name_of(each), state_of(each)) for each in fresh)
            if len(records) > 1 and not _MERGES.search(text):
                listed.add(said.speaker)
            lines = _state_lines(said, fresh, len(records)) if fresh else ()
        elif said.kind == "result" and (made := _CREATED.match(text)):
            closed = _IS_CLOSED.search(fresh_ids.get(made[1], "")) is not None
            lines = [Line(_STATE * (_CLOSED if closed else 1), said, flat(made[0]), _BEHIND)]
        elif not has_checklist and len(items := _CHECK.findall(text)) > 1:
            has_checklist = True
            lines = (
                Line(_STATE - at / 10, said, flat(item), _BEHIND + 2 * at)
                for at, item in enumerate(items)
            )
        if not is_in_view:
            yield from lines


def _state_lines(said: Said, records: Sequence[dict[str, Any]], every: int) -> Iterator[Line]:
    """Yield a call with a list word for word, or the items of it that are still true."""
    if len(records) == every and len(said.text) <= _WHOLE_LIST:
        yield Line(_STATE, said, flat(said.text))
        return
    for at, record in enumerate(records):
        closed = is_closed(record)
        shown = {key: value for key, value in record.items() if isinstance(value, (str, int))}
        text = clip(json.dumps(shown, ensure_ascii=False), _LONGEST)
        yield Line(_STATE * (_CLOSED if closed else 1) - at / 10, said, text, 2 * at)


def find_records(data: object, depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield the records with a state and a text or an id inside JSON, also inside its texts."""
    if isinstance(data, str):
        data = parse(data)
    if isinstance(data, dict) and state_of(data) and _name_of(data):
        yield data
    elif isinstance(data, (dict, list)) and depth < 6:
        for member in data.values() if isinstance(data, dict) else data:
            yield from find_records(member, depth + 1)


def state_of(record: dict[str, Any]) -> str:
    """Return the state of a record, or an empty text."""
    return next((word for key in _STATE_KEYS if isinstance(word := record.get(key), str)), "")


def is_closed(record: dict[str, Any]) -> bool:
    """Return whether the state of a record says that it is done or called off."""
    return _IS_CLOSED.search(state_of(record)) is not None


def text_of(record: dict[str, Any]) -> str:
    """Return the text of an item of a list, or an empty text."""
    return next((text for key in _TEXT_KEYS if isinstance(text := record.get(key), str)), "")


def _name_of(record: dict[str, Any]) -> str:
    """Return the id of an item, or else its text."""
    return next((str(record[key]) for key in _ID_KEYS if key in record), text_of(record))


def names(head: Head) -> Iterator[Line]:
    """The names that calls used most, on one line."""
    counts = Counter[str]()
    newest: Said | None = None
    for said in head.by("Tool"):
        if said.kind == "call" or said.speaker == NAMES:
            newest = newest or said
            every = {
                word.rstrip("/").strip(".:-#@")
                for word in _IDENTIFIER.findall(" ".join(said.sentences))
            }
            again = 2 if said.speaker == NAMES else 1
            counts.update({word: again for word in every if _TELLING.search(word)})
    chosen: list[str] = []
    left = _NAMES_SIZE
    for name, times in counts.most_common(200):
        if times > 1 and len(name) + 3 <= left and name not in head.view_text:
            chosen.append(name)
            left -= len(name) + 3
    if newest and chosen:
        yield Line(
            _NAMES, Said("", NAMES, newest.place, "call"), f" {ELLIPSIS} ".join(chosen), _BEHIND
        )


NAMES = "Tool calls"
"""Speaker of the line of names."""
SOURCES: tuple[Source, ...] = (
    states,
    task,
    names,
    messages,
    wishes,
    decisions,
    failures,
)


def story(indexes: Collection[int] | None = None) -> Source:
    """Return a source of every sentence and line, by the rare words in it: what a summary without a
    model tells. ``indexes`` are those of messages; ``None``: all.
    """

    def told(head: Head) -> Iterator[Line]:
        said = [one for one in head.said if one.speaker != NAMES]
        if indexes is not None:
            said = [one for one in head.by("User", "Assistant", "Tool") if one.index in indexes]
        texts = [[words(text) for text in one.sentences] for one in said]
        counts = Counter(word for lines in texts for each in lines for word in set(each))
        most = math.log(2 + sum(map(len, texts)))
        shapes = Counter[str]()
        for one, lines in zip(said, texts, strict=True):
            for (at, text), each in zip(one.pieces, lines, strict=True):
                telling = [word for word in set(each) if len(word) > 2]
                worth = sum(most - math.log(counts[word]) for word in telling)
                if one.speaker in ("User", "Assistant"):
                    worth *= _VALUED if _DIGITS.search(text) else 1
                else:
                    shape = _DIGITS.sub("0", text)[:_SHAPE]
                    shapes[shape] += 1
                    worth /= 1 + shapes[shape] // _SERIES
                if worth > 0 and len(text) <= LONGEST:
                    yield Line(_STORY * worth / (len(text) + _HANDLING), one, text, at)

    return told


def _answer(head: Head, said: Said) -> list[Line]:
    """Return the assistant's answer about the same as a short message of the user: work that is
    done must not be read as asked for.
    """
    after = said.place - head.said[0].place + 1
    if said.speaker != "User" or len(said.text) > _SHORT or after == len(head.said):
        return []
    reply = head.said[after]
    about = stems(said.text)
    return [
        Line(0, reply, text, at)
        for at, text in (reply.pieces if reply.speaker == "Assistant" else [])[:_FIRST_OF_REPLY]
        if len(text) <= _LONGEST and is_about(stems(text), about)
    ]


def keep(
    head: Head,
    budget: int,
    in_rules: Sequence[str] = (),
    *,
    sources: Sequence[Source] = SOURCES,
) -> str:
    """Return kept lines in at most ``budget`` characters, in order of time.

    What stands in the lines ``in_rules`` or in messages that stay is not kept again.
    """
    lines = [line for source in sources for line in source(head)]
    lines.sort(key=lambda line: (-line.weight, -line.said.place))
    told = {line.partition(": ")[2] for line in in_rules}
    begun = set[Said]()
    chosen: list[_Key] = []
    left = budget
    for line in lines:
        if len(line.text) + _HANDLING > left or line.text in told or _is_in_view(head, line.text):
            continue
        answer = [] if line.said in begun else _answer(head, line.said)
        group = [line, *(each for each in answer if each.text not in told)]
        price = sum(len(each.text) + 3 for each in group)
        price += sum(len(each.said.speaker) + 2 for each in group if each.said not in begun)
        if price <= left:
            left -= price
            for each in group:
                told.add(each.text)
                begun.add(each.said)
                chosen.append((each.said.place, each.said.speaker, each.at, each.text))
    return _write(chosen)


def _is_in_view(head: Head, text: str) -> bool:
    return len(text) > _LEAST and text in head.view_text


def _write(chosen: Iterable[_Key]) -> str:
    """Return the chosen lines in order of time, those of one text together."""
    written: list[str] = []
    for (_, speaker), keys in groupby(sorted(set(chosen)), lambda key: key[:2]):
        text = ""
        before = -2
        for _, _, at, piece in keys:
            between = "" if not text else " " if at == before + 1 else f" {ELLIPSIS} "
            text += between + piece
            before = at
        written.append(f"{speaker}: {text}")
    return "\n".join(written)
