"""What a conversation says about the items of a summary: who said their words, and what was said
last about them. Linear in the conversation and in the items.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate

from compacter.messages.fields import flat
from compacter.messages.parts import Part
from compacter.text.find import Finder
from compacter.text.sentences import sentences
from compacter.text.speech import named
from compacter.text.words import Run, clip, reader, runs, stems, words

Sections = Mapping[str, tuple[str, ...]]
"""Items of a summary by section."""

_LONGEST_RULE = 400
"""Longest sentence of a user in characters; a longer one is a pasted text."""
_SHORTEST_QUOTE = 8
"""Shortest part of a sentence that counts as a quotation, in characters: "never" is in many."""
_BEARS = 0.3
"""Share of the weight of an item's words from which on a sentence is about it. With less, "the
tests pass" was about each item with tests."""
_MOSTLY = 0.5
"""Share of an item's words from which on they are somebody's: more than half."""
_HARDLY = 0.34
"""Share of an item's words below which people have not said it: a third are names and numbers that
everybody repeats."""
_LAST_WORD = 160
"""Most characters of a last statement: about two lines."""
_NEWEST = 200
"""Sentences that are remembered for a word, the newest, of which the last statement is one. All of
them would make a conversation about one thing quadratic."""
_MOST_TOOLS = 20
"""Names of tools that are told apart; hosts with more give each result a name of its own."""
_LIKELY = 3
"""Tools with most of an item's words, whose texts are compared with it."""
_MOST_ALIKE = 50
"""Items compared because they share a word: a summary has fewer in a section."""
_NEARLY_ALL = 0.8
"""Share of the shorter item's words that two items about the same have in common."""
_HALF = 0.5
"""Share of the longer item's words that two items about the same have in common."""
_LABEL = re.compile(r"^(?:User|Assistant|Tool(?: [^:\n]{1,80})?): ")
SAID_LAST = re.compile(r" \[(?:User|Assistant) said last: ")
"""Beginning of the last statement that a check adds to an item."""
_NAME_END = re.compile(r": | [-–—=(] ?|\t|, ")
_PUNCTUATION = "\"'`*_,;:!?()[]{}<>“”„«»。、"
_MARKS = " \t\"'`*_“”„«»‘’()[]"


def bare(item: str) -> str:
    """Return an item of a summary without the speaker and the last statement that a check has
    added.
    """
    return SAID_LAST.split(_LABEL.sub("", item))[0]


def name_of(item: str) -> str:
    """Return the name at the beginning of an artifact's line, without its description."""
    text = bare(item)
    end = _NAME_END.search(text)
    return flat(text[: end.start()] if end else text).strip(_MARKS)


def _like_a_name(word: str) -> bool:
    """Return whether a word is a path, an address or a name with a dot, which a model must not
    invent.
    """
    inner = word.strip(_PUNCTUATION + ".")[1:-1]
    return any(mark in inner for mark in "/._@\\")


def _names(item: str) -> list[str]:
    """Return the artifact's name and all words of its line that look like names."""
    inside = [word.strip(_PUNCTUATION) for word in bare(item).split() if _like_a_name(word)]
    return [name_of(item).strip(_PUNCTUATION), *inside]


class Items:
    """Some items, among which those about the same as another can be found."""

    def __init__(self, items: Iterable[str]) -> None:
        self._items = list(items)
        self._stems = [stems(bare(item)) for item in self._items]
        self._holding: dict[str, list[int]] = defaultdict(list)
        for place, own in enumerate(self._stems):
            for stem in own:
                self._holding[stem].append(place)

    def like(self, item: str) -> str:
        """Return the first item about the same, or an empty text.

        The longer one of two such items has nearly all words of the shorter.
        """
        own = stems(bare(item))
        shared = Counter(place for stem in own for place in self._holding[stem][:_MOST_ALIKE])
        for place in sorted(shared):
            sizes = (len(own), len(self._stems[place]))
            both = shared[place]
            if both > _NEARLY_ALL * min(sizes) and both >= _HALF * max(sizes):
                return self._items[place]
        return ""

    def has_like(self, item: str) -> bool:
        """Return whether one of the items is about the same."""
        return bool(self.like(item))


