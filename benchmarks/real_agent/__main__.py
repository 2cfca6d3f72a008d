"""What a real model does with what is in its request.

The clerk of a ferry reads notes about cars and their lanes through a tool, until they no longer fit
in the window; then come cars to be sent to their lanes. Each of these steps is the model's own: it
is right if it calls the right tool with the right lane. What it did stays in the history.

Four ways: the whole history in a large window, the loop that everybody writes first, and a wrapped
client with and without a model's summaries.

Run: ``make bench-model`` (1.1 GB, an hour), or after it ``PYTHONPATH=benchmarks python -m
real_agent --ways compacter --seeds 1 --cars 8``. Prints a row a step, a table, and one JSON line.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx
import openai

from compacter import Compacter
from real_agent.server import NAME, serving

WINDOW = 2_048
LARGE = 16_384
WAYS = ("full history", "loop", "compacter", "compacter, no model")
SYSTEM = (
    "You are the clerk of a ferry. You read notes and jobs with the tool next_note. If a job says "
    "that a car has to go to its lane, you call send_to_lane once, with the car's number and the "
    "lane that the notes or the mate have given it. Never guess a lane."
)
TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "next_note",
            "description": "Read the next note",
            "parameters": {"type": "object", "properties": {}},
        },
    },
    {
        "type": "function",
        "function": {
            "name": "send_to_lane",
            "description": "Send a car to a lane",
            "parameters": {
                "type": "object",
                "properties": {"car": {"type": "string"}, "lane": {"type": "string"}},
                "required": ["car", "lane"],
            },
        },
    },
]
DRIVERS = [
    "Abebe",
    "Bianchi",
    "Costa",
    "Dahl",
    "Eriksen",
    "Farouk",
    "Grimm",
    "Horvat",
    "Ibsen",
    "Jansen",
    "Kimura",
    "Larsson",
    "Mbeki",
    "Nagy",
    "Oduya",
    "Pavlov",
    "Quispe",
    "Reyes",
    "Sato",
    "Thorne",
]
MAKES = [
    "van",
    "camper",
    "pickup",
    "estate",
    "hatchback",
    "minibus",
    "lorry",
    "roadster",
    "trailer",
    "jeep",
]
ASIDES = (
    "The gulls have been at the bins again and the deck was swept twice.",
    "A child lost a red mitten near the stairs; it hangs on the railing now.",
    "The kiosk opens ten minutes late because the till had to be counted again.",
    "The wind turns to the west and the captain wants the ropes looked at.",
    "Two cyclists asked for the timetable and were given the paper one.",
    "The lamp over the ramp flickers; the electrician is told.",
    "Coffee has been brought up to the bridge, the machine below is empty.",
    "The loudspeaker crackles but the announcements can be understood.",
)


@dataclass
class Car:
    """A car that has to go to its lane."""

    number: str
    driver: str
    make: str
    lane: str
    kind: str
    """How its lane was given: in a note, in a changed one, by the driver's name, or by the user."""


def voyage(seed: int, count: int) -> tuple[str, list[str], list[tuple[Car, str, str]]]:
    """Return the user's request, the notes, and the jobs: a car, its job, and the note after it."""
    draw = random.Random(seed)
    drivers = draw.sample(DRIVERS, count)
    numbers = draw.sample(range(210, 990), count)
    lanes = [f"{deck}{place}" for deck in "CDEFGHKM" for place in range(2, 9)]
    draw.shuffle(lanes)
    kinds = ("number", "changed", "driver", "user")
    cars = [
        Car(f"K-{number}", driver, draw.choice(MAKES), lanes.pop(), kinds[at % len(kinds)])
        for at, (number, driver) in enumerate(zip(numbers, drivers, strict=True))
    ]
    notes = []
    changes = []
    promises = []
    for car in cars:
        about = f"car {car.number}, the {car.make} of {car.driver}"
        if car.kind == "user":
            notes.append(f"Note: {about}, has arrived and its ticket is paid.")
            promises.append(f"Car {car.number} goes to lane {car.lane}, {car.driver} was told so.")
            continue
        notes.append(f"Note: {about}, goes to lane {car.lane}.")
        if car.kind == "changed":
            before = car.lane
            car.lane = lanes.pop()
            changes.append(
                f"Note: car {car.number} no longer goes to lane {before}; it goes to lane "
                f"{car.lane} now."
            )
    user = " ".join(["Please work through the notes and the jobs of this voyage.", *promises])
    longer = [" ".join([note, *draw.sample(ASIDES, 2)]) for note in (*notes, *changes)]
    order = draw.sample(cars, count)
    jobs = []
    for car in order:
        named = f"the {car.make} of {car.driver}" if car.kind == "driver" else f"car {car.number}"
        after = f"Note: car X-{draw.randint(100, 999)} has left the queue. "
        jobs.append((car, f"Job: {named} has to go to its lane now.", after + draw.choice(ASIDES)))
    return user, longer, jobs


