"""Questions about a long chat, asked of a real model: with all of the history, and after each way
of folding it.

The conversations are made up here: six people who plan something, ten facts each, said early and in
passing, and much talk about other things. Each question is the next user message, one question a
request. The embedded model of 135 million parameters answers (``examples/embedded_model.py`` says
what it needs), or any OpenAI-compatible server: ``--base-url URL --model NAME``. An answer counts
when it holds the expected words; ``in request`` counts the questions whose expected words stood in
the request at all, which is what folding can do something about. That alone is counted with
``--scripted``, which asks no model; ``summary`` is the longest summary message, in characters.

Each question stands in another of the messages of ``_dresses.py``; ``--bare`` asks it alone.
``--answers FILE`` keeps what was asked and answered, one JSON line each.

Run: ``python benchmarks/questions.py``. Prints a table and ends with one JSON line.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

from _dresses import DRESSES, dress

from compacter import Compacter, Truncate
from compacter.summary.message import TAG
from compacter.testing import token_limit_error

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))

from embedded_model import embedded_model, why_unavailable

WINDOW = 900
WHOLE = 4_096
"""Tokens: the window that must be folded into, and one that takes all of a conversation."""
ANSWER_TOKENS = 40
ALL = "all of the history"

Fact = tuple[str, str, str]
"""What the user says, the question, the words that the answer must hold."""
STORIES: Mapping[str, Sequence[Fact]] = {
    "a garden party": (
        ("My sister Odile bakes the cake, she insisted on it.", "Who bakes the cake?", "Odile"),
        (
            "We rent the benches from a firm called Tannhof.",
            ("Which firm do we rent the benches from?"),
            "Tannhof",
        ),
        ("The party is on the 14th of June.", "On what date is the party?", "14"),
        ("I expect 38 guests in the end.", "How many guests do I expect?", "38"),
        ("Uncle Bertil is allergic to walnuts.", "What is Uncle Bertil allergic to?", "walnut"),
        ("The tent costs 260 euros for the weekend.", "How much does the tent cost?", "260"),
        ("The band is called The Copper Kettles.", "What is the band called?", "Copper Kettles"),
        (
            "If it rains we move into the barn of our neighbour Ruta.",
            "Where do we go if it rains?",
            "barn",
        ),
        ("The lanterns are in the blue trunk in the attic.", "Where are the lanterns?", "trunk"),
        ("The gate code is 7719, please remember it.", "What is the gate code?", "7719"),
    ),
    "a move to another town": (
        ("We move to Halmstad in autumn.", "Which town do we move to?", "Halmstad"),
        ("The new flat is on the fourth floor.", "Which floor is the new flat on?", "fourth"),
        ("The movers are called Brisk and Sons.", "What are the movers called?", "Brisk"),
        ("Our cat Pepper hates the carrier.", "What is the name of our cat?", "Pepper"),
        ("The piano goes to my cousin Leonie.", "Who gets the piano?", "Leonie"),
        ("The deposit is 2,350 euros.", "How much is the deposit?", "2,350"),
        (
            "We hand over the old keys on a Thursday.",
            ("On which weekday do we hand over the old keys?"),
            "Thursday",
        ),
        ("The new landlady is Mrs. Okafor.", "Who is the new landlady?", "Okafor"),
        ("The bicycles stay in the shed behind number 12.", "Where do the bicycles stay?", "shed"),
        ("Our contract number is HB-60417.", "What is our contract number?", "HB-60417"),
    ),
    "a small web shop": (
        ("The shop sells hand-made brushes.", "What does the shop sell?", "brushes"),
        (
            "We host it with a provider called Nordlake.",
            "Which provider hosts the shop?",
            "Nordlake",
        ),
        ("The database runs on port 5544.", "On which port does the database run?", "5544"),
        ("Orders over 75 euros ship for free.", "From what sum do orders ship for free?", "75"),
        ("Marisol does the photographs.", "Who does the photographs?", "Marisol"),
        ("The logo is a hedgehog.", "What is the logo?", "hedgehog"),
        ("We launch on the first Monday of March.", "In which month do we launch?", "March"),
        (
            "The backup is copied to a disk named ATLAS every night.",
            ("What is the name of the backup disk?"),
            "ATLAS",
        ),
        (
            "Returns are possible within 21 days.",
            "Within how many days are returns possible?",
            "21",
        ),
        ("The error page must be at /sorry.html.", "Where must the error page be?", "sorry"),
    ),
    "a mountain hike": (
        (
            "We sleep in the Kestrel hut on the first night.",
            ("In which hut do we sleep on the first night?"),
            "Kestrel",
        ),
        ("Jonas carries the rope.", "Who carries the rope?", "Jonas"),
        ("The pass is 2,412 metres high.", "How high is the pass?", "2,412"),
        ("The last bus leaves at 18:40.", "When does the last bus leave?", "18:40"),
        ("My boots are from the brand Larkspur.", "Which brand are my boots from?", "Larkspur"),
        (
            "We need the key for the hut from the bakery.",
            "Where do we get the key for the hut?",
            "bakery",
        ),
        ("Amara gets dizzy on ladders.", "Who gets dizzy on ladders?", "Amara"),
        ("The map is sheet number 31.", "Which sheet number is the map?", "31"),
        ("The emergency radio is on channel 9.", "On which channel is the emergency radio?", "9"),
        ("We meet at the fountain at six.", "Where do we meet?", "fountain"),
    ),
    "a school play": (
        ("The play is called The Glass Ferry.", "What is the play called?", "Glass Ferry"),
        ("Ivo plays the ferryman.", "Who plays the ferryman?", "Ivo"),
        (
            "The costumes come from the theatre in Lindow.",
            "Where do the costumes come from?",
            "Lindow",
        ),
        ("We have 120 chairs for the audience.", "How many chairs do we have?", "120"),
        ("The curtain is dark green.", "What colour is the curtain?", "green"),
        ("Rehearsals are on Tuesdays in room 204.", "In which room are the rehearsals?", "204"),
        ("Mr. Sandoval plays the accordion.", "Who plays the accordion?", "Sandoval"),
        ("A ticket costs four euros.", "How much does a ticket cost?", "four"),
        ("The spotlight is broken and Hanne mends it.", "Who mends the spotlight?", "Hanne"),
        ("The programme is printed by Quill and Daughter.", "Who prints the programme?", "Quill"),
    ),
    "repairs on a boat": (
        ("The boat is named Wanderling.", "What is the name of the boat?", "Wanderling"),
        ("She lies at pier 17.", "At which pier does the boat lie?", "17"),
        ("The engine is a Tormund 30.", "What engine does the boat have?", "Tormund"),
        ("The mast is made of spruce.", "What is the mast made of?", "spruce"),
        ("Old Fergus will mend the sail.", "Who will mend the sail?", "Fergus"),
        ("The paint is called Harbour Red.", "What is the paint called?", "Harbour Red"),
        ("The insurance number is WL-8823.", "What is the insurance number?", "WL-8823"),
        ("The leak is below the galley.", "Where is the leak?", "galley"),
        ("The crane is booked for the 3rd of April.", "For what date is the crane booked?", "3rd"),
        ("The spare propeller weighs 11 kilos.", "How much does the spare propeller weigh?", "11"),
    ),
}
ASIDES = (
    (
        "how to keep bread fresh",
        ("Keep it in a cloth and never in the refrigerator, where the crumb goes stale sooner."),
    ),
    (
        "why leaves turn yellow",
        ("The green pigment breaks down first, and the yellow one was there all the time."),
    ),
    (
        "how to sharpen a knife",
        ("Hold a steady angle, draw the blade along the stone and change sides often."),
    ),
    (
        "what makes a good tea",
        ("Fresh water just off the boil, a warm pot, and patience for some minutes."),
    ),
    (
        "how owls hear",
        ("Their ears sit at uneven heights, so that they can tell where a sound comes from."),
    ),
    (
        "how to learn a poem",
        ("Say it aloud line by line, and begin each time with what you know already."),
    ),
    (
        "why the sea is salty",
        ("Rivers bring minerals from the rocks, and only the water leaves again as vapour."),
    ),
    (
        "how to fold a shirt",
        ("Lay it face down, turn in the sides and the sleeves, and fold it up in thirds."),
    ),
    (
        "how a lock on a canal works",
        ("A chamber between two gates is filled or emptied, and the ship rises or sinks."),
    ),
    (
        "what to do about moths",
        ("Air the wool in the sun, brush it, and put cedar wood into the drawer."),
    ),
    (
        "how to whistle with two fingers",
        ("Wet the lips, fold back the tip of the tongue and blow across it."),
    ),
    (
        "why cats purr",
        ("They do it when they are content, but also to calm themselves when they are hurt."),
    ),
    (
        "how to plant a hedge",
        ("Dig a trench rather than holes, set the plants close, and water them for a year."),
    ),
    (
        "how paper is recycled",
        ("It is soaked and beaten into a pulp, cleaned of ink, and pressed into sheets again."),
    ),
)


def conversation(subject: str, facts: Sequence[Fact], length: int) -> list[dict[str, str]]:
    """The facts in the first third, one a turn; then talk about other things up to ``length``
    characters.
    """
    history = [
        {
            "role": "user",
            "content": (f"Hello! I am planning {subject} and would like to think aloud with you."),
        },
        {
            "role": "assistant",
            "content": ("With pleasure. Tell me what you know already, and ask whatever you like."),
        },
    ]
    for said, _, _ in facts:
        history.append({"role": "user", "content": f"One more thing about {subject}. {said}"})
        history.append(
            {
                "role": "assistant",
                "content": ("Good to know, I have that. What else is on your mind?"),
            }
        )
    turn = 0
    while sum(len(message["content"]) for message in history) < length:
        question, answer = ASIDES[turn % len(ASIDES)]
        again = "" if turn < len(ASIDES) else "Once more, I forgot: "
        history.append(
            {"role": "user", "content": (f"{again}Something else: can you explain {question}?")}
        )
        history.append(
            {
                "role": "assistant",
                "content": (f"{answer} There is more to say about {question}, if you like."),
            }
        )
        turn += 1
    return history


def asked(question: str, name: str) -> str:
    """The question as a user would put it; a small model needs to be told to be brief."""
    return f"{dress(question, name)} Answer in a few words."


def poster(base_url: str, model: str) -> Callable[..., dict[str, Any]]:
    """A completion function for an OpenAI-compatible server. Raises what the server refuses, with
    its words.
    """

    def completion(
        *, messages: list[Any], max_tokens: int = ANSWER_TOKENS, **_: Any
    ) -> dict[str, Any]:
        body = {"model": model, "messages": messages, "max_tokens": max_tokens, "temperature": 0}
        request = urllib.request.Request(  # noqa: S310 - the user names the server
            f"{base_url}/chat/completions",
            json.dumps(body).encode(),
            {"content-type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=600) as reply:  # noqa: S310
                answer: dict[str, Any] = json.load(reply)
                return answer
        except urllib.error.HTTPError as error:
            raise RuntimeError(error.read().decode()) from None

    return completion


def scripted(window: int) -> Callable[..., dict[str, Any]]:
    """A model with a small window that sums up in two sentences: what is in its request does not
    depend on its wit.
    """

    def completion(
        *, messages: list[Any], max_tokens: int = ANSWER_TOKENS, **_: Any
    ) -> dict[str, Any]:
        used = sum(len(message["content"]) // 4 + 8 for message in messages) + max_tokens
        if used > window:
            raise token_limit_error("openai", limit=window, input_tokens=used)
        said = re.findall(r"(?m)^user: (.+)$", messages[-1]["content"])
        content = f"The user thinks aloud. {' '.join(said[:2])}" if said else "I see."
        return {
            "choices": [
                {"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
            ]
        }

    return completion


def measure(
    completion: Callable[..., Any],
    compacter: Compacter | None,
    length: int,
    dresses: Sequence[str] = ("bare",),
    keep: Callable[[dict[str, Any]], object] = lambda _: None,
) -> dict[str, Any]:
    """Ask every question; how many answers were right, and how many were in the request."""
    sent: list[Any] = []

    def seen(*, messages: list[Any], **options: Any) -> Any:
        reply = completion(messages=messages, **options)
        sent[:] = messages
        return reply

    call = seen if compacter is None else compacter.wrap(seen)
    right = held = total = longest = 0
    for subject, facts in STORIES.items():
        history = conversation(subject, facts, length)
        for _, question, expected in facts:
            text = asked(question, dresses[total % len(dresses)])
            reply = call(
                messages=[*history, {"role": "user", "content": text}], max_tokens=ANSWER_TOKENS
            )
            total += 1
            answer = reply["choices"][0]["message"]["content"]
            is_right = expected.lower() in answer.lower()
            is_held = expected.lower() in json.dumps(sent, ensure_ascii=False).lower()
            right += is_right
            held += is_held
            keep(
                {
                    "asked": text,
                    "expected": expected,
                    "answer": answer,
                    "right": is_right,
                    "in request": is_held,
                    "sent": sent[:] if compacter else [],
                }
            )
            longest = max(
                longest,
                *(len(message["content"]) for message in sent if TAG in message["content"]),
                0,
            )
    return {"right": right, "in request": held, "asked": total, "summary": longest}


def ways() -> dict[str, Compacter]:
    """The ways of folding that are compared."""
    return {
        "head dropped": Compacter(strategy=Truncate(), recall=None),
        "no model": Compacter(summarizer="extractive"),
        "no model, no recall": Compacter(summarizer="extractive", recall=None),
        "default": Compacter(),
        "default, no recall": Compacter(recall=None),
    }


@contextlib.contextmanager
def servers(
    options: argparse.Namespace,
) -> Generator[Callable[[int], contextlib.AbstractContextManager[str]]]:
    """What gives the base URL of a server with a window of that many tokens."""
    if options.base_url:
        yield lambda window: contextlib.nullcontext(
            options.whole_url if window == WHOLE else options.base_url
        )
        return

    @contextlib.contextmanager
    def start(window: int) -> Generator[str]:
        with embedded_model(window) as model:
            yield model.api_base

    yield start


def main() -> None:
    """Print a row for each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--length", type=int, default=6_000, help="characters of each conversation")
    parser.add_argument(
        "--base-url", help=("an OpenAI-compatible server with a small window, with /v1")
    )
    parser.add_argument(
        "--whole-url", help=("the same model with a window that takes all; default: --base-url")
    )
    parser.add_argument("--model", default="local")
    parser.add_argument(
        "--scripted",
        action="store_true",
        help=("no model: only what is in requests of small windows"),
    )
    parser.add_argument(
        "--bare", action="store_true", help="ask the questions alone, not in a message"
    )
    parser.add_argument("--ways", nargs="+", default=[ALL, *ways()], help="rows of the table")
    parser.add_argument("--answers", type=Path, help="file that keeps what was asked and answered")
    options = parser.parse_args()
    options.whole_url = options.whole_url or options.base_url
    dresses = ("bare",) if options.bare else tuple(DRESSES)
    if options.scripted:
        for window in (1_000, 2_000, 4_000):
            for name in ("no model", "default", "default, no recall"):
                print(window, name, measure(scripted(window), ways()[name], 6 * window), flush=True)
        return
    if not options.base_url and (reason := why_unavailable()):
        print(json.dumps({"skipped": reason}))
        return
    rows: dict[str, dict[str, Any]] = {}

    def keep(row: dict[str, Any]) -> None:
        if options.answers:
            with options.answers.open("a", encoding="utf-8") as file:
                print(json.dumps({"way": way, **row}, ensure_ascii=False), file=file)

    with servers(options) as start:
        for way in options.ways:
            compacter = ways().get(way)
            with start(WINDOW if compacter else WHOLE) as url:
                model = poster(url, options.model)
                rows[way] = measure(model, compacter, options.length, dresses, keep)
            print(way, rows[way], flush=True)
    whole = rows.get(ALL, {}).get("right") or 1
    print(f"\n{'':22}{'right':>8}{'of whole':>10}{'in request':>12}")
    for name, row in rows.items():
        print(f"{name:22}{row['right']:>8}{row['right'] / whole:>10.2f}{row['in request']:>12}")
    print(json.dumps(rows))


if __name__ == "__main__":
    main()
