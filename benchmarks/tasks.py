"""Does an agent still know, late in its run, what came up early? A made-up agent works for some six
windows, and a program plays the model.

In the first half of a run facts come up, as they come up in real ones: in a tool's result, in what
the user says or corrects, in a rule, in what the agent decides, in an error, in a todo list. In its
last quarter each is needed once; the need is posed by the user, by a tool's result, or by the
agent's own sentence. The program acts on the newest statement in the request that arrives, and on
nothing else: what is not there, no model could know. *Right* is the newest statement, *wrong* an
outdated one. A real model answers what stands last, so a need is *distracted*, not right, if
something stands behind the program's newest message.

The summarizer is a program too: ``even`` takes lines by chance, ``attentive`` gives half of its
room to sentences, which is where people, decisions and errors speak.

Run: ``python benchmarks/tasks.py``; ``make peers`` gives the same work to others. Prints a table
and ends with one JSON line.
"""

from __future__ import annotations

import argparse
import json
import random
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from compacter import Compacter
from compacter.testing import TokenLimitError, token_limit_error

Message = dict[str, Any]
MANNERS = ("user", "tool", "agent")
ALL = ("right", "distracted", "wrong")
WHO = (
    "Ada Lund,Bram Visser,Chloe Petit,Dejan Kral,Eda Aydin,Finn Olsen,Gita Rao,Hugo Stern,"
    "Ida Moen,Jan Pokorny,Kaja Sova,Leo Brun"
)
PLACES = "Aarhus,Bilbao,Cork,Dresden,Evora,Fulda,Genoa,Hobart,Izmir,Jena,Kiel,Lyon"
THINGS = {
    "Network": "relay,router,beacon,switch,mirror,gateway,cache,probe,uplink,archive,broker,sensor",
    "Kitchen": "oven,mixer,freezer,grill,fryer,kettle,smoker,slicer,steamer,toaster,boiler,blender",
}


class Template(NamedTuple):
    """How a fact of one kind is told, asked for and read."""

    kind: str
    told: tuple[str, ...]
    """One sentence, or the value and its corrections, one after the other."""
    ask: str
    reading: str
    value: str
    """``code`` (as KX-4821), ``number``, or ``path``."""


