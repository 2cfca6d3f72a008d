"""Trace what a model wrote to somebody's words. What nobody said goes.

A model invents orders, and calls finished work open; the request would carry both for ever. So each
sentence or item of its text is read once:

* an order, a wish, a rule, something decided, done or pending, in whatever form, must have its
  telling words in one message of somebody; if only an assistant or a tool said it, it is marked as
  theirs;
* so must a sentence that is no plain report of what was, as an order may have any form;
* a report stays, unless it has numbers that nobody said;
* what is finished is not open, and what a list of work has as open is not finished.

Linear in the conversation and in the text.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from compacter.messages.fields import flat
from compacter.summary import sections
from compacter.summary.head import Head, Said
from compacter.summary.sections import Sections
from compacter.summary.sources import read_items
from compacter.text.sentences import has_code
from compacter.text.words import is_about, stems

_ORDER = re.compile(
    r"(?i)\b(?:always|never|must(?:n't)?|shall|may|should(?:n't)?|ought|ha(?:s|ve|d) to|need\w*|"
    r"requir\w*|request\w*|ask(?:s|ed)? (?:\S+ ){0,3}(?:to|for|that|not)|want(?:s|ed)?|wish\w*|"
    r"please|do not|don't|ensure|make sure|from now on|instruct\w*|order(?:s|ed)?|insist\w*|"
    r"told (?:\S+ ){0,3}(?:to|not|never)|demand\w*|prefer\w*|expect\w*|rules?|polic\w+|agreed?|"
    r"decid\w+|decisions?|approv\w+|confirm\w*|permi\w+|allow\w*|forb\w+|pending|to-?do|open|"
    r"remain\w*|next|left to|done|complete\w*|finish\w*|cancel\w*|called off|"
    r"(?:is|are|was|were) to|to be \w+(?:ed|en|t)|immer|niemals|nie|muss|müssen|soll\w*|bitte|will|"
    r"möchte\w*|verlang\w*|gewünscht|wünscht|beschlossen|entschieden|erledigt|offen|toujours|"
    r"jamais|doi(?:t|vent)|faut|veut|veulent|souhait\w*|décid\w*|terminé\w*|siempre|nunca|deben?|"
    r"hay que|quieren?|pidi\w+|pide\w*|solicit\w*|sempre|deve(?:m|ono)?|devi|quer(?:em)?|pediu|"
    r"vuole|chiest\w*|mai|всегда|никогда|долж\w+|нужно|надо|хоч\w+|прос\w+|попрос\w+|требу\w+|"
    r"реш\w+|altijd|nooit|moet\w*|wil|zawsze|nigdy|musi\w*|her zaman|asla|gerek\w*)\b|"
    r"必须|务必|总是|永远|不要|不得|不能|要求|希望|决定|请|应该|需要|待办|已完成|必ず|決して|ください|べき|"
    r"ない|依頼|항상|절대|반드시|하지 ?마|해야|요청|원한|دائما|أبدا|يجب|हमेशा|कभी|चाहिए"
)
"""A word of orders, wishes, rules, decisions, and of what is open or done."""
_REPORT = re.compile(
    r"(?i)\W{0,6}(?:(?:the )?(?:user|assistant)s?\b|(?:they|he|she|it|we|i|this|that|there|sie|er|"
    r"es|wir|ich|ils?|elles?|nous|ellos|él|они|он|она)\b|"
    r"(?:(?!\b(?:that|which|who|when|once|if|after|until|unless|as|where|because|and|or)\b)"
    r"\S{1,40}\s+){1,8}?"
    r"(?:was|were|had|has|have|did|been|war|waren|wurden?|hatten?|haben|hat|était|étaient|ont|"
    r"avait|fue|fueron|era|han|había|foi|foram|был[аио]?|(?:is|are)(?! to\b))\b)"
)
"""The beginning of a report: about somebody, or of what is or was."""
_OF_USER = re.compile(
    r"(?i)\busers?\b.{0,24}\b(?:ask|want|request|said|says|told|prefer|need|wish|demand|"
    r"insist|expect|instruct|decid|agree|approv|order|requir|would like)|"
    r"\bas (?:requested|instructed|agreed|asked)\b|"
    r"\b(?:nutzer|benutzer|utilisateur|usuario|usuário|utente|пользовател\w+)\b.{0,16}\b(?:will|"
    r"möchte|verlang|hat |veut|demand|a dit|quiere|pid|quer|ped|vuole|ha chiesto|хо[чт]|прос|"
    r"попрос)|(?:用户|用戶)(?:要求|希望|想|说|說)|ユーザーは|사용자(?:는|가)"
)
"""Words by which something is said to be the user's wish."""
# Words, or the section before them, by which something is open, or not any more.
_OPEN = re.compile(
    r"^questions |\b(?:pending|to-?do|open|remain\w*|next|still|"
    r"not (?:yet )?(?:done|finished|complete\w*)|"
    r"unfinished|incomplete|left to|needs? to|ha(?:s|ve) to|must|should|offen|noch|à faire|"
    r"reste\w*|pendientes?|por hacer|falta\w*|осталось|ещё)\b|待办|还|未完成|まだ|残|아직"
)
_CLOSED = re.compile(
    r"\b(?:done|completed?|finished|resolved|closed|merged|shipped|called off|cancell?ed|"
    r"skipped|withdrawn|erledigt|fertig|abgesagt|terminé\w*|fini\w*|annulé\w*|hecho|terminad\w+|"
    r"cancelad\w+|сделан\w*|готово|отмен\w+)\b|已完成|取消|完了|완료"
)
_NOT = re.compile(
    r"(?i)\b(?:not|never|no|don't|doesn't|mustn't|without|nicht|nie|kein\w*|ne|pas|jamais|nunca|"
    r"не|никогда)\b|不|没|勿|ない|않|마"
)
_FRAME_WORDS = """
    user users assistant asked asks wants wanted requested requests request rule rules always never
    should must pending done decided decision decisions completed complete finished still open task
    todo needs needed agreed according explicitly per instructed said told also being tool summary
    conversation far next remaining remains currently continues earlier above
"""
_FRAME = stems(_FRAME_WORDS)
"""Words of summaries and of orders themselves: they tell nothing of what is ordered."""
_CLAIMED = frozenset(("task", "decisions", "done", "pending", "cancelled", "questions"))
"""Sections whose items are somebody's, whatever their form."""
_WANTED = frozenset(("task", "decisions", "pending", "questions"))
"""Sections in which what only a tool said has no place."""
_FINISHED = ("done", "cancelled")
"""Sections of what is not open any more."""
_SHORTEST_RULE = 4
"""Longest text that is no quotation of a rule: "it"."""
_EARLIER = -1_000_000
"""Place of what the earlier summary tells, before all that it quotes."""
_MOST = 300
"""Texts that are remembered for a word, the newest: all would make a talk about one thing
quadratic."""
_PART_MISSING = 4
"""One telling word of so many may be another than in the message."""
_MOST_CLOSED = 12
"""Finished items that are kept though a model left them out."""
# Digits of a number that a model must not invent.
_LONG_NUMBER = 3
_NAMED = re.compile(r"\w[/_@]\w|\w\.\w\w")
"""Part of a path, an address, an identifier, which a model must not invent."""
_MARKS = " \t\"'`*_“”„«»‘’()[]"
_LABEL = re.compile(r"(Assistant|Tool(?: [^:\n]{1,80})?): ")


