"""A long conversation: seven people plan three days in the mountains, with an assistant that has
four tools.

The 135M model of the demo answers each turn itself, but it cannot call tools: calls and their
results are told here, as an application would have recorded them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

SYSTEM = {
    "role": "system",
    "content": "You help a hiking club to plan a tour. Answer in one or two short sentences.",
}


@dataclass(frozen=True, slots=True)
class Call:
    """One tool call and what the tool said."""

    tool: str
    arguments: dict[str, Any]
    result: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Turn:
    """What the user says; what the tools were asked before the model answers."""

    user: str
    calls: tuple[Call, ...] = field(default=())

    def messages(self, number: int) -> list[dict[str, Any]]:
        """The turn in OpenAI's chat format, up to the point at which the model is asked."""
        said: list[dict[str, Any]] = [{"role": "user", "content": self.user}]
        if self.calls:
            ids = [f"call_{number}_{position}" for position in range(len(self.calls))]
            asked = [
                {
                    "id": id_,
                    "type": "function",
                    "function": {"name": call.tool, "arguments": json.dumps(call.arguments)},
                }
                for id_, call in zip(ids, self.calls, strict=True)
            ]
            said.append({"role": "assistant", "content": "", "tool_calls": asked})
            said += [
                {"role": "tool", "tool_call_id": id_, "content": json.dumps(call.result, indent=1)}
                for id_, call in zip(ids, self.calls, strict=True)
            ]
        return said


def _weather(day: str, *hours: tuple[str, int, int, str]) -> Call:
    forecast = [
        {
            "hour": hour,
            "celsius": celsius,
            "feels_like": celsius - wind // 10,
            "wind_kmh": wind,
            "gusts_kmh": wind + 12,
            "sky": sky,
        }
        for hour, celsius, wind, sky in hours
    ]
    return Call(
        "weather",
        {"place": "Kerlach ridge", "day": day},
        {"place": "Kerlach ridge", "hours": forecast},
    )


def _hut(name: str, night: str, beds: int, price: float, note: str) -> Call:
    free = {"hut": name, "night": night, "free_beds": beds, "price_eur": price, "note": note}
    return Call("hut_beds", {"hut": name, "night": night}, free)


def _trains(day: str, *trains: tuple[str, str, str, int]) -> Call:
    rows = [
        {"train": train, "leaves": leaves, "arrives": arrives, "changes": changes}
        for train, leaves, arrives, changes in trains
    ]
    return Call(
        "trains", {"from": "Ostheim", "to": "Kerlach", "day": day}, {"day": day, "trains": rows}
    )


def _expense(what: str, euros: float, total: float) -> Call:
    return Call(
        "add_expense",
        {"what": what, "eur": euros},
        {"booked": what, "eur": euros, "total_eur": total},
    )