def loop(create: Callable[..., Any]) -> Callable[..., Any]:
    """Return the loop that everybody writes first: the oldest 70 % becomes the model's summary."""

    def ask(messages: list[Any], **options: Any) -> Any:
        while True:
            try:
                return create(messages=messages, **options)
            except openai.BadRequestError as error:
                if "exceed" not in str(error):
                    raise
            cut = 1 + int((len(messages) - 1) * 0.7)
            while cut < len(messages) and messages[cut]["role"] == "tool":
                cut += 1
            old = "\n".join(json.dumps(message) for message in messages[1:cut])
            prompt = f"Summarize this conversation. Keep every fact:\n\n{old}\n\nSummary:"
            said = create(
                model=options["model"],
                messages=[{"role": "user", "content": prompt}],
                temperature=0,
                max_tokens=400,
            )
            text = said.choices[0].message.content
            messages[1:cut] = [{"role": "user", "content": f"Summary so far: {text}"}]

    return ask


def wrapped(way: str, client: openai.OpenAI) -> Callable[..., Any]:
    """Return the client's method as this way calls it."""
    create: Callable[..., Any] = client.chat.completions.create
    if way == "loop":
        return loop(create)
    if way == "full history":
        return create
    summarizer = "extractive" if way.endswith("no model") else None
    return Compacter(summarizer=summarizer).wrap(client).chat.completions.create


def call_of(message: Any) -> tuple[str, dict[str, Any]]:
    """Return name and arguments of a reply's first call."""
    for call in message.tool_calls or ():
        try:
            return call.function.name, json.loads(call.function.arguments)
        except ValueError:
            return call.function.name, {}
    return "", {}


def sail(way: str, seed: int, count: int) -> dict[str, Any]:
    """Do one voyage, and return what came of it."""
    user, notes, jobs = voyage(seed, count)
    messages: list[Any] = [
        {"role": "system", "content": SYSTEM},
        {"role": "user", "content": user},
    ]

    def add(name: str, arguments: dict[str, Any], result: str) -> None:
        number = f"call_{len(messages)}"
        function = {"name": name, "arguments": json.dumps(arguments)}
        made = {"id": number, "type": "function", "function": function}
        messages.append({"role": "assistant", "content": "", "tool_calls": [made]})
        messages.append({"role": "tool", "tool_call_id": number, "content": result})

    for note in notes:
        add("next_note", {}, note)
    sent: list[Any] = []
    right = held = 0
    with serving(LARGE if way == "full history" else WINDOW) as url:
        hooks = {"request": [lambda request: sent.append(json.loads(request.content))]}
        http = httpx.Client(timeout=1_500, event_hooks=hooks)
        client = openai.OpenAI(base_url=url, api_key="none", max_retries=0, http_client=http)
        create = wrapped(way, client)
        for car, job, after in jobs:
            add("next_note", {}, job)
            try:
                reply = create(
                    model=NAME, messages=messages, tools=TOOLS, temperature=0, max_tokens=60
                )
            except openai.APIStatusError as error:
                print(f"{way:20} {seed} {car.kind:8} died: {error}")
                break
            name, arguments = call_of(reply.choices[0].message)
            lane = str(arguments.get("lane", "")).lower().removeprefix("lane ").strip()
            is_right = name == "send_to_lane" and lane == car.lane.lower()
            is_held = car.lane in json.dumps(sent[-1]["messages"])
            right += is_right
            held += is_held
            mark = "right" if is_right else "wrong"
            print(f"{way:20} {seed} {car.kind:8} {mark} {name} {arguments} {car.lane} {is_held}")
            add(name or "next_note", arguments, "Done." if name == "send_to_lane" else "Nothing.")
            add("next_note", {}, after)
    return {"way": way, "seed": seed, "of": count, "right": right, "held": held}


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--seeds", nargs="+", type=int, default=(1, 2))
    parser.add_argument("--cars", type=int, default=12)
    options = parser.parse_args()
    rows = [sail(way, seed, options.cars) for way in options.ways for seed in options.seeds]
    print(f"\n{'way':20} {'seed':>4} {'right':>7} {'in the request':>15}")
    for row in rows:
        print(
            f"{row['way']:20} {row['seed']:>4} {row['right']:>4}/{row['of']} "
            f"{row['held']:>12}/{row['of']}"
        )
    print(json.dumps({"benchmark": "real_agent", "rows": rows}))


if __name__ == "__main__":
    main()