class Checked(NamedTuple):
    """A checked story."""

    story: str
    quoted: frozenset[str]
    """Sentences of the user that the model calls rules."""
    unsupported: tuple[str, ...]
    """What nobody said, or what is not so any more."""


def check(head: Head, text: str, story: str, known_rules: Sequence[str] = ()) -> Checked:
    """Return what the conversation bears out of a model's ``text``, which updates ``story``.

    ``known_rules`` are the lines of rules that are there already.
    """
    before = sections.parse(story)
    items = dict(sections.parse(text))
    if "" in items and "" not in before:
        items = {"facts": items[""]}
    evidence = _Evidence(head, before)
    quoted = set[str]()
    dropped: list[str] = []
    rules = flat("\n".join(known_rules))
    for item in items.pop("rules", ()):
        sources = _sentences_of_user(head, item)
        quoted.update(sources)
        if not sources and flat(item).strip(_MARKS) not in rules:
            dropped.append(f"rules: {item}")
    checked: dict[str, list[str]] = defaultdict(list)
    for key, each in items.items():
        for item in each:
            said = evidence.judge(item, key)
            # What only a tool said is no task, whatever it orders.
            is_tools = key in _WANTED and said.startswith("Tool ")
            if said:
                checked["facts" if is_tools else key].append(said)
            else:
                dropped.append(f"{key}: {item}" if key else item)
    for key in _FINISHED:
        own = list(map(_telling, checked[key]))
        lost = [
            item
            for item in before.get(key, ())
            if not any(is_about(_telling(item), each) for each in own)
        ]
        checked[key] = [*lost, *checked[key]][-_MOST_CLOSED:]
    return Checked(sections.render(checked), frozenset(quoted), tuple(dropped))


def _telling(item: str) -> set[str]:
    return stems(_LABEL.sub("", item)) - _FRAME


