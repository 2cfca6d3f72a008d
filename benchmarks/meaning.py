"""Questions in other words than the passage's: how many of their answers reach the model, with a
real embedding model and without one.

The sixty questions of ``benchmarks/questions.py`` are asked here with none of the words that their
facts were said in, and once as they are, in the long chat of ``benchmarks/asking.py``. Where there
are conversations of others (``COMPACTER_DATA``, default ``../shared/data``), the questions about
these are asked too. No model answers: an answer counts if it is in the request that a provider
accepts whose window is a share of the conversation.

Run: ``make embedder``, or ``python benchmarks/meaning.py`` where all-MiniLM-L6-v2 is installed.
Prints a table and ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from _minilm import embed, why_unavailable
from asking import IDLE, chat
from questions import STORIES

from compacter import Compacter, Quotes
from compacter.lines.frame import TAG
from compacter.messages.format import get_format
from compacter.testing import token_limit_error
from quotes_by_meaning import ByMeaning

SHARES = (0.1, 0.2)
"""Of others' conversations."""
OWN_SHARES = (0.03, 0.06)
"""Of the long chat: a summary of a tenth holds most of its facts."""
_NEAR = 40
"""Most words between two words of an answer."""

OTHER_WORDS: dict[str, Sequence[str]] = {
    "a garden party": (
        "Which of my relatives takes care of the dessert?",
        "From which company do we hire the seating?",
        "When exactly do the festivities take place?",
        "For how many people do we have to cater?",
        "Which nuts must a certain relative of mine never eat?",
        "What is the price of the canopy for Saturday and Sunday?",
        "Under which name do the musicians perform?",
        "What is our shelter in bad weather?",
        "In which piece of luggage are the lights kept?",
        "Which digits open the entrance?",
    ),
    "a move to another town": (
        "In which city will we live from October on?",
        "How many stairs must one climb to our future apartment?",
        "Which company transports our furniture?",
        "What do we call our pet that dislikes its travel box?",
        "Which relative inherits the big instrument with the black and white keys?",
        "What sum do we leave as security for the apartment?",
        "On what day do we return what opens the former apartment?",
        "Whom do we rent from in future?",
        "In which place do we leave the two-wheelers?",
        "Under which reference is our agreement filed?",
    ),
    "a small web shop": (
        "Which goods do our customers buy from us?",
        "At which company is our site running?",
        "What number does one connect to for Postgres?",
        "How much must a customer spend so that the delivery costs nothing?",
        "Which person takes the pictures?",
        "Which animal is our emblem?",
        "At what time of the year do we go live?",
        "Which drive holds the safety duplicates?",
        "How long may customers take to send goods back?",
        "Which address shows visitors that something went wrong?",
    ),
    "a mountain hike": (
        "What shelter do we spend Friday evening in?",
        "Which of us has the climbing line in the backpack?",
        "What is the altitude of the saddle that we cross?",
        "Until what time can we get home by public transport?",
        "Who made my footwear?",
        "At which shop does one pick up what unlocks the shelter?",
        "Which companion is afraid of heights?",
        "Which chart of the terrain do we need?",
        "On what frequency do we call for help?",
        "At which spot does everybody gather in the morning?",
    ),
    "a school play": (
        "What is the title of the piece that the pupils put on?",
        "Which pupil has the role of the man with the ship?",
        "From which town did we borrow what the actors wear?",
        "How many visitors can sit down?",
        "In which shade is the drape in front of the stage?",
        "Where do the actors practise?",
        "Which man makes the music?",
        "What must visitors pay at the entrance?",
        "Which person repairs the defective lamp?",
        "At which company are the leaflets made?",
    ),
    "repairs on a boat": (
        "What did we christen our ship?",
        "Where in the harbour is our ship moored?",
        "Which motor drives our ship?",
        "Which timber carries the canvas?",
        "Which man sews the torn canvas?",
        "Which colour shall the hull have?",
        "Under which code does the underwriter keep our policy?",
        "At which place does the water come in?",
        "When will we be lifted out of the water?",
        "How heavy is the second screw?",
    ),
}
"""The questions of ``STORIES``, in their order, in other words."""


class Probe(NamedTuple):
    """A question, and the words of its answer; one of ``beside`` must be near, if there are any."""

    question: str
    words: Sequence[str]
    beside: Sequence[str] = ()


class Chat(NamedTuple):
    """A conversation, its format, and what is asked about it."""

    messages: Sequence[Any]
    format: str
    probes: Sequence[Probe]


def say_otherwise() -> list[Probe]:
    """The questions of ``STORIES`` in other words."""
    return [
        Probe(question, _words(expected))
        for subject, questions in OTHER_WORDS.items()
        for question, (_, _, expected) in zip(questions, STORIES[subject], strict=True)
    ]


def say_again() -> list[Probe]:
    """The questions of ``STORIES`` as they are."""
    return [
        Probe(question, _words(expected))
        for facts in STORIES.values()
        for _, question, expected in facts
    ]


