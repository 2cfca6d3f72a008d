"""What a conversation says about single lines of a summary: who said it, where, and what was said about it last."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from compacter.messages.parts import Part
from compacter.summary.words import clip, flat, runs, sentences, stems, words

_LONGEST_RULE = 400
"""Characters above which a sentence of a user is a pasted text."""
_SHORTEST_QUOTE = 8
_BEARS, _MOSTLY, _HARDLY = 0.4, 0.5, 0.34
_LAST_WORD = 160
_LABEL = re.compile(r"(?:User|Assistant|Tool(?: [^:\n]{1,64})?): ")
_SAID_LAST = " (last said: "
_NAME_END = re.compile(r": | [-–—=(] ?|\t|, ")
_PUNCTUATION = "\"'`*_,;:!?()[]{}<>“”„«»。、"
_MARKS = " \t\"'`*_“”„«»‘’()[]"


@dataclass(frozen=True, slots=True)
class Origin:
    """Who said what a line says."""

    user: bool = False
    """Whether most of its words are the user's."""
    assistant: bool = False
    """Whether most of its words are the assistant's."""
    quotes_assistant: bool = False
    """Whether it repeats the assistant, and not the user, word for word."""
    tool: str = ""
    """``Tool NAME`` where its words are a tool's and nobody else's."""


def bare(item: str) -> str:
    """Return an item of a summary without the speaker and the last word that a check has added."""
    return _LABEL.sub("", item, count=1).partition(_SAID_LAST)[0]


def alike(one: str, other: str) -> bool:
    """Whether two items speak of the same thing: hardly a word of the shorter one is missing in the longer."""
    ours, theirs = _telling(bare(one)), _telling(bare(other))
    shared = len(ours & theirs)
    return shared > 0.8 * min(len(ours), len(theirs)) and shared >= 0.5 * max(len(ours), len(theirs))


def _telling(text: str) -> set[str]:
    """Short words too: an API is no CLI."""
    return {word[:5] for word in words(text) if len(word) > 2 or not word.isascii() or word.isdigit()} - {"the", "and"}