COMMON = (
    Template(
        "told",
        ("By the way, {who} keeps the key of the cellar in {place}, badge {v}.",),
        "give the technician the badge that opens the cellar in {place}",
        r"key of the cellar in {place}, badge (\d+)",
        "number",
    ),
)
NETWORK = (
    Template(
        "id",
        ('{{"host": "{thing}-{place}", "ticket": "{v}", "age": {n}}}',),
        "close the ticket of {thing}-{place}",
        r"{thing}-{place}\W+ticket\W+([A-Z]+-\d+)",
        "code",
    ),
    Template(
        "number",
        ("latency of the {thing} in {place}: {v} us at the 99th percentile",),
        "enter the latency of the {thing} in {place} into the report",
        r"latency of the {thing} in {place}: (\d+) us",
        "number",
    ),
    Template(
        "file",
        ("the backup of the {thing} was written to {v} ({n} files)",),
        "restore the {thing} from its backup",
        r"backup of the {thing} was written to (\S+?\.tar)",
        "path",
    ),
    Template(
        "rule",
        ("Always drain {place} over link {v} before anybody works there.",),
        "take {place} out of service",
        r"drain {place} over link ([A-Z]+-\d+)",
        "code",
    ),
    Template(
        "changed",
        (
            "Let us hold {v} spare disks in {place}.",
            "I was wrong: {v} spare disks in {place}, please.",
            "They want it otherwise again, {v} spare disks in {place}.",
        ),
        "order the spare disks for {place}",
        r"(\d+) spare disks in {place}",
        "number",
    ),
    Template(
        "decision",
        ("Decision: the {thing} logs to bucket {v}, because the old one is full.",),
        "configure the logging of the {thing}",
        r"the {thing} logs to bucket ([A-Z]+-\d+)",
        "code",
    ),
    Template(
        "error",
        ("ERROR: the image of the {thing} was not built, it needs kernel {v}",),
        "build the image of the {thing}",
        r"image of the {thing} was not built, it needs kernel ([A-Z]+-\d+)",
        "code",
    ),
    *COMMON,
)
KITCHEN = (
    Template(
        "id",
        ('{{"dish": "{thing} of {place}", "batch": "{v}", "plates": {n}}}',),
        "recall the batch of the {thing} of {place}",
        r"{thing} of {place}\W+batch\W+([A-Z]+-\d+)",
        "code",
    ),
    Template(
        "number",
        ("invoice, {thing} for {place}: {v} crowns, paid in {n} days",),
        "pay the invoice of the {thing} for {place}",
        r"{thing} for {place}: (\d+) crowns",
        "number",
    ),
    Template(
        "file",
        ("saved the cleaning plan of the {thing} as {v} ({n} steps)",),
        "print the cleaning plan of the {thing}",
        r"cleaning plan of the {thing} as (\S+?\.tar)",
        "path",
    ),
    Template(
        "rule",
        ("Never serve guests from {place} without menu {v}.",),
        "set the table for the guests from {place}",
        r"guests from {place} without menu ([A-Z]+-\d+)",
        "code",
    ),
    Template(
        "changed",
        (
            "We expect {v} guests from {place}.",
            "Correction: it will be {v} guests from {place}.",
            "The bus was smaller, so {v} guests from {place}.",
        ),
        "lay out the chairs for the guests from {place}",
        r"(\d+) guests from {place}",
        "number",
    ),
    Template(
        "decision",
        ("Decision: the {thing} moves to room {v}, since the floor there is dry.",),
        "put up the sign at the room of the {thing}",
        r"the {thing} moves to room ([A-Z]+-\d+)",
        "code",
    ),
    Template(
        "error",
        ("ERROR: the {thing} did not start, it wants fuse {v}",),
        "start the {thing}",
        r"the {thing} did not start, it wants fuse ([A-Z]+-\d+)",
        "code",
    ),
    *COMMON,
)
WORLDS = {"Network": NETWORK, "Kitchen": KITCHEN}
NOISE = (
    "{a} of {b} checked at {c}:{d}, next at {d}:{c}, load {e}",
    '{{"unit": "{e}-{a}", "state": "idle", "since": {b}, "seen": {c}}}',
    "shelf {a}-{b}: {c} boxes, {d} of them open, count {e}",
    "sample {e}{a}: value {b}.{c}, drift {d}, within the band",
)
WORDS = "cargo,frame,valve,panel,cable,crate,drum,label,plate,bolt,lever,gauge"


@dataclass(frozen=True, slots=True)
class Need:
    """What one late step needs."""

    kind: str
    manner: str
    ask: str
    reading: str
    value: str
    outdated: frozenset[str]