def read_collected(folder: Path) -> Iterator[Chat]:
    """The conversations of others with the questions in other words about them."""
    if not (folder / "paraphrased.jsonl").exists():
        return
    probes: dict[str, list[Probe]] = {}
    for row in _rows(folder / "paraphrased.jsonl"):
        probe = Probe(row["question"], row["needles"], row["anchors"])
        probes.setdefault(row["conversation"], []).append(probe)
    for row in _rows(folder / "conversations.jsonl"):
        if row["id"] in probes:
            yield Chat(row["messages"], row["format"], probes[row["id"]])


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9$%]+", text.lower())


def is_in(text: str, probe: Probe) -> bool:
    """Whether the words of an answer stand together in a text; longer ones also in other forms."""
    words = _words(text)
    wanted = [*probe.words, *probe.beside]
    places = {
        word: [
            at
            for at, said in enumerate(words)
            if said == word or (len(word) > 3 and said.startswith(word))
        ]
        for word in wanted
    }
    centres = min((places[word] for word in probe.words), key=len)

    def is_near(word: str, centre: int, most: int) -> bool:
        return any(abs(at - centre) <= most for at in places[word])

    return any(
        all(is_near(word, centre, _NEAR) for word in probe.words)
        and (not probe.beside or any(is_near(word, centre, 2 * _NEAR) for word in probe.beside))
        for centre in centres
    )


class Run:
    """A conversation behind a wrapped call, with a provider of a share of its size."""

    def __init__(self, asked: Chat, share: float, recall: Quotes) -> None:
        self._messages = asked.messages
        self._format = get_format(asked.format)
        self._window = int(sum(self._format.outline(asked.messages).sizes) * share)
        self._sent: list[Any] = []
        self._compacter = Compacter(summarizer="extractive", recall=recall)
        self._call = self._compacter.wrap(
            self._provide, wire_format=asked.format, messages_param="messages"
        )
        self.ask("Go on.")

    def _provide(self, messages: list[Any], **_: Any) -> dict[str, Any]:
        used = sum(self._format.outline(messages).sizes)
        if used > self._window:
            raise token_limit_error("openai", limit=self._window // 4, input_tokens=used // 4)
        self._sent[:] = messages
        message = {"role": "assistant", "content": "Noted."}
        return {"choices": [{"message": message, "finish_reason": "stop"}]}

    def ask(self, question: str) -> str:
        """The text of the accepted request, without the question itself."""
        self._call(messages=[*self._messages, self._format.say("user", question)])
        parts = [
            part.text.replace(question, " ")
            for read in self._format.parts_of_each(self._sent)
            for part in read.readable
        ]
        return "\n".join(parts)


def measure(
    chats: Callable[[], Iterator[Chat]], share: float, recall: Quotes
) -> tuple[float, float]:
    """The share of answers that were in the request, and that of idle messages with quotes."""
    found: list[bool] = []
    quoted: list[bool] = []
    for asked in chats():
        run = Run(asked, share, recall)
        found += [is_in(run.ask(probe.question), probe) for probe in asked.probes]
        quoted += [TAG in run.ask(text) for text in IDLE]
    return sum(found) / max(1, len(found)), sum(quoted) / max(1, len(quoted))


def main() -> None:
    """Print a row for each set of questions and share."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(
        os.environ.get("COMPACTER_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
    )
    parser.add_argument("--data", type=Path, default=default)
    options = parser.parse_args()
    if reason := why_unavailable():
        print(json.dumps({"skipped": reason}))
        return
    by_meaning = ByMeaning(embed)
    sets: dict[str, tuple[Callable[[], Iterator[Chat]], Sequence[float]]] = {
        "other words": (lambda: iter([Chat(chat(), "openai", say_otherwise())]), OWN_SHARES),
        "same words": (lambda: iter([Chat(chat(), "openai", say_again())]), OWN_SHARES),
        "others' conversations": (lambda: read_collected(options.data), SHARES),
    }
    rows: dict[str, dict[str, float]] = {}
    print(f"{'':30}{'with':>8}{'without':>9}{'idle with':>11}{'idle without':>14}")
    for name, (chats, shares) in sets.items():
        for share in shares if any(True for _ in chats()) else ():
            right, idle = measure(chats, share, Quotes(search=by_meaning))
            bare, idle_bare = measure(chats, share, Quotes())
            rows[f"{name}, {share:g}"] = {
                "with": round(right, 3),
                "without": round(bare, 3),
                "idle with": round(idle, 3),
                "idle without": round(idle_bare, 3),
            }
            print(f"{name:24}{share:>6g}{right:>8.2f}{bare:>9.2f}{idle:>11.2f}{idle_bare:>14.2f}")
    print(json.dumps({"meaning": rows}))


if __name__ == "__main__":
    main()