TURNS = (
    Turn(
        "We are seven people from the hiking club and want to walk the Kerlach ridge "
        "from 12 to 14 June."
        " Our budget is 640 euros for all of us together. Mara is allergic to walnuts, "
        "so never put nuts"
        " on any list. What should we settle first?"
    ),
    Turn(
        "Here is who comes: Mara leads, Jonas carries the rope, Ines and Pavel share a "
        "tent, Aiko takes"
        " photos, Tom is new to the mountains, and Ruth is 67 but the fittest of us. Who needs most"
        " attention on steep ground?"
    ),
    Turn(
        (
            "Check the trains for the first day, please. We must not take the night train, "
            "Tom cannot sleep in it."
        ),
        (
            _trains(
                "12 June",
                ("RE 4711", "06:12", "09:48", 1),
                ("IC 208", "07:30", "10:05", 0),
                ("RE 4715", "08:12", "11:48", 1),
                ("EN 60", "23:05", "05:40", 0),
                ("RB 31", "05:02", "10:31", 3),
            ),
        ),
    ),
    Turn(
        "We take IC 208 at 07:30 then. Book the seven tickets into our list, with the group fare.",
        (_expense("7 tickets IC 208, group fare", 161.0, 161.0),),
    ),
    Turn(
        "Now the huts. Which one has room for seven on the first night?",
        (
            _hut(
                "Falkenhaus",
                "12 June",
                4,
                34.0,
                ("Half board, showers until 20:00, dogs are welcome"),
            ),
            _hut(
                "Grauspitz hut",
                "12 June",
                9,
                29.0,
                ("Bring your own sheet, the key is with the warden"),
            ),
        ),
    ),
    Turn(
        "Grauspitz hut it is, reference GH-7731. The warden is called Benedikt, and he "
        "wants us there"
        " before 18:30. Write that down and tell me what we must not forget to pack for that hut."
    ),
    Turn(
        "Book it, seven beds for the first night.",
        (_expense("Grauspitz hut, 7 beds, reference GH-7731", 203.0, 364.0),),
    ),
    Turn(
        "What will the weather be on the first day? We would start walking at about eleven.",
        (
            _weather(
                "12 June",
                ("08:00", 9, 12, "fog in the valley"),
                ("11:00", 14, 18, "sunny"),
                ("14:00", 17, 25, "sunny, some clouds"),
                ("17:00", 15, 31, "clouds build up"),
                ("20:00", 10, 44, "thunderstorm likely"),
            ),
        ),
    ),
    Turn(
        "A thunderstorm at eight. So the rule for every day is: off the ridge by four "
        "in the afternoon,"
        " always. How long may our lunch break be, if the walk takes four and a half hours?"
    ),
    Turn(
        "Tom asks what he should wear. He owns running shoes, a cotton shirt and a "
        "thin rain jacket. Be honest."
    ),
    Turn(
        "And the second night? Look at both huts again.",
        (
            _hut(
                "Falkenhaus",
                "13 June",
                7,
                34.0,
                ("Half board, last seven beds, pay by transfer only"),
            ),
            _hut("Grauspitz hut", "13 June", 2, 29.0, "A school class has taken the dormitory"),
        ),
    ),
    Turn(
        "Falkenhaus for the second night, then: that is 238 euros for seven. Add it "
        "and tell me whether"
        " we still keep within the budget.",
        (_expense("Falkenhaus, 7 beds, half board", 238.0, 602.0),),
    ),
    Turn(
        "Only 38 euros are left for food on the way. Suggest three cheap things that "
        "keep in a rucksack"
        " for three days, and remember what I said about Mara."
    ),
    Turn(
        (
            "Ruth says that the path between the two huts was closed last autumn after a "
            "rockfall. Is it open again?"
        ),
        (
            Call(
                "path_status",
                {"path": "K4 Grauspitz - Falkenhaus"},
                {
                    "path": "K4 Grauspitz - Falkenhaus",
                    "status": "open with care",
                    "since": "28 May",
                    "sections": [
                        {"name": "Lower chute", "state": "new steel cable, 40 m, harness advised"},
                        {"name": "Middle terrace", "state": "no remarks"},
                        {
                            "name": "Rockfall zone",
                            "state": ("cross one at a time, before 10:00 only"),
                        },
                        {"name": "Goat saddle", "state": "snow on the north side, 15 cm"},
                    ],
                    "detour": "K4b by the lake, 90 minutes longer, no cable",
                },
            ),
        ),
    ),
    Turn(
        "What does the guide say about the detour? Read me the page.",
        (
            Call(
                "guide_page",
                {"path": "K4b"},
                {
                    "path": "K4b, by the lake",
                    "length_km": 13.4,
                    "up_m": 610,
                    "down_m": 740,
                    "walking_time": "6 h without breaks",
                    "text": (
                        "From the hut follow the yellow marks down to the larch wood. At the second"
                        " bridge (50 min) keep left, the right branch ends at a quarry. The path "
                        "then"
                        " climbs in wide bends to the Glacier lake (2 h 20), whose outflow is "
                        "crossed on"
                        " stepping stones; after heavy rain use the footbridge 300 m further "
                        "down. Along"
                        " the shore there is no shade and no drinking water: fill the bottles at "
                        "the"
                        " spring behind the shepherd's cabin. From the north end of the lake a "
                        "stony track"
                        " leads over the Low saddle (4 h 45) and down to Falkenhaus."
                    ),
                    "remarks": [
                        "no cable, no ladder",
                        "cows with calves until 20 June: keep dogs on the lead",
                    ],
                },
            ),
        ),
    ),
    Turn(
        "Which of the two would you take with Tom in the group, K4 or the detour K4b "
        "by the lake? Say why."
    ),
    Turn(
        "We decided: K4b by the lake, because nobody has a harness. Jonas may leave "
        "the rope at home."
        " What time do we have to leave Grauspitz hut, if the detour takes six hours "
        "and the four o'clock"
        " rule holds?"
    ),
    Turn(
        "Weather for the second day, please.",
        (
            _weather(
                "13 June",
                ("06:00", 6, 15, "clear"),
                ("09:00", 11, 18, "clear"),
                ("12:00", 16, 22, "sunny"),
                ("15:00", 18, 24, "high clouds"),
                ("18:00", 14, 20, "light rain"),
            ),
        ),
    ),
    Turn(
        "Aiko wants to swim in the lake. The warden told us that it is fed by the glacier and has 7"
        " degrees in June. What do you tell her, kindly?"
    ),
    Turn(
        "Pavel has found a second-hand tent for 25 euros. Do we need a tent at all, "
        "now that both nights"
        " are booked in huts? Remember that 38 euros are all we have."
    ),
    Turn(
        "Now the way home. Find the trains for the third day from Kerlach.",
        (
            _trains(
                "14 June",
                ("RE 4722", "13:10", "16:46", 1),
                ("IC 213", "15:52", "18:27", 0),
                ("RE 4726", "17:10", "20:46", 1),
                ("EN 61", "22:20", "05:02", 0),
            ),
        ),
    ),
    Turn(
        "The group fare covers IC 213 as well, I asked at the counter: the code is "
        "ZUG-58-KER. So we"
        " leave at 15:52. By what time should we be down at the station?"
    ),
    Turn(
        "And the weather of the last day?",
        (
            _weather(
                "14 June",
                ("06:00", 5, 30, "rain"),
                ("09:00", 8, 38, "rain, gusts on the ridge"),
                ("12:00", 11, 42, "rain, gusts on the ridge"),
                ("15:00", 13, 25, "showers"),
            ),
        ),
    ),
    Turn(
        "Rain and gusts. Then we do not walk the ridge on the last day but go down through the Tann"
        " valley, which takes three hours. Please tell Tom in one friendly sentence."
    ),
    Turn(
        "Ines asks for the emergency numbers. Look them up.",
        (
            Call(
                "contacts",
                {"region": "Kerlach"},
                {
                    "region": "Kerlach",
                    "mountain_rescue": "140",
                    "european_emergency": "112",
                    "grauspitz_hut": "+43 5550 7731",
                    "falkenhaus": "+43 5550 2024",
                    "taxi_tann_valley": "+43 5550 118",
                    "advice": "There is no mobile network between the Goat saddle and the lake.",
                },
            ),
        ),
    ),
    Turn(
        "No network between the saddle and the lake. What should a group of seven "
        "agree on before that part?"
    ),
    Turn(
        (
            "Put the food on the list: bread, hard cheese, dried apples and oat bars "
            "without nuts, 31 euros in all."
        ),
        (_expense("food for three days, without nuts", 31.0, 633.0),),
    ),
    Turn(
        "Write a cheerful message of two sentences to the group: everything is booked, "
        "and we meet at 07:10."
    ),
    Turn(
        "One last thing: name the train we take home, and the one thing that must "
        "never be on Mara's list."
    ),
)
