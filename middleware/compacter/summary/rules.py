"""Find standing instructions of the user, which apply to more than one answer, and later changes of
them.

Precision comes before recall: a sentence is a rule only if its form shows that it lasts ("always",
"never", "from now on", "whenever ...", "please don't ...", "reply in German"), and only in messages
of the user.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Final

from compacter.messages.parts import Part
from compacter.summary import order_words, other_languages, rule_words, wish_words
from compacter.summary.message import LATER, RULE, rule_lines
from compacter.summary.rule_words import Row
from compacter.text.speech import TYPED, Sentence, read
from compacter.text.words import UNSPACED, stems_of_words, words

# Letters of the shortest rule; one of a script without spaces counts twice.
_SHORTEST = 8
# Characters of the longest rule.
_LONGEST = 320
# Characters of the longest statement that changes a rule.
_LONGEST_CHANGE = 200
# Smallest share of the shorter statement's words that two statements about the same share.
_SAME = 0.3
# Sentences, in a short conversation, that a word may be in and still tell a topic.
_FEW = 4
# Most rules with which a later statement is compared, and most later statements that are kept: the
# newest.
_MOST_TOPICS = 200
_MOST_CHANGES = 60

_EMPTY_WORDS = """
    always never again back into only don't can't can make sure keep want like need prefer use used
    using longer anymore instead now you all every each not are rule immer niemals bitte nicht mehr
    wieder jetzt dass nach toujours jamais plus maintenant siempre nunca para ahora