@dataclass
class World:
    """The script of one run."""

    steps: int
    told: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Step -> who says it (``user``, ``tool``, ``agent`` or ``todo``), and the text."""
    needs: dict[int, Need] = field(default_factory=dict)
    rules: list[str] = field(default_factory=list)
    chance: random.Random = field(default_factory=random.Random)


def make_world(name: str, seed: int, steps: int, rounds: int = 5) -> World:
    """Draw the facts of a world, and when they come up and are needed."""
    chance = random.Random(f"{name} {seed}")
    world = World(steps, chance=chance)
    needs: list[tuple[str, str, str, str, frozenset[str]]] = []
    for template in WORLDS[name]:
        who = chance.sample(WHO.split(","), rounds)
        places = chance.sample(PLACES.split(","), rounds)
        things = chance.sample(THINGS[name].split(","), rounds)
        for names in zip(who, places, things, strict=True):
            words = dict(zip(("who", "place", "thing"), names, strict=True))
            values = [_value(template.value, chance) for _ in template.told]
            told = [
                text.format(**words, v=value, n=chance.randrange(2, 90))
                for text, value in zip(template.told, values, strict=True)
            ]
            _tell(world, template.kind, told)
            reading = template.reading.format(**words)
            ask = template.ask.format(**words)
            needs.append((template.kind, ask, reading, values[-1], frozenset(values[:-1])))
    needs += _list_of_work(world, THINGS[name].split(","), rounds)
    chance.shuffle(needs)
    late = chance.sample(range(steps * 3 // 4, steps), len(needs))
    for number, (step, need) in enumerate(zip(late, needs, strict=True)):
        kind, ask, reading, value, outdated = need
        world.needs[step] = Need(kind, MANNERS[number % 3], ask, reading, value, outdated)
    return world


def _value(kind: str, chance: random.Random) -> str:
    number = chance.randrange(1_000, 9_999)
    word = chance.choice(WORDS.split(","))
    return {
        "code": f"{word[:2].upper()}-{number}",
        "number": str(number),
        "path": f"store/{word}/{chance.choice(WORDS.split(','))}_{number}.tar",
    }[kind]


def _tell(world: World, kind: str, told: Sequence[str]) -> None:
    by = {"decision": "agent", "told": "user", "changed": "user"}.get(kind, "tool")
    if kind == "rule":
        world.rules += told
        return
    share = 0.5 / len(told)
    for number, text in enumerate(told):
        world.told[_free(world, 0.02 + share * number, 0.02 + share * (number + 0.9))] = (by, text)


def _free(world: World, begin: float, end: float) -> int:
    free = [
        step
        for step in range(int(world.steps * begin), int(world.steps * end))
        if step not in world.told
    ]
    return world.chance.choice(free)


def _list_of_work(world: World, things: Sequence[str], rounds: int) -> list[Any]:
    """A todo list that is told whole each time it changes, as agents' tools do."""
    items = [f"inspect the {thing} upstairs" for thing in things]
    for told in range(8):
        state = [
            {"content": item, "status": "completed" if at < told else "pending"}
            for at, item in enumerate(items)
        ]
        step = _free(world, 0.05 + told * 0.06, 0.11 + told * 0.06)
        world.told[step] = ("todo", json.dumps({"todos": state}))
    needs = []
    for at in world.chance.sample(range(len(items)), rounds):
        last = "completed" if at < 7 else "pending"
        ask = f"go on with this one unless it is done: {items[at]}"
        other = frozenset({"completed", "pending"} - {last})
        needs.append(("todo", ask, re.escape(items[at]), last, other))
    return needs


def noise(chance: random.Random) -> str:
    """Rows that nobody will ever ask for."""
    rows = []
    for _ in range(chance.randrange(9, 16)):
        numbers = {name: chance.randrange(10, 99) for name in "abcd"}
        rows.append(chance.choice(NOISE).format(**numbers, e=chance.choice(WORDS.split(","))))
    return "\n".join(rows)


def read(need: Need, request: str) -> str | None:
    """Return the newest statement of a need in the text of a request."""
    if need.kind != "todo":
        found = re.findall(need.reading, request)
        return found[-1] if found else None
    state = None
    for match in re.finditer(need.reading, request):
        line = request[request.rfind("\n", 0, match.start()) + 1 : match.start()][-60:].lower()
        after = re.match(r"\W+status\W+(\w+)", request[match.end() :])
        if "unless it is done" in line:
            continue
        heads = re.findall(r"pending|to do|open|\[ \]|completed|done|\[x\]", line)
        word = after[1] if after else heads[-1] if heads else ""
        if word:
            state = "completed" if word in ("completed", "done", "[x]") else "pending"
    return state


def text_of(messages: Sequence[Message]) -> str:
    """Return what a model reads of messages."""
    texts = []
    for message in messages:
        content = message.get("content") or ""
        parts = [content] if isinstance(content, str) else [part["text"] for part in content]
        parts += [call["function"]["arguments"] for call in message.get("tool_calls") or ()]
        texts.append("\n".join(parts))
    return "\n".join(texts).replace('\\"', '"').replace("\\n", "\n")


