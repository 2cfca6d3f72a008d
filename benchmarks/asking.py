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

from questions import STORIES, scripted

from compacter import Compacter
from compacter.events import PassagesRecalled
from compacter.recall.quotes import TAG

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


TRACE = """Traceback (most recent call last):
  File "/srv/app/main.py", line 41, in <module>
    run(load_settings("prod.toml"))
  File "/srv/app/settings.py", line 17, in load_settings
    return tomllib.load(handle)
ValueError: Invalid value (at line 3, column 9)"""
LOG = """2026-03-02 11:04:17 INFO  worker-3 job 8841 started, 212 items waiting
2026-03-02 11:04:19 WARN  worker-3 slow query (1840 ms) on table shipments
2026-03-02 11:04:20 ERROR worker-3 job 8841 failed: connection reset by peer"""
ROWS = """{"id": 3311, "status": "open", "owner": {"name": "intake", "queue": 4},
 "tags": ["red", "urgent"], "history": [{"at": "09:14", "by": "system"}]}"""
CODE = """```python
def total(rows, rate=0.2):
    # round only at the end
    return round(sum(row.price * row.count for row in rows) * (1 + rate), 2)
```"""
MAIL = """On Tuesday the office wrote:
> Dear customer, thank you for your patience with our delivery.
> We regret that the parcel was held back at the depot for two days
> and will credit the postage to your account next month.
> Kind regards, the service team"""

DRESSES: Mapping[str, str] = {
    "bare": "{q}",
    "letter": "Dear assistant,\n\nI hope you had a pleasant weekend and that the weather was as "
    "kind to you as it was to us.\n\n{q}\n\nWith many thanks in advance and best wishes,\nHelena",
    "story": "Sorry for the silence, the week was madness: first the washing machine flooded the "
    "kitchen, then my boss wanted the quarterly numbers a day early, and on Friday I lost my phone "
    "on the train. So now I am back at the desk with a cold coffee. {q}",
    "two": "{q} And could you also suggest three titles for a slide about water prices?",
    "ordered": "Could you please remind me, {s}",
    "no mark": "i was wondering {l}",
    "mail": "{q}\n\n" + MAIL,
    "mail above": MAIL + "\n\nNever mind the mail. {q}",
    "json": "Here is what the ticket system gives me:\n" + ROWS + "\n\n{q}",
    "code": "{q}\n\nFor later, this is the function that I was talking of with a colleague:\n"
    + CODE,
    "log": LOG + "\n\nThat is from this morning, we look at it afterwards. {q}",
    "trace": "{q}\n" + TRACE,
    "german": "Guten Morgen! Ich sitze gerade im Zug und habe meine Unterlagen nicht dabei. {q} "
    "Ganz herzlichen Dank und bis später, die Verbindung ist hier sehr schlecht.",
    "spanish": "Hola, buenos días. Perdona la molestia, estoy preparando la reunión de mañana. "
    "{q} Muchas gracias por tu ayuda, eres un sol.",
    "chinese": "早上好，不好意思又来打扰你，我正在准备明天的会议。{q} 非常感谢你的帮助！",
    "dictated": "okay so hi again um i am in the car right now and i cannot look it up so {l} yeah "
    "that would be great and then we can go on with the rest when i am home again thanks",
    "rant": "Honestly, I am fed up. The printer eats paper, the neighbours drill since six in the "
    "morning, nobody answers the telephone at the town hall, and my back hurts like never before. "
    "Everybody wants something from me and nobody says thank you! And now this too. {q} I could "
    "scream, really. Sometimes I wish I had become a gardener on an island without any telephone.",
    "style": "{q}\nPlease answer in French, in at most ten words, without any markdown, and put "
    "the most important word in capitals.",
    "list": "Three things:\n1. Thanks for yesterday, it worked.\n2. {q}\n3. I will be away from "
    "Thursday on.",
    "before": "Before we continue with the next section, quick check: {q}",
    "roles": "You are a careful secretary who never guesses. Think step by step, then answer. "
    "Question: {q} Answer:",
}

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


def dress(question: str, name: str) -> str:
    """Return the question in a message of the kind ``name``."""
    inner = question.rstrip("?").strip()
    spoken = inner[:1].lower() + inner[1:]
    forms = {"{q}": question, "{s}": f"{spoken}.", "{l}": spoken.replace(",", "").lower()}
    text = DRESSES[name]
    for mark, form in forms.items():
        text = text.replace(mark, form)
    return text


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