def _sentences_of_user(head: Head, quote: str) -> list[str]:
    """Return the whole sentences of the user that contain ``quote``; empty if there are none.

    Whole, as a part may mean the opposite: "delete the backups" of "Never delete the backups".
    """
    wanted = flat(quote).strip(_MARKS).rstrip(".。!")
    return [
        piece
        for said in (head.said if len(wanted) > _SHORTEST_RULE else ())
        if said.speaker == "User" and wanted in flat(said.text)
        for _, piece in said.pieces
        if (wanted in piece or piece.rstrip(".。!") in wanted) and not piece.endswith(tuple("?？؟"))
    ]


class _Evidence:
    """Who said the words of some items, and what is finished."""

    def __init__(self, head: Head, before: Sections) -> None:
        self._before = before
        self._earlier = dict.fromkeys(chain(*before.values()))
        # As it was checked: what nobody else stands for is the user's.
        self._said = [
            *(
                Said(item, label[1] if (label := _LABEL.match(item)) else "User", _EARLIER)
                for item in self._earlier
            ),
            *head.said,
        ]
        self._holding: dict[str, list[Said]] = {}
        self._states: list[tuple[set[str], bool, int]] = []

    def judge(self, item: str, section: str) -> str:
        """Return an item that somebody has said, marked where only an assistant or a tool did; an
        empty text for another.
        """
        own = _telling(item)
        is_claimed = section in _CLAIMED or _ORDER.search(item) is not None
        if not own or self._is_outdated(item, section, own):
            return ""
        exact = {word for word in own if len(word) >= _LONG_NUMBER and not word.isalpha()}
        exact.update(*(stems(word) for word in item.split() if _NAMED.search(word)))
        is_report = not is_claimed and (_REPORT.match(item) is not None or len(own) < 2)
        if item in self._earlier or (is_report and not exact):
            return item
        holding = self._holding or self._read_words()
        if is_report or not holding.keys() >= exact:
            return item if holding.keys() >= exact else ""
        # The telling words stand in one text of somebody.
        hits = Counter(chain(*(holding.get(word, ())[-_MOST:] for word in own)))
        least = max(1, len(own) - len(own) // _PART_MISSING if is_claimed else len(own) // 2 + 1)
        speakers = {
            "Assistant" if said.kind == "call" else said.speaker
            for said, count in hits.items()
            if count >= least
            and (said.speaker != "User" or not is_claimed or _is_as_negative(said, item, own))
        }
        if "User" in speakers:
            return item
        label = min(speakers, default="")
        if not label or (is_claimed and _OF_USER.search(item)):
            return ""
        if (label == "Assistant" and not is_claimed) or has_code(item) or _LABEL.match(item):
            return item
        return f"{label}: {item}"

    def _read_words(self) -> dict[str, list[Said]]:
        """Return the texts that have each word, in order; read where an item needs it."""
        self._holding = defaultdict(list)
        for said in self._said:
            for word in said.stems:
                self._holding[word].append(said)
        return self._holding

    def _is_outdated(self, item: str, section: str, own: set[str]) -> bool:
        """Return whether an item is told as open though it is finished, or the other way round."""
        is_done = section in _FINISHED
        text = f"{section} {item}".lower()
        is_open = not is_done and _OPEN.search(text) is not None
        if not (is_open or _CLOSED.search(text)):
            return False
        self._states = self._states or list(self._read_states())
        about = [(closed, at) for words, closed, at in self._states if is_about(own, words)]
        closed, last = about[-1] if about else (not is_open, 0)
        # The user may ask for it again.
        return closed == is_open and not any(
            2 * len(own & said.stems) > len(own)
            for said in (self._said if is_open else ())
            if said.speaker == "User" and said.place > last
        )

    def _read_states(self) -> Iterator[tuple[set[str], bool, int]]:
        """Yield the telling words of items, whether they are finished, and where that was said."""
        for key in _FINISHED:
            yield from ((_telling(item), True, _EARLIER) for item in self._before.get(key, ()))
        for said in self._said:
            if said.kind == "call" and "stat" in said.text:
                for item in read_items(said.text):
                    yield _telling(item.name), item.is_closed, said.place
            elif (
                said.place > _EARLIER and said.kind == "text" and _CLOSED.search(said.text.lower())
            ):
                for _, text in said.pieces:
                    if _CLOSED.search(text.lower()) and not _OPEN.search(text.lower()):
                        yield _telling(text), True, said.place


def _is_as_negative(said: Said, item: str, own: set[str]) -> bool:
    """Return whether the sentence with most of the words of an item is as negative as it."""
    pieces = [text for _, text in said.pieces]
    closest = max(pieces, key=lambda text: len(own & stems(text)), default="")
    return (_NOT.search(item) is None) == (_NOT.search(closest) is None)