class Summarizer:
    """Writes at most ``room`` characters, of lines that it reads."""

    def __init__(self, kind: str, room: int) -> None:
        self.kind = kind
        self.room = room
        self.calls = 0

    def __call__(self, prompt: str) -> str:
        """Return the summary of a prompt."""
        self.calls += 1
        lines = [line.strip() for line in prompt.replace("\\n", "\n").split("\n")]
        lines = [line[:500] for line in dict.fromkeys(lines) if len(line) > 20]
        order = list(range(len(lines)))
        random.Random(self.calls).shuffle(order)
        said = [at for at in order if lines[at].endswith(".") or "ERROR" in lines[at]]
        taken = self._fit(said, lines, self.room // 2) if self.kind == "attentive" else set()
        left = self.room - sum(len(lines[at]) for at in taken)
        taken |= self._fit([at for at in order if at not in taken], lines, left)
        return "\n".join(lines[at] for at in sorted(taken)) or "Nothing of note."

    @staticmethod
    def _fit(order: Sequence[int], lines: Sequence[str], room: int) -> set[int]:
        taken = set()
        for at in order:
            if len(lines[at]) < room:
                taken.add(at)
                room -= len(lines[at]) + 1
        return taken


def script(world: World) -> list[list[Message]]:
    """Return the new messages of each step; the first step has the order of the user."""
    order = "Work through the queue, and report at its end. " + " ".join(world.rules)
    steps = []
    for step in range(world.steps):
        note = "Going on with the queue."
        result = noise(world.chance)
        user = ""
        new: list[Message] = [] if step else [{"role": "user", "content": order}]
        by, text = world.told.get(step, ("", ""))
        need = world.needs.get(step)
        if by == "tool":
            result = result.replace("\n", f"\n{text}\n", 1)
        elif by == "user":
            user = text
        elif by == "agent":
            note = text
        elif by == "todo":
            new += _called(f"{step}t", "todo_write", text, "", "the list was stored")
        if need is not None and need.manner == "tool":
            result += f"\nnext in the queue: {need.ask}"
        elif need is not None and need.manner == "user":
            user = f"Thanks, that looks good. Now please {need.ask}, and then go on."
        elif need is not None:
            note = f"Next I {need.ask}."
            result = "ok"
        new += _called(str(step), "work", json.dumps({"step": step}), note, result)
        if user:
            done = {"role": "assistant", "content": "That is done."}
            new += [done, {"role": "user", "content": user}]
        steps.append(new)
    return steps


def _called(key: str, name: str, arguments: str, note: str, result: str) -> list[Message]:
    function = {"name": name, "arguments": arguments}
    call = {"id": f"call_{key}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": note, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{key}", "content": result},
    ]


def play(
    world: World, send: Callable[[list[Message]], str]
) -> tuple[Counter[tuple[str, str, str]], str]:
    """Make the calls of a run, and count what became of its needs.

    Args:
        world: The script.
        send: Takes the new messages of a step, sends what is to be sent, and returns the text of
            the request that was accepted.

    Returns:
        Counts by kind, manner and outcome; and the error that ended the run, or nothing.
    """
    outcomes: Counter[tuple[str, str, str]] = Counter()
    for step, new in enumerate(script(world)):
        try:
            request = send(new)
        except Exception as error:  # noqa: BLE001 - told in the table
            for late, missed in world.needs.items():
                if late >= step:
                    outcomes[missed.kind, missed.manner, "died"] += 1
            return outcomes, f"step {step}: {type(error).__name__}"
        need = world.needs.get(step)
        if need is not None:
            used = read(need, request)
            is_last = not request.rpartition(text_of(new[-1:])[-40:])[2].strip()
            right = "right" if is_last else "distracted"
            outcome = right if used == need.value else "lost"
            outcome = "wrong" if used in need.outdated else outcome
            outcomes[need.kind, need.manner, outcome] += 1
    return outcomes, ""


def shares(outcomes: Counter[tuple[str, str, str]]) -> dict[str, float]:
    """Return what was right, distracted and wrong in all; and what was right by manner and kind."""
    found = {}
    total = sum(outcomes.values())
    for name in ALL:
        count = sum(count for (*_, outcome), count in outcomes.items() if outcome == name)
        found[name] = count / max(1, total)
    for place in (1, 0):
        for name in sorted({key[place] for key in outcomes}):
            of = {key: count for key, count in outcomes.items() if key[place] == name}
            good = sum(count for key, count in of.items() if key[2] == "right")
            found[name] = good / sum(of.values())
    return found


# -- compacter and the usual loop, by themselves ---------------------------------------------------


class Endpoint:
    """A provider with a window, which counts the tokens of the requests that it accepts."""

    def __init__(self, window: int) -> None:
        self.window = window
        self.sent = 0
        self.text = ""

    def __call__(self, *, messages: list[Message], model: str = "m") -> dict[str, Any]:  # noqa: ARG002
        """Return a reply, or refuse."""
        text = text_of(messages)
        size = len(text) // 4
        if size > self.window:
            raise token_limit_error("openai", limit=self.window, input_tokens=size)
        self.sent += size
        self.text = text
        usage = {"prompt_tokens": size, "completion_tokens": 5, "total_tokens": size + 5}
        reply = {"message": {"role": "assistant", "content": "Going on."}, "finish_reason": "stop"}
        return {"choices": [reply], "usage": usage}


def usual_loop(endpoint: Endpoint, summarize: Summarizer) -> Callable[[list[Message]], str]:
    """The loop that everybody writes first: catch the error, summarize the oldest 70 %, retry."""
    history: list[Message] = []

    def send(new: list[Message]) -> str:
        history.extend(new)
        for _ in range(4):
            try:
                endpoint(messages=history)
            except TokenLimitError:
                cut = int(len(history) * 0.7)
                while cut < len(history) and history[cut]["role"] == "tool":
                    cut += 1
                summary = summarize(text_of(history[:cut]))
                history[:cut] = [{"role": "user", "content": f"Summary so far: {summary}"}]
            else:
                return endpoint.text
        raise RuntimeError("it was refused too often")

    return send


def wrapped(
    endpoint: Endpoint, summarize: Summarizer, **options: Any
) -> Callable[[list[Message]], str]:
    """The same endpoint, wrapped."""

    def summarizer(messages: list[Message], **_: Any) -> str:
        return summarize(text_of(messages))

    history: list[Message] = []
    call = Compacter(summarizer=summarizer, **options).wrap(endpoint.__call__)

    def send(new: list[Message]) -> str:
        history.extend(new)
        call(messages=history, model="gpt-4")
        return endpoint.text

    return send


def main() -> None:
    """Play each world by the usual loop and by compacter."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--window", type=int, default=8_192, help="tokens (8192)")
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--room", type=int, default=4_000, help="characters of a summary (4000)")
    given = parser.parse_args()
    rows = {}
    print("                        right  distr  wrong   user   tool  agent  tokens  died")
    for kind in ("even", "attentive"):
        base = 0
        hosts = {"usual loop": usual_loop, "compacter": wrapped}
        for name, host in hosts.items():
            outcomes: Counter[tuple[str, str, str]] = Counter()
            sent = died = 0
            for seed in given.seeds:
                for world in WORLDS:
                    endpoint = Endpoint(given.window)
                    send = host(endpoint, Summarizer(kind, given.room))
                    made, error = play(make_world(world, seed, given.steps), send)
                    outcomes += made
                    sent += endpoint.sent
                    died += bool(error)
            base = base or sent
            found = shares(outcomes) | {"tokens": sent / base, "died": died}
            rows[f"{name}, {kind}"] = {key: round(value, 3) for key, value in found.items()}
            told = "  ".join(f"{found[key]:5.2f}" for key in (*ALL, *MANNERS, "tokens"))
            print(f"{name + ', ' + kind:22} {told}  {died:4}")
    print(json.dumps({"tasks": {"window": given.window, "rows": rows}}))


if __name__ == "__main__":
    main()
