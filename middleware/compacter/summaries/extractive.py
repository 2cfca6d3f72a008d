"""A summary without a model: the ledger, and the sentences and lines that say most in the least space."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from compacter.messages.parts import Entry
from compacter.summaries import ledger as ledgers
from compacter.summaries import references, tag, units, vocabulary
from compacter.summaries.selection import Piece, choose
from compacter.summaries.supersede import stale
from compacter.summaries.units import Source, Unit

_LEDGER_SHARE = 3
_PHRASE = 3
_RULES_IN_PROSE = 3
_SMALLEST_GAP = 24
"""Characters not worth another search for something to put there."""


def extract(
    entries: Sequence[Entry],
    *,
    budget: int,
    prior: str | None = None,
    ledger: bool = True,
    extractors: Sequence[ledgers.Extractor] = (),
) -> str:
    """Return ``draft`` as one text of at most ``budget`` characters, the ledger under its heading."""
    drafted = draft(entries, budget=budget, prior=prior, ledger=ledger, extractors=extractors)
    return tag.join(drafted.prose, drafted.ledger)


def draft(
    entries: Sequence[Entry],
    *,
    budget: int,
    prior: str | None = None,
    ledger: bool = True,
    extractors: Sequence[ledgers.Extractor] = (),
) -> tag.Parsed:
    """Return a summary of ``entries`` made without a model; joined it has at most ``budget`` characters.

    The ledger takes at most a third of that. ``prior``, the text of the summary so far with or without its
    tag, is folded in, as are entries of the kind "summary". Time grows linearly with the size of the entries.
    """
    olds = [
        tag.divide(text)
        for text in ([prior] if prior else []) + [entry.text for entry in entries if entry.kind == "summary"]
    ]
    talk = [entry for entry in entries if entry.kind != "summary"]
    old = ledgers.read("\n".join(parsed.ledger for parsed in olds))
    if len(olds) == 1 and not talk and len(tag.join(olds[0].prose, olds[0].ledger)) <= budget:
        return olds[0]
    cap = budget // _LEDGER_SHARE if ledger else 0
    scores: dict[str, float] = {}
    prose_lines = [line for parsed in olds for line in parsed.prose.splitlines() if line]
    told = [Entry("assistant", "summary", line) for line in [*prose_lines, *(old.references if ledger else ())]]
    sources, pieces = units.cut([*told, *talk], scores)
    gone = stale([*old.rules, *(piece.said for piece in pieces if sources[piece.entry].role == "user")])
    pieces = [piece for piece in pieces if piece.said not in gone or sources[piece.entry].role != "user"]
    ruled = [rule for rule in ledgers.rules(talk, old.rules, scores) if rule[0] not in gone]
    kept = ledgers.essence(talk, old, ruled, cap, extractors) if ledger else []
    prose, listed = _select(sources, pieces, budget - len(tag.join("", "\n".join(kept))), cap, kept)
    return tag.Parsed(prose, "\n".join([*kept, *listed]))


def _select(
    sources: Sequence[Source], pieces: Sequence[Unit], room: int, cap: int, kept: Sequence[str]
) -> tuple[str, list[str]]:
    """Return the prose, and the ledger's lines for references, that together fill ``room``."""
    known = vocabulary.learn(sources, pieces)
    marks = [len(source.mark) for source in sources]
    covered = known.covered_by("\n".join(kept))
    times = Counter(piece.text for piece in pieces)
    offered = []
    for piece, words, names in zip(pieces, known.words, known.names, strict=True):
        # What people keep saying in the same words is a phrase; tools repeat what still matters.
        phrase = times[piece.text] >= _PHRASE and sources[piece.entry].kind == "text"
        boost = piece.salience / times[piece.text]
        offered.append(Piece(words, () if phrase else names, len(piece.text) + 1, piece.entry, boost))
    cap -= sum(len(line) + 1 for line in kept)
    found = list(references.candidates(known, pieces, cap)) if cap > 0 else []
    if found and not kept:
        room -= len(tag.join("", "-")) - 1
    first = _unlisted_rules(pieces, marks, "\n".join(kept), room // _RULES_IN_PROSE)
    for place in first:
        covered.update(offered[place].words, offered[place].names)
        room -= offered[place].cost + marks[pieces[place].entry]
    chosen = choose([*offered, *(piece for _, piece in found)], known.weights, marks, (room, cap), covered)
    listed = [ledgers.REFERENCE + found[place - len(pieces)][0] for place in sorted(chosen) if place >= len(pieces)]
    lines = [*first, *(place for place in chosen if place < len(pieces) and place not in first)]
    room += sum(offered[place].cost + marks[pieces[place].entry] for place in first)
    room -= sum(len(line) + 1 for line in listed)
    gap = room - len(_write(sources, pieces, lines))
    if gap > _SMALLEST_GAP:
        # Everything has been said once. What is said again often matters: take the best of the rest as well.
        rest = sorted(set(range(len(pieces))).difference(lines))
        again = choose([offered[place] for place in rest], known.weights, marks, (gap - 1,), set())
        lines += [rest[place] for place in again]
        pieces = _restored(pieces, lines, room - len(_write(sources, pieces, lines)))
    return _write(sources, pieces, lines)[: max(0, room)], listed


def _unlisted_rules(pieces: Sequence[Unit], marks: Sequence[int], kept: str, room: int) -> list[int]:
    """Return where the surest rules stand that the ledger had no room for."""
    chosen: list[int] = []
    said: set[str] = set()
    ruled = [place for place, piece in enumerate(pieces) if piece.rule]
    for place in sorted(ruled, key=lambda place: (-pieces[place].rule, -place)):
        piece = pieces[place]
        cost = len(piece.text) + 1 + marks[piece.entry]
        if piece.text not in kept and piece.text not in said and cost <= room:
            chosen.append(place)
            said.add(piece.text)
            room -= cost
    return chosen


def _restored(pieces: Sequence[Unit], chosen: Sequence[int], room: int) -> list[Unit]:
    """Return the pieces, the chosen ones in their full wording as far as there is room, newest first."""
    restored = list(pieces)
    for place in sorted(chosen, reverse=True):
        piece = pieces[place]
        longer = len(piece.said) - len(piece.text)
        if longer <= room:
            restored[place] = replace(piece, text=piece.said)
            room -= longer
    return restored


def _write(sources: Sequence[Source], pieces: Sequence[Unit], chosen: Sequence[int]) -> str:
    """Return the chosen pieces in their order, one line for each entry."""
    lines: list[str] = []
    last = -1
    for place in sorted(chosen):
        piece = pieces[place]
        if piece.entry == last:
            lines[-1] += " " + piece.text
        else:
            last = piece.entry
            lines.append(sources[last].mark + piece.text)
    return "\n".join(lines)