class Evidence:
    """Words of a conversation, by speaker, to check the items of a summary. Linear in its text."""

    def __init__(self, entries: Sequence[Part], items: Iterable[str], before: Sections) -> None:
        """Read the words of ``items`` in ``entries``; ``before`` are the checked sections of the
        prior summary.
        """
        asked = [bare(item) for item in items]
        kept = [bare(item) for key in before for item in before[key]]
        self._entries = entries
        self._asked = asked
        self._kept = kept
        self._wanted = stems(" ".join([*asked, *kept]))
        self._wanted_runs = {run for item in asked for run in runs(item)}
        self._texts: dict[str, list[str]] = defaultdict(list)
        self._runs: dict[str, set[Run]] = {}
        for name, entry in named(entries):
            is_tool = entry.kind == "result" or entry.role == "tool"
            who = f"Tool {name}".strip() if is_tool else entry.role
            if who not in self._texts and len(self._texts) > _MOST_TOOLS and is_tool:
                who = "Tool"
            self._texts[who].append(entry.text)
        self._stems: dict[str, set[str]] = defaultdict(set)
        for who, texts in self._texts.items():
            distinct = {word for text in texts for word in text.split()}
            self._stems[who] = stems(" ".join(distinct)) & self._wanted
        for key, items_before in before.items():
            said = stems(" ".join(map(bare, items_before)))
            self._stems["user" if key == "task" else "assistant"] |= said & self._wanted

        # For each word of the items, the tools whose texts contain it.
        self._tools: dict[str, list[str]] = defaultdict(list)
        for who, held in self._stems.items():
            for stem in held if who.startswith("Tool") else ():
                self._tools[stem].append(who)
        # Sentences of users and assistants, each with its speaker's role.
        people = [
            one for one in entries if one.kind == "text" and one.role in ("user", "assistant")
        ]
        self._said = [(one.role, sentence) for one in people for sentence in sentences(one.text)]
        # For each word of the items, the numbers of the newest of these sentences that contain it,
        # and how many do. Read when a sentence about an item is first wanted.
        self._bearing: dict[str, deque[int]] = {}
        self._counts: Counter[str] | None = None
        # Sentences of the user that may be rules, and where each begins in the text of all.
        self._typed = [
            said
            for role, said in self._said
            if role == "user" and len(said) <= _LONGEST_RULE and not said.endswith(("?", "？"))
        ]
        self._starts = [0, *accumulate(len(said) + 1 for said in self._typed)]
        self._quotations: Finder | None = None
        self._names: Finder | None = None

    def find_sentences_of_user(self, quote: str) -> list[str]:
        """Return the whole sentences of the user that contain ``quote``; empty if it is not a
        quotation.

        Whole, as a part may mean the opposite: "delete the backups" of "Never delete the backups".
        """
        pieces = sentences(bare(quote).strip(_MARKS))
        if len(pieces) < 2:
            pieces = [flat(bare(quote))]
        holding = [self._sentence_with(piece.strip(_MARKS).rstrip(".。 ")) for piece in pieces]
        return holding if all(holding) else []

    def _sentence_with(self, text: str) -> str:
        """Return the last sentence of the user that contains ``text``, or an empty text."""
        if self._quotations is None:
            self._quotations = Finder("\n".join(self._typed), self._asked)
        for start in self._quotations.find(text):
            said = self._typed[bisect_right(self._starts, start) - 1]
            if text in said if len(text) >= _SHORTEST_QUOTE else text == said.rstrip(".。!！ "):
                return said
        return ""

    def holds_name(self, item: str) -> bool:
        """Return whether the conversation has the artifact ``item``, and all words in it that look
        like names.
        """
        if self._names is None:
            texts = (*self._kept, *(entry.text for entry in self._entries))
            wanted = (name for one in self._asked for name in _names(one))
            self._names = Finder("\n".join(map(flat, texts)), wanted)
        held = self._names
        return all(name and held.holds(name) for name in _names(item))

    def share(self, item: str, *who: str) -> float:
        """Return the share of the words of ``item``, without common ones, that these
        speakers used.
        """
        own = stems(bare(item))
        held = sum(any(stem in self._stems[speaker] for speaker in who) for stem in own)
        return held / len(own) if own else 0.0

    def quoted(self, item: str, who: str) -> float:
        """Return the share of runs of three words of ``item`` in the texts of ``who``."""
        if who not in self._runs:
            said = words("\n".join(self._texts[who]))
            self._runs[who] = self._wanted_runs.intersection(
                zip(said, said[1:], said[2:], strict=False)
            )
        wanted = runs(bare(item))
        return sum(run in self._runs[who] for run in wanted) / max(1, len(wanted))

    def tool_of(self, item: str) -> str:
        """Return ``Tool NAME`` if the words of ``item`` are only from a tool, else an
        empty string.
        """
        own = stems(bare(item))
        shares = Counter(who for stem in own for who in self._tools.get(stem, ()))
        if sum(stem in self._tools for stem in own) < max(1, _MOSTLY * len(own)):
            return ""
        likely = sorted(shares, key=lambda who: (-shares[who], who))[:_LIKELY]
        tool = max(likely, key=lambda who: (self.quoted(item, who), shares[who]))
        quoted = self.quoted(item, tool)
        if quoted >= _MOSTLY and quoted > max(
            self.quoted(item, "user"), self.quoted(item, "assistant")
        ):
            return tool
        return tool if self.share(item, "user", "assistant") < _HARDLY else ""

    def has_user_asked(self, item: str) -> bool:
        """Return whether a sentence of the user in this conversation is about ``item``."""
        return any(role == "user" for role, _ in self._about(item, fewest=2))

    def with_last_word(self, item: str, before: Items) -> str:
        """Return an open item with the last statement about it, unless the item was made from that
        statement.

        ``before`` are the open items of the prior summary, which keep their last statement if there
        is no newer one.
        """
        known = before.like(item)
        about = self._about(item)
        if SAID_LAST.search(known):
            item = known
        if not about or flat(about[-1][1]) in item or (len(about) == 1 and not known):
            return item
        role, last = about[-1]
        return (
            f"{SAID_LAST.split(item)[0]} [{role.capitalize()} said last: "
            f'"{clip(last, _LAST_WORD)}"]'
        )

    def _read_bearing(self) -> tuple[dict[str, deque[int]], Counter[str]]:
        """Return where each word of the items is said, and how often; read once."""
        if self._counts is None:
            bearing: dict[str, deque[int]] = defaultdict(lambda: deque(maxlen=_NEWEST))
            counts: Counter[str] = Counter()
            stems_of = reader()
            for place, (_, sentence) in enumerate(self._said):
                for stem in stems_of(sentence) & self._wanted:
                    bearing[stem].append(place)
                    counts[stem] += 1
            self._bearing = bearing
            self._counts = counts
        return self._bearing, self._counts

    def _about(self, item: str, fewest: int = 1) -> list[tuple[str, str]]:
        """Return the sentences of users and assistants about ``item``, oldest first: rare words
        weigh more.

        ``fewest`` words must be shared, and two if more than one word of the item was mentioned.
        """
        every = stems(bare(item))
        bearing, counts = self._read_bearing()
        # A common word tells little of what a sentence is about.
        weights = {stem: counts[stem] ** -0.5 for stem in every if stem in counts}
        scores: dict[int, float] = defaultdict(float)
        hits: Counter[int] = Counter()
        for stem, weight in weights.items():
            for place in bearing[stem]:
                scores[place] += weight
                hits[place] += 1
        least = min(max(fewest, min(2, len(weights))), len(every))
        enough = _BEARS * sum(weights.values())
        return [
            self._said[at] for at in sorted(scores) if scores[at] >= enough and hits[at] >= least
        ]
