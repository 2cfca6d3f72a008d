"""A row of the table by which standing instructions are known, and what speaks against one.

``order_words`` and ``wish_words`` have the words and forms of instructions in English,
``other_languages`` those of other languages; here are the beginnings of lines, the forms of what is
no instruction, and the words with which people withdraw one. A row has a name, a pattern, and a
sample: a sentence that is misjudged without the row. ``tests/summary/test_rule_words.py`` takes out
each row in turn, then each alternative of each pattern and each exception to it, and wants one of
``tests/summary/phrases.txt`` that is judged differently then: nothing stands here without a
sentence that it is for.

Patterns are for lower case, unless they are for the beginning of a line as it is written. They run
in linear time: only bounded repeats, not nested.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Row(NamedTuple):
    """One pattern; its name is unique and starts with its meaning."""

    name: str
    pattern: str
    sample: str

    @property
    def meaning(self) -> str:
        """Meaning of a match: the part of the name before the colon."""
        return self.name.partition(":")[0]


BEGINNINGS: Final[tuple[Row, ...]] = (
    Row(
        "mark: item of a list",
        r"^(?:[-*•+>]\s{1,4}|\(?\d{1,3}[.)]\s{1,4}|[a-z]\)\s)",
        "3. Always keep a copy.",
    ),
    # A time, a speaker or an addressee, as chats write them.
    Row(
        "addressed: [10:42]",
        r"^\[\d{1,2}[:.]\d\d[^\[\]\n]{0,20}\]? ",
        "[10:42] Always keep a copy.",
    ),
    Row(
        "addressed: [2026-05-03]",
        r"^\[\d{4}-[^\[\]\n]{1,24}\]? ",
        "[2026-05-03 10:42] Always keep a copy.",
    ),
    Row(
        "addressed: [Ann]:",
        r"^\[[^\W\d_][\w .'-]{1,30}\]: ",
        "[Ann]: Always keep a copy.",
    ),
    Row(
        "addressed: <ann>",
        r"^<@?[\w .'-]{2,24}> ",
        "<ann> Always keep a copy.",
    ),
    Row(
        "addressed: @bot",
        r"^@[\w.-]{2,24}[,:]? ",
        "@bot Always keep a copy.",
    ),
    # In a conversation of people, or with a label: "Ann: ", "Day 2: ".
    Row(
        "signed: name",
        r"^(?:[(\[][^()\[\]\n]{1,40}[)\]] )?"
        r"(?:(?:Dr|Mrs?|Ms|Prof|Herr|Frau)\.? (?:[A-Z][\w.'-]{0,24} )?)?"
        r"([^\W\d_][\w.'-]{0,24}(?: [\w.'-]{1,24})?)(?: [(\[][^()\[\]\n]{1,30}[)\]])?: ",
        "Ann: Always keep a copy.",
    ),
)

_ASSISTANT_NAMES = """
    ai agent assistant assistent asistente bot chatbot chatgpt claude copilot gemini gpt model
"""
ASSISTANTS = frozenset(_ASSISTANT_NAMES.split())
"""Names under which an assistant's messages stand in a log: who talks to it sets rules."""

VETOES: Final[tuple[Row, ...]] = (
    # Lines that are not instructions, whatever words they have.
    Row(
        "no prose: code",
        r"[+\s]{0,8}(?:#|assert |raise |//|/\*|--\s|>>>|\$ |\||<(?!/?(?:b|i|em|strong)>)|\[|"
        r"\d{1,6}[:|→]|\(use )",
        "# Never call this twice",
    ),
    Row(
        "no prose: message of a program",
        r"\s{0,8}(?:\w{1,40}(?:error|exception|warning)|error|warning|fatal|failed|failure|usage|"
        r"traceback|exception|hint|tip|caveat|info)\b\s?[:\[]",
        "error: you must give a name",
    ),
    # An order about the present code or text, typed informally: without a capital, and about a
    # specific thing.
    Row(
        "at hand: the",
        r"^\W{0,4}(?:please |also |and |but |just |no,? )?"
        r"(?:don't|do not|make sure|ensure|only|keep|avoid|use)\b[^\n]{0,320}?"
        r"(?:\bthe\b|[a-z]_[a-z]|[a-z][A-Z]|[A-Z]_[A-Z]|\w\(|--\w|`)",
        "don't use the old cache here",
    ),
    # An order about what was just spoken of: without it, a reader takes it for all there is.
    Row(
        "at hand: them",
        r"(?:(?:[Pp]lease|[Aa]lso|[Aa]nd|[Bb]ut|[Jj]ust|[Nn]o),? )?(?:[Dd]on't|[Dd]o not) "
        r"(?:do|touch|change|use|run|send|delete|remove|edit|apply|commit|push|fix)"
        r"(?: anything)?(?: to| with| about)? (?:it|this|that|these|those|them)"
        r"(?: now| for now| today)?\W{0,3}$",
        "Don't do anything with them.",
    ),
    # Statements of other people, or of which the user is not sure.
    Row(
        "reported: he said",
        r"^(?:my|the|his|her|their|our|he|she|they|it|\w{1,20}'s)\b[^,.]{0,30}\b"
        r"(?:says?|said|told|wrote|claim(?:s|ed)?|state[sd]|reads|warn(?:s|ed)|"
        r"explain(?:s|ed)|mention(?:s|ed))\b",
        "My neighbour said we must never park there.",
    ),
    Row(
        "reported: ..., he said",
        r",[\"'”]? (?:\w{1,20} )?(?:said|says|wrote) ",
        "Never sell the house, said my aunt.",
    ),
    Row(
        "reported: as they say",
        r", as (?:they say|the saying goes|\w{1,20} (?:says|said|puts it|put it))\b",
        "Never say never, as they say.",
    ),
    Row(
        "reported: I think",
        r", i (?:think|guess|believe)\W{0,3}$",
        "The cap is 40 seats, I think.",
    ),
)

# What people ask of an assistant and hardly of one another.
FOR_GOOD: Final[tuple[Row, ...]] = (
    Row(
        "for good: please always",
        r"\bplease (?:\w{1,20} ){0,2}(?:always|never|only)\b",
        "Please always use pencils.",
    ),
    Row(
        "for good: from now on",
        r"\bfrom (?:now|here) on\b",
        "From now on, I want tea.",
    ),
    Row(
        "for good: every answer",
        r"\b(?:all|every|each|any) (?:of )?(?:your |the )?"
        r"(?:answers?|repl\w{1,20}|messages?|reports?)\b",
        "Keep every answer short.",
    ),
)

# With these words people withdraw or change what they said.
CHANGES: Final[tuple[Row, ...]] = (
    Row(
        "takes back: no longer",
        r"\b(?:no longer|any ?more|again|back to|now)\b",
        "Rounded prices are no longer needed.",
    ),
    Row(
        "takes back: forget",
        r"\b(?:forget|ignore (?:my|the|that|what)|scrap|cancel|drop (?:the|that)|lift(?:ed)?|"
        r"never ?mind)\b",
        "Scrap the night train.",
    ),
    Row(
        "takes back: instead",
        r"\b(?:instead|switch|moved|changed|raised|lowered|extended)\b",
        "The deadline moved to Friday.",
    ),
    Row(
        "takes back: you may",
        r"\b(?:you (?:may|can)|(?:is|are) (?:fine|ok|okay|allowed|permitted|free)|"
        r"doesn't matter|don't (?:have|need) to)\b",
        "You may use tabs.",
    ),
)
