"""What happens to the agent: a theatre goes on tour, and a queue of jobs has to be done.

Early jobs bring facts up, as they come up in real runs: in a tool's result, in what the user says,
in what the agent decides, in an error. Late jobs need each of them once. What is not on any list
here is noise: rows that nobody will ever ask for.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal, NamedTuple

By = Literal["user", "tool", "agent"]

SYSTEM = "You run the errands of a theatre on tour, with tools. You work through a queue of jobs."
ORDER = (
    "We go on tour with the whole house. Please work through the queue, job by job. "
    "Never load the harpsichord into any van but van 6."
)


class Fact(NamedTuple):
    """Something that comes up once, and is needed much later."""

    told_by: By
    text: str
    asked_by: By
    need: str
    reading: str
    """Pattern of a statement of the fact, whose group is what the need asks for."""
    value: str


FACTS = (
    Fact(
        "user",
        "",
        "agent",
        "load the harpsichord",
        r"harpsichord into any van but (van \d)",
        "van 6",
    ),
    Fact(
        "tool",
        '{"crate": "costumes, act two", "seal": "SL-48213", "kg": 212}',
        "tool",
        "give customs the seal of the crate with the costumes of act two",
        r"costumes, act two\W+seal\W+(SL-\d+)",
        "SL-48213",
    ),
    Fact(
        "user",
        "By the way, in Graz the stage door is opened by Ilse Kern, extension 417.",
        "user",
        "call whoever opens the stage door in Graz",
        r"opened by Ilse Kern, extension (\d+)",
        "417",
    ),
    Fact(
        "tool",
        "ERROR 422: gate 4 of the depot turned the truck away, it takes 3.8 m at most",
        "tool",
        "order a truck that passes gate 4 of the depot",
        r"gate 4 of the depot turned the truck away, it takes ([\d.]+ m)",
        "3.8 m",
    ),
    Fact(
        "agent",
        "Decision: the fog machine stays in Linz, because its permit has run out.",
        "tool",
        "tell the stage manager where the fog machine is",
        r"the fog machine stays in (\w+)",
        "Linz",
    ),
    Fact(
        "tool",
        "price list, spotlight R7: 84.60 EUR a day, three days at least",
        "user",
        "quote the producer the price of a spotlight R7",
        r"spotlight R7: ([\d.]+ EUR)",
        "84.60 EUR",
    ),
    Fact(
        "tool",
        "wrote the seating plan of Salzburg to plans/salzburg_7731.pdf (914 seats)",
        "tool",
        "send the seating plan of Salzburg to the box office",
        r"seating plan of Salzburg to (plans/\S+?\.pdf)",
        "plans/salzburg_7731.pdf",
    ),
    Fact(
        "user",
        "Correction: in Brno the curtain rises at 20:15, not at 19:30.",
        "user",
        "print the posters for Brno with the time of the curtain",
        r"Brno the curtain rises at (\d\d:\d\d)",
        "20:15",
    ),
    Fact(
        "tool",
        "hotel Adler in Villach: 14 rooms booked, code HX-29K4T, free until Friday",
        "agent",
        "confirm the rooms at hotel Adler in Villach",
        r"hotel Adler in Villach: 14 rooms booked, code (HX-\w+)",
        "HX-29K4T",
    ),
    Fact(
        "user",
        "Please mind that Jonas Weber cannot bear feathers, he had to leave the stage once.",
        "tool",
        "order the pillows for the dressing room of Jonas Weber",
        r"Jonas Weber cannot bear (\w+)",
        "feathers",
    ),
)
NOISE = (
    "row {a} of the stalls: {b} seats, {c} of them sold, usher {d}",
    '{{"crate": "props {a}-{b}", "kg": {c}, "van": {d}}}',
    "call sheet {a}: rehearsal of scene {d} at {d}:{b:02d}, {c} minutes",
    "price list, cable C{a}: {d}.{b:02d} EUR a metre, drum of {c}",
    "lamp {a} on bar {d}: dimmer {b}, channel {c}, gel {a}",
)


@dataclass(frozen=True, slots=True)
class Job:
    """One step of the agent: what its last tool says, what the user says, what it will say."""

    result: str
    user: str
    note: str
    """What the model says at this step, before it calls its tool."""
    fact: Fact | None
    """What this step needs."""


def make_jobs(steps: int) -> list[Job]:
    """Return the script of a run: the facts in its first third, the needs in its last."""
    chance = random.Random("tour")
    told = dict(zip(chance.sample(range(3, steps // 3), len(FACTS)), FACTS, strict=True))
    needed = dict(zip(chance.sample(range(steps * 7 // 10, steps), len(FACTS)), FACTS, strict=True))
    jobs = []
    for step in range(steps):
        new = told.get(step)
        fact = needed.get(step)
        following = needed.get(step + 1)
        rows = [
            chance.choice(NOISE).format(**{name: chance.randrange(2, 60) for name in "abcd"})
            for _ in range(22)
        ]
        if new is not None and new.told_by == "tool":
            rows.insert(11, new.text)
        if fact is not None and fact.asked_by == "tool":
            rows.append(f"next job of the queue: {fact.need}")
        said = new.text if new is not None and new.told_by == "user" else ""
        if fact is not None and fact.asked_by == "user":
            said = f"Thanks, that looks fine. Now please {fact.need}, and then go on."
        note = "Going on with the queue."
        if new is not None and new.told_by == "agent":
            note = new.text
        if following is not None and following.asked_by == "agent":
            note = f"Next I {following.need}."
        jobs.append(Job("\n".join(rows), said, note, fact))
    return jobs
