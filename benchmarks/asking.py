"""Questions in messages as people write them, and messages that ask for nothing that was said.

The questions are those of ``benchmarks/questions.py``; all of its stories are told in one long
chat, between 600 other small facts. Each question stands in a letter, a story, a rant, beside
pasted code or among text of another language; there are orders that refer to something earlier, and
questions that lean on the last exchange. No model is asked: an answer counts if it is quoted in the
request that a provider with a small window accepts.

Run: ``python benchmarks/asking.py``. Prints a table and ends with one JSON line.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from _dresses import DRESSES, dress
from questions import STORIES, scripted

from compacter import Compacter
from compacter.events import PassagesRecalled
from compacter.lines.frame import TAG

WINDOW = 4_000
"""Tokens; the chat is ten times as long."""
_PEOPLE = (
    "Ronja",
    "Piet",
    "Salome",
    "Anders",
    "Mirela",
    "Tobias",
    "Wen",
    "Farida",
    "Gustav",
    "Ilse",
    "Noor",
    "Pablo",
    "Hedwig",
    "Emre",
    "Lotte",
    "Sanjay",
    "Britta",
    "Oskar",
    "Jovana",
    "Matteo",
)
_DID = (
    "borrowed the {thing} of {other} and brought it back on the {n}th",
    "wants to sell the {thing} for {n} euros before the winter",
    "told {other} that the {thing} needs a new handle",
    "found the {thing} behind the door of room {n}",
    "has lent the {thing} to {other} until the end of the month",
    "paid {n} euros for a {thing} that broke after a week",
    "dreams of a {thing} like the one that {other} has",
    "put the {thing} on shelf {n} next to the old radio",
    "asked {other} to paint the {thing} in another colour",
    "would not travel without a {thing}, said {other}",
)
_THINGS = (
    "ladder",
    "kettle",
    "lamp",
    "drill",
    "scooter",
    "typewriter",
    "sewing-machine",
    "violin",
    "hammock",
    "telescope",
    "umbrella",
    "toaster",
    "globe",
    "wheelbarrow",
    "aquarium",
    "camera",
    "sledge",
    "barometer",
    "teapot",
    "accordion-case",
    "stone",
    "planet-chart",
    "word-game",
    "sentence-book",
    "table",
    "spider-web",
    "penguin",
    "moon-lamp",
    "joke-book",
    "dog-basket",
    "orders",
    "invitation",
    "night-light",
)


def chat() -> list[dict[str, str]]:
    """All stories and 600 other facts in one conversation, in an order that is always the same."""
    facts = [said for story in STORIES.values() for said, _, _ in story]
    history: list[dict[str, str]] = []
    for number in range(600):
        person = _PEOPLE[number * 7 % len(_PEOPLE)]
        other = _PEOPLE[(number * 3 + 5) % len(_PEOPLE)]
        thing = _THINGS[number * 11 % len(_THINGS)]
        did = _DID[number % len(_DID)].format(thing=thing, other=other, n=number * 13 % 97)
        told = f"{person} {did}."
        if number % 6 == 4 and facts:
            told = f"{told} {facts.pop(0)}"
        answer = f"I see, so {person} did that. Anything else about it, or shall we go on?"
        history.append({"role": "user", "content": told})
        history.append({"role": "assistant", "content": answer})
    return history


IDLE: Sequence[str] = (
    "Thanks a million, that was exactly what I needed!",
    "Good morning! How was your night?",
    "ok",
    "Sounds good to me, let's do it.",
    "Haha, that made my day.",
    "No, that is wrong. Try again.",
    "Can you make it shorter?",
    "Please put that into a table.",
    "What is the capital of Mongolia?",
    "How many legs does a spider have?",
    "Write a haiku about an empty station at night.",
    "Translate 'the early bird catches the worm' into Italian.",
    "Explain recursion to a ten-year-old.",
    "Write a SQL query that counts the orders of each customer per month.",
    "Tell me a joke about two penguins.",
    "What is 17 percent of 2,340?",
    "Suggest a name for a podcast on old bridges.",
    "Let us talk about something else now.",
    "I am tired, good night and see you tomorrow.",
    "Continue.",
    "Why?",
    "Are you sure about that?",
    "Wie sagt man 'Schraubenzieher' auf Englisch?",
    "¿Puedes explicarlo con otras palabras?",
    "谢谢，太好了！",
    "Danke, das reicht mir schon. Schönen Abend noch!",
    "Who won the football world cup in 1998?",
    "Draft a polite refusal to an invitation from a charity.",
    "My dog barks at the moon and I have no idea why, isn't that funny?",
    "Fix the typos in this sentence: 'teh quikc brwon fox jmups'.",
)

ORDERS: Mapping[str, Sequence[tuple[str, str]]] = {
    "a garden party": (
        ("Put the gate code into the invitation text, please.", "7719"),
        ("Write to the firm with the benches that we need two more.", "Tannhof"),
        ("Add the name of the band to the poster.", "Copper Kettles"),
        ("Make a shopping list, and mind Uncle Bertil's allergy.", "walnut"),
    ),
    "a move to another town": (
        ("Draft a note to the new landlady.", "Okafor"),
        ("Send the movers a reminder.", "Brisk"),
        ("Quote our contract number in the letter.", "HB-60417"),
    ),
    "a small web shop": (
        ("Mention the free shipping of orders in the banner.", "75"),
        ("Use the port of the database in the connection string.", "5544"),
        ("Write alt text for the logo.", "hedgehog"),
    ),
    "a mountain hike": (
        ("Tell the others when the last bus leaves.", "18:40"),
        ("Add the emergency radio's channel to the packing list.", "9"),
        ("Send them the number of the map sheet again.", "31"),
    ),
    "a school play": (
        ("Print the title of the play on the ticket.", "Glass Ferry"),
        ("Thank whoever mends the spotlight.", "Hanne"),
        ("Ask the printer of the programme for an offer.", "Quill"),
    ),
    "repairs on a boat": (
        ("Fill the insurance number into the claim form.", "WL-8823"),
        ("Order two more cans of the paint.", "Harbour Red"),
        ("Remind me of the crane the evening before.", "3rd"),
    ),
}
"""Orders that refer to something earlier, and the words that the request must hold."""

FOLLOWED: Mapping[str, Sequence[tuple[str, str, str]]] = {
    "a garden party": (
        ("Who bakes the cake?", "And the tent, how much was that?", "260"),
        ("What is the band called?", "And the firm with the benches?", "Tannhof"),
        ("Where are the lanterns?", "And if it rains?", "barn"),
    ),
    "a move to another town": (
        ("Who gets the piano?", "And the bicycles?", "shed"),
        ("Which town do we move to?", "And what floor is the flat on?", "fourth"),
    ),
    "a small web shop": (
        ("Who does the photographs?", "And the hosting?", "Nordlake"),
        ("What is the logo?", "And the backup disk?", "ATLAS"),
    ),
    "a mountain hike": (
        ("Who carries the rope?", "And who gets dizzy?", "Amara"),
        ("Where do we meet?", "And the key for the hut?", "bakery"),
    ),
    "a school play": (
        ("Who plays the ferryman?", "And the accordion?", "Sandoval"),
        ("What colour is the curtain?", "And the costumes?", "Lindow"),
    ),
    "repairs on a boat": (
        ("What is the mast made of?", "And the paint?", "Harbour Red"),
        ("Where is the leak?", "And the boat herself, which pier?", "17"),
    ),
}
"""A question that was just asked, the next one that leans on it, and the words of its answer."""


class Run:
    """The chat behind a wrapped call, and the messages of its last request."""

    def __init__(self, **options: Any) -> None:
        self.history = chat()
        self.sent: list[Any] = []
        self.quoted = 0
        model = scripted(WINDOW)

        def completion(*, messages: list[Any], **settings: Any) -> Any:
            reply = model(messages=messages, **settings)
            self.sent[:] = messages
            return reply

        def count(event: object) -> None:
            self.quoted += isinstance(event, PassagesRecalled)

        options.setdefault("summarizer", "extractive")
        self.call = Compacter(on_event=count, **options).wrap(completion)

    def quotes(self, text: str, expected: str, *, before: Sequence[str] = ()) -> bool:
        """Return whether the expected words are quoted beside this message."""
        last = [
            {"role": "assistant" if at % 2 else "user", "content": said}
            for at, said in enumerate(before)
        ]
        self.call(messages=[*self.history, *last, {"role": "user", "content": text}])
        quoted = [message["content"] for message in self.sent if TAG in message["content"]]
        return expected.lower() in "".join(quoted).lower()


def share(results: Sequence[bool]) -> float:
    """Return the share of true results."""
    return sum(results) / max(1, len(results))


def measure(run: Run) -> dict[str, float]:
    """Return the share of answers that are quoted for each way of writing, and the share of idle
    messages that got quotes.
    """
    facts = [fact for story in STORIES.values() for fact in story]
    found: dict[str, float] = {}
    for name in DRESSES:
        found[name] = share(
            [run.quotes(dress(question, name), expected) for _, question, expected in facts]
        )
    found["orders"] = share([run.quotes(*order) for orders in ORDERS.values() for order in orders])
    found["follow-ups"] = share(
        [
            run.quotes(text, expected, before=(before, "One moment, I will look."))
            for pairs in FOLLOWED.values()
            for before, text, expected in pairs
        ]
    )
    run.quoted = 0
    for text in IDLE:
        run.quotes(text, "-")
    found["idle, quoted"] = run.quoted / len(IDLE)
    return found


def main() -> None:
    """Print the table and the JSON line."""
    figures = measure(Run())
    for name, value in figures.items():
        print(f"{name:14}{value:8.2f}")
    print(json.dumps({"asking": {name: round(value, 3) for name, value in figures.items()}}))


if __name__ == "__main__":
    main()