class Evidence:
    """A conversation, read once for the items of a summary. Linear in its text."""

    def __init__(self, entries: Sequence[Part], items: Iterable[str], before: Mapping[str, Sequence[str]]) -> None:
        """Read ``entries`` with a view to ``items``; ``before`` are the checked sections of the prior summary."""
        asked = [bare(item) for item in items]
        self._texts = [entry.text for entry in entries]
        self._folded = ""
        self._before = before
        self._said: list[tuple[str, str]] = []
        self._bearing: dict[str, list[int]] = defaultdict(list)
        self._frequency: Counter[str] = Counter()
        self._stems: dict[str, set[str]] = defaultdict(set)
        self._runs: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        wanted_stems = set().union(*(stems(words(item)) for item in asked), *(stems(words(b)) for b in _all(before)))
        wanted_runs = {run for item in asked for run in runs(words(item))}
        called: list[str] = []  # Some formats name the tool with the call alone; results follow in the calls' order.
        for entry in entries:
            if entry.kind == "call":
                called.append(entry.name)
            name = entry.name or (called.pop(0) if entry.kind == "result" and called else "")
            self._read(replace(entry, name=name), wanted_stems, wanted_runs)
        for key, kept in before.items():
            for item in kept:
                who = "user" if key == "task" else "assistant"
                self._stems[who] |= stems(words(bare(item)))

    def _read(self, entry: Part, wanted_stems: set[str], wanted_runs: set[tuple[str, ...]]) -> None:
        theirs = entry.kind == "result" or entry.role == "tool"
        who = f"Tool {flat(entry.name.replace(':', ' '))[:64]}".strip() if theirs else entry.role
        said = words(entry.text)
        self._stems[who] |= stems(said) & wanted_stems
        self._runs[who].update(run for run in runs(said) if run in wanted_runs)
        if entry.kind != "text" or theirs or entry.role == "system":
            return
        for sentence in sentences(entry.text):
            found = stems(words(sentence)) & wanted_stems
            self._frequency.update(found)
            for stem in found:
                self._bearing[stem].append(len(self._said))
            self._said.append((entry.role, sentence))

    def sentence_of_user(self, quote: str) -> str | None:
        """Return the whole sentences of the user in which ``quote`` stands; None where it is no quotation.

        Whole, as half a sentence may say the opposite: "delete the backups" of "Never delete the backups".
        """
        quote = flat(bare(quote)).strip(_MARKS).rstrip(".。 ")
        for place, (role, sentence) in enumerate(self._said):
            if role != "user":
                continue
            if quote in sentence and (len(quote) >= _SHORTEST_QUOTE or quote == sentence.rstrip(".。!！ ")):
                return self._as_rule(sentence)
            following = place
            while sentence and quote.startswith(sentence) and following + 1 < len(self._said):
                following += 1
                if self._said[following][0] != "user" or len(sentence) > _LONGEST_RULE:
                    break
                sentence += f" {self._said[following][1]}"  # noqa: PLW2901 - the quotation spans several
                if quote in sentence:
                    return self._as_rule(sentence)
        return None

    @staticmethod
    def _as_rule(sentence: str) -> str | None:
        return sentence if len(sentence) <= _LONGEST_RULE and sentence[-1:] not in "?？" else None

    def in_order(self, rules: Iterable[str]) -> list[str]:
        """Return sentences of the user in the order in which they were said."""
        places = {sentence: place for place, (role, sentence) in enumerate(self._said) if role == "user"}
        return sorted(rules, key=lambda rule: max((at for said, at in places.items() if said in rule), default=-1))

    def holds_name(self, item: str) -> bool:
        """Whether the artifact that ``item`` names, and everything else in it that looks like a name, was mentioned."""
        known = [*_all(self._before), *self._texts]
        name = _name(item)
        if " " in name:
            self._folded = self._folded or flat(" ".join(known))
            if name not in self._folded:
                return False
        names = [*([] if " " in name else [name]), *filter(_like_a_name, bare(item).split())]
        return bool(name) and all(any(other.strip(_PUNCTUATION) in text for text in known) for other in names)

    @staticmethod
    def same_name(one: str, other: str) -> bool:
        """Whether two items speak of one artifact."""
        return _name(one) == _name(other)

    def origin(self, item: str) -> Origin:
        """Return who said what ``item`` says."""
        said = words(bare(item))
        own, quoted = stems(said), runs(said)
        tools = [who for who in self._stems if who.startswith("Tool")]
        if not own or not quoted:
            return Origin(user=True)

        def words_of(*who: str) -> float:
            return len(own & set().union(*(self._stems[name] for name in who))) / len(own)

        def quotes(*who: str) -> float:
            held = set().union(*(self._runs[name] for name in who))
            return sum(run in held for run in quoted) / len(quoted)

        tool = max(tools, key=lambda name: (quotes(name), words_of(name)), default="")
        user, assistant = quotes("user"), quotes("assistant")
        theirs = bool(tool) and (
            (quotes(tool) >= _MOSTLY and quotes(tool) > max(user, assistant))
            or (words_of("user", "assistant") < _HARDLY and words_of(*tools) >= _MOSTLY)
        )
        return Origin(
            user=words_of("user") >= _MOSTLY,
            assistant=words_of("assistant") >= _MOSTLY,
            quotes_assistant=assistant >= _MOSTLY and assistant > user,
            tool=tool if theirs else "",
        )

    def asked_by_user(self, item: str) -> bool:
        """Whether a sentence of the user in this conversation bears on ``item``."""
        return any(role == "user" for role, _ in self._about(item, fewest=2))

    def with_last_word(self, item: str) -> str:
        """Return an open item with what was said about it last, where that is not what it was taken from."""
        about = self._about(item)
        if not about or flat(about[-1][1]) in item or (len(about) == 1 and alike(item, about[0][1])):
            return item
        role, last = about[-1]
        return f"{item.partition(_SAID_LAST)[0]}{_SAID_LAST}{role.capitalize()}: {clip(last, _LAST_WORD)})"

    def later_word(self, rule: str) -> str:
        """Return what the user said last about the same as a rule, after it; a lifted rule must never stand alone."""
        about = [said for role, said in self._about(rule) if role == "user"]
        about = about[about.index(rule) + 1 :] if rule in about else []
        return next((said for said in reversed(about) if said != rule and self._as_rule(said)), "")

    def _about(self, item: str, fewest: int = 1) -> list[tuple[str, str]]:
        """Return the sentences of people that bear on ``item``, oldest first: rare words weigh more.

        ``fewest`` words must be shared, and two of an item of which more than one was mentioned.
        """
        every = stems(words(bare(item)))
        own = [stem for stem in every if self._frequency[stem]]
        whole = sum(self._frequency[stem] ** -0.5 for stem in own)
        scores: dict[int, float] = defaultdict(float)
        hits: Counter[int] = Counter()
        for stem in own:
            for place in self._bearing[stem]:
                scores[place] += self._frequency[stem] ** -0.5
                hits[place] += 1
        least = min(max(fewest, min(2, len(own))), len(every))
        return [self._said[at] for at in sorted(scores) if scores[at] >= _BEARS * whole and hits[at] >= least]


def _name(item: str) -> str:
    """Return what an artifact's line begins with, up to what is said about it."""
    text = bare(item)
    end = _NAME_END.search(text)
    return flat(text[: end.start()] if end else text).strip(_MARKS)


def _like_a_name(word: str) -> bool:
    """Whether a word is a path, an address or a name with a dot: nothing that a model may make up."""
    inner = word.strip(_PUNCTUATION + ".")[1:-1]
    return any(mark in inner for mark in "/._@\\")


def _all(sections: Mapping[str, Sequence[str]]) -> list[str]:
    return [item for items in sections.values() for item in items]