"""
_EMPTY = frozenset(_EMPTY_WORDS.split())

_EDGE = r"\b"
# "Ok, but please never ...", in quotation marks.
_MOST_LEADS = 4

Table = Mapping[str, re.Pattern[str]]
"""Compiled pattern of each meaning."""


ROWS: Final = (
    *rule_words.BEGINNINGS,
    *rule_words.VETOES,
    *order_words.ORDERS,
    *wish_words.WISHES,
    *other_languages.LASTING,
    *other_languages.TELLING,
    *rule_words.FOR_GOOD,
    *order_words.FOR_GOOD,
    *rule_words.CHANGES,
    *other_languages.CHANGES,
)
"""The whole table."""


def compiled(rows: Iterable[Row]) -> dict[str, re.Pattern[str]]:
    """Return one compiled pattern for each meaning.

    A pattern that begins with an edge of a word does so in each of its alternatives.
    """
    patterns: dict[str, list[str]] = {}
    at_edges: dict[str, list[str]] = {}
    for row in rows:
        patterns.setdefault(row.meaning, [])
        # The edge is looked for once for all rows, which takes half the time.
        if row.pattern.startswith(_EDGE):
            at_edges.setdefault(row.meaning, []).append(f"(?:{row.pattern[len(_EDGE) :]})")
        else:
            patterns[row.meaning].append(f"(?:{row.pattern})")
    for meaning, each in at_edges.items():
        patterns[meaning].append(f"{_EDGE}(?:{'|'.join(each)})")
    return {meaning: re.compile("|".join(each)) for meaning, each in patterns.items()}


_TABLE: Table = compiled(ROWS)


def tone(sentence: str, table: Table = _TABLE) -> int | None:
    """Return 1 for a rule that is an order or speaks of persons, -1 for an impersonal one, ``None``
    for no rule.
    """
    plain = table["mark"].sub("", sentence.replace("’", "'").strip()).replace("**", "")
    plain = table["addressed"].sub("", plain, count=1)
    letters = len(plain) + len(UNSPACED.findall(plain[:_SHORTEST]))
    if letters < _SHORTEST or len(plain) > _LONGEST:
        return None
    # A question orders nothing, and a line that ends with a colon is a heading.
    if plain.rstrip(" \"'*_)").endswith(("?", "？", "؟", ":", "：")):
        return None
    if table["no prose"].match(plain.lower()) or table["at hand"].match(plain):
        return None
    low = table["signed"].sub("", plain, count=1).lower()
    if table["reported"].search(low):
        return None
    # In other languages the word is enough, at any place; the English "never" and "always" tell of
    # somebody unless the sentence begins with them.
    lasts = table["lasts"].search(low) and not table["tells"].search(low)
    if lasts or _is_order(low, table):
        return 1
    if table["wish"].search(low):
        return 1 if table["person"].search(low) else -1
    return None


def _is_order(sentence: str, table: Table) -> bool:
    """Return whether ``sentence`` begins with an order, after words that lead to it."""
    at = 0
    for _ in range(_MOST_LEADS):
        if table["order"].match(sentence, at):
            return True
        # Only now, as some orders begin with such a word: "remember to".
        lead = table["lead"].match(sentence, at)
        if lead is None:
            return False
        at = lead.end()
    return table["order"].match(sentence, at) is not None


def takes_back(sentence: str, table: Table = _TABLE) -> bool:
    """Return whether ``sentence`` has a word with which people withdraw or change an earlier
    statement.
    """
    return table["takes back"].search(sentence.lower()) is not None


def is_for_good(sentence: str, table: Table = _TABLE) -> bool:
    """Return whether a rule is one that is asked of an assistant, not of a friend."""
    plain = table["signed"].sub("", table["addressed"].sub("", sentence, count=1), count=1)
    return table["for good"].search(plain.lower()) is not None


def _about(text: str) -> set[str]:
    """Return the topic of ``text``: its words without common ones and those typical of rules."""
    return stems_of_words(word for word in words(text) if word not in _EMPTY)


def overlap(some: set[str], others: set[str]) -> float:
    """Return the number of words in both sets, as a share of the smaller set."""
    return len(some & others) / min(len(some), len(others)) if some and others else 0.0


def lines(
    parts: Sequence[Part],
    prior: Sequence[str] = (),
    declared: Sequence[str] = (),
    budget: int = 2_000,
    quoted: Collection[str] = (),
) -> list[str]:
    """Return the rules and later statements about them, oldest first, in at most ``budget``
    characters.

    ``prior`` are the lines of an earlier summary. ``declared`` are the rules set by the program:
    they always come first and complete, whatever the budget. ``quoted`` are sentences of the user
    that are rules in any form. Of the rest a rule is kept only with the later statements that
    change it; typed ones are preferred to those in long documents, and newer ones to older.
    """
    fixed = list(rule_lines(declared))
    entries: dict[str, int] = {}
    for line in prior:
        if line.startswith((RULE, LATER)) and line not in fixed:
            entries[line] = 0
    for line, size in _rule_lines(parts, [*fixed, *entries], quoted):
        if line not in fixed:
            entries.pop(line, None)
            entries[line] = size
    for line in [line for line in entries if line.startswith(LATER)][:-_MOST_CHANGES]:
        del entries[line]
    listed = list(entries)
    room = budget - sum(len(line) + 1 for line in fixed)
    changes = {place: _about(line) for place, line in enumerate(listed) if line.startswith(LATER)}
    chosen: set[int] = set()
    for place in sorted(
        range(len(listed)), key=lambda at: (at not in changes, entries[listed[at]] > TYPED, -at)
    ):
        # A shorter one may still fit.
        if len(listed[place]) >= room:
            continue
        about = _about(listed[place])
        later = {
            other
            for other, said in changes.items()
            if other > place and overlap(about, said) >= _SAME
        }
        if place in changes or chosen.issuperset(later):
            chosen.add(place)
            room -= len(listed[place]) + 1
    return [*fixed, *(listed[place] for place in sorted(chosen))]


def _rule_lines(
    parts: Sequence[Part], known: list[str], quoted: Collection[str]
) -> Iterator[tuple[str, int]]:
    """Yield the lines that ``parts`` add to ``known``, each with the size of the message it is
    from.
    """
    told = [
        part for part in parts if part.role == "user" and part.kind == "text" and part.text.strip()
    ]
    # If both sides sign their messages, it is a conversation of two people, who order one another
    # about too.
    answers = [part for part in parts if part.role == "assistant" and part.kind == "text"]
    are_people = bool(_signature(told)) and _signature(answers) not in ("", *rule_words.ASSISTANTS)
    sentences = list(read(told))
    tones = {
        text: direction
        for text in {one.text for one in sentences if one.prose}
        if (direction := tone(text)) and (not are_people or is_for_good(text))
    }
    if not (known or tones or quoted):
        return
    # A long text with more impersonal rules than others is a pasted document, whose rules are not
    # the user's.
    personal = Counter[int]()
    for sentence in sentences:
        personal[sentence.part] += tones.get(sentence.text, 0) if sentence.size > TYPED else 0
    ruled = {
        one.text
        for one in sentences
        if tones.get(one.text) == 1 or (one.text in tones and personal[one.part] >= 0)
    }
    ruled.update(quoted)
    about_one = cache(_about)
    common = Counter(
        word for one in sentences for word in set().union(*map(about_one, one.text.split()))
    )
    # A word in more than an eighth of the sentences is what the whole conversation is about.
    most = max(_FEW, len(sentences) // 8)
    topics = deque((_about(line.partition(": ")[2]) for line in known), _MOST_TOPICS)
    for sentence in sentences:
        text = sentence.text
        rule = text in ruled and (sentence.prose or text in quoted)
        if not rule and not (topics and _may_change(sentence)):
            continue
        about = {word for word in _about(text) if common[word] <= most}
        if rule:
            yield RULE + text, sentence.size
        elif any(overlap(about, topic) >= _SAME for topic in topics):
            yield LATER + text, 0
        else:
            continue
        topics.append(about)


def _signature(parts: Iterable[Part]) -> str:
    """Return the name with which most of the messages begin, in lower case, or an empty text;
    "Day 2: " and "Task: " are no names.
    """
    signed = _TABLE["signed"]
    names = Counter(
        match[1].lower() if (match := signed.match(part.text.lstrip())) else "" for part in parts
    )
    name, times = names.most_common(1)[0] if names else ("", 0)
    return name if times >= _FEW // 2 and times * 2 > names.total() else ""


def _may_change(sentence: Sentence) -> bool:
    """Return whether a statement was typed and has a word with which people change an earlier
    statement.
    """
    typed = sentence.prose and sentence.size <= TYPED and len(sentence.text) <= _LONGEST_CHANGE
    return typed and not sentence.text.endswith(("?", "？")) and takes_back(sentence.text)
