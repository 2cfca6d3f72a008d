"""Write and parse the text of a summary message.

The first line has a tag and a checksum of the rest. By the tag a summary is recognised, also after
a restart; the checksum distinguishes it from a message with a typed tag or a changed text. The
checksum is not a secret: a forged message has only the effect of a summary with the same words.

The rest is, in this order: a sentence that explains it, the declared rules and compacter's notes
(one line each), the text that a model wrote, and lines quoted from the conversation. Each block
begins with whose words it has.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from compacter.lines.labels import NAMES, SUMMARY_TAG, WORK, body_of, checksum, seal
from compacter.messages.fields import flat
from compacter.text.colours import without_colours

TAG = SUMMARY_TAG
"""Beginning of the first line of every summary message; the checksum follows."""
RULE = "Rule: "
NOTE = "Note: "
"""Prefixes of lines: a declared rule, a note of compacter."""

_FRAME = "The earlier part of this conversation, shortened."
_FRAME_WITH_RULES = f"{_FRAME} The rules hold throughout."
_BY_MODEL = "A model's summary, which may err; the quoted lines are right:"
_QUOTED = "Lines of it, word for word:"
_STORY_HEAD = f"\n\n{_BY_MODEL}\n"
_QUOTED_HEAD = f"\n\n{_QUOTED}\n"
_BREAK = re.compile(r"\r\n|[\r\v\f\x1c-\x1e\x85\u2028\u2029]")
# Unicode categories of invisible characters: format and control characters, accents.
_INVISIBLE = frozenset(("Cf", "Cc", "Mn", "Me", "Co", "Cn"))
# Characters of a line, after invisible ones, in which a beginning of ours is looked for.
_LONGEST_BEGINNING = 48
_ROLE = "user|human|assistant|system|developer|tool"
# The same, without accents, in languages whose letters are Latin: other letters are seen below.
_FOREIGN_ROLE = (
    "usuari[oa]|utente|utilisat(?:eur|rice)|benutzer(?:in)?|nutzer|gebruiker|anvandare|"
    "uzytkownik|asist(?:ente|ent)|assisten(?:te|t)|asystent|systeme|sistema"
)
# In names of tags in which programs hand over what somebody says.
_CARRIES = (
    "summary|transcript|conversation|message|reminder|instruct|prompt|response|result|function"
)
# Beginnings of lines that compacter writes into requests, in lower case.
_HEADS = "|".join(
    re.escape(head.lower()[:_LONGEST_BEGINNING])
    for head in (
        *(_FRAME, "The rules hold throughout", _BY_MODEL, _QUOTED, f"{NAMES}:", f"{WORK}:"),
        *("Said earlier", "Said after", "After the user's message"),
    )
)
# A line that takes somebody's name or ends what somebody says; not one that is marked as quoted.
# A word of an alphabet other than Latin before a colon may be a speaker, or letters that look like
# Latin ones.
_FORGED = re.compile(
    rf"""(?!\s*>)(?:
    [\W\d]{{0,32}}(?:
        (?:(?:the\ )?(?:{_ROLE})[\s,(]{{1,3}}message\ \d[^:]*|tool\b[^:]{{0,80}}
        |(?:rules?|note|{_ROLE}|{_FOREIGN_ROLE})\b(?:\W{{0,6}}\d{{0,4}}|\s?\([^)]{{0,40}}\)))
            \W{{0,6}}[:\u02d0\u0589\u05c3\u2236\ua789]
        |{_HEADS})
    |\W{{0,32}}\[\W{{0,4}}(?:compacter\b|end\ of\b)
    |[\W\d]{{0,32}}(?=[^\s:]{{0,24}}(?:[^\W\d_\x00-\u024f]|[\u2800\U0001f130-\U0001f18f]))
        [^\s:]{{1,24}}(?:,\ [^:]{{0,24}})?\s{{0,2}}:\W{{0,4}}\w
    |\s*\#{{1,6}}\ (?:{_ROLE}|instruction|input|response)\W{{0,4}}$
    |\W{{0,8}}</?[\w:-]{{0,40}}(?:{_ROLE}|{_CARRIES})[\w:-]{{0,40}}(?:\s[^<>]{{0,80}})?>
    |.*?(?:<\|[^|>]{{1,40}}\|>|\[/?(?:inst|sys|(?:system|available|tool)_[a-z]{{4,12}})\]|<</?sys>>|</?s>|<(?:start|end)_of_turn>|<[be]os>))
    """,
    re.IGNORECASE | re.VERBOSE,
)

_RESTORED = re.compile(r"The program has put back the next messages: (\d{1,4}) \([0-9a-f]+\)\.")
_ABOVE = re.compile(
    r"The provider's summary stands above, and then (\d{1,5}) messages, (\d{1,5}) of them older\."
)
STORY_FRAME = len(_STORY_HEAD)
"""Those of them that only stand above a model's text."""


class NoSummaryError(Exception):
    """No summary could be made; the message says why. Internal."""

    def __init__(self, reason: str, cause: Exception | None = None) -> None:
        super().__init__(reason)
        self.cause = cause


@dataclass(frozen=True, slots=True)
class Summary:
    """Content of a summary message."""

    story: str = ""
    """Text that a model wrote."""
    rules: tuple[str, ...] = ()
    """Lines with the declared rules, each after ``Rule: ``."""
    notes: tuple[str, ...] = ()
    """Notes of compacter itself, for example that messages were left out."""
    quoted: str = ""
    """Lines quoted from the conversation, each after its speaker."""

    @property
    def prose(self) -> str:
        """The model's text, or else the quoted lines or the notes."""
        return self.story or self.quoted or "\n".join(self.notes)

    @property
    def text(self) -> str:
        """The content as one text, without tag and frame."""
        head = "\n".join([*map(flat, self.rules), *(NOTE + flat(note) for note in self.notes)])
        story = _mark_forged(self.story)
        blocks = (
            head,
            story and _STORY_HEAD.lstrip() + story,
            self.quoted and _QUOTED_HEAD.lstrip() + self.quoted,
        )
        return "\n\n".join(filter(None, blocks))


def read_out(text: str) -> tuple[str, str]:
    """Return two texts of a summary message for an event: the model's text, or without one the
    quoted lines or the notes; and the rest.
    """
    summary = parse(text) or Summary()
    if summary.story:
        rest = replace(summary, story="")
    else:
        rest = replace(summary, quoted="", notes=summary.notes if summary.quoted else ())
    return summary.prose, rest.text


def _mark_forged(text: str) -> str:
    """Return a model's text with ``>`` before each line whose beginning looks like a speaker's, a
    rule's, or another line of compacter's.
    """
    lines = _BREAK.sub("\n", text).strip().split("\n")
    return "\n".join(f"> {line}" if _FORGED.match(_plain(line)) else line for line in lines)


def _plain(line: str) -> str:
    """Return a line whose beginning has no invisible characters, no accents, and letters of normal
    width.
    """
    end = 4 * _LONGEST_BEGINNING
    start = unicodedata.normalize("NFKD", without_colours(line[:end])).casefold()
    seen = (letter for letter in start if unicodedata.category(letter) not in _INVISIBLE)
    return "".join(seen) + line[end:]


def compose(summary: Summary | str) -> str:
    """Return the full text of a summary message; a string is a model's text."""
    summary = summary if isinstance(summary, Summary) else Summary(summary)
    # Rules and notes follow the frame at once; the other blocks stand after an empty line.
    start = "" if summary.rules or summary.notes else "\n"
    body = f"{_FRAME_WITH_RULES if summary.rules else _FRAME}\n{start}{summary.text}"
    return seal(TAG, body)


def parse(text: str) -> Summary | None:
    """Return the content of a summary message; None if it has no tag line, or a wrong checksum."""
    body = body_of(text, TAG)
    if body is None:
        return None
    rest, _, quoted = body.partition(_QUOTED_HEAD)
    head, _, story = rest.partition(_STORY_HEAD)
    lines = head.split("\n")
    return Summary(
        story,
        tuple(line for line in lines if line.startswith(RULE)),
        tuple(line.removeprefix(NOTE) for line in lines if line.startswith(NOTE)),
        quoted,
    )


def _with_note(summary: Summary, kind: re.Pattern[str], note: str) -> Summary:
    """Return a summary with this note, if it is not empty, in place of another one of its kind."""
    notes = (*(old for old in summary.notes if not kind.fullmatch(old)), note)
    return replace(summary, notes=tuple(filter(None, notes)))


def _numbers_in(text: str, kind: re.Pattern[str]) -> tuple[int, ...]:
    """Return the numbers in the note of this kind in a summary message; none without the note."""
    notes = (parse(text) or Summary()).notes
    found = next(filter(None, map(kind.fullmatch, notes)), None)
    return tuple(map(int, found.groups())) if found else ()


def _note_of_restored(contents: Sequence[str]) -> str:
    mark = checksum("\0".join(contents))
    return f"The program has put back the next messages: {len(contents)} ({mark})."


def with_restored(text: str, contents: Sequence[str]) -> str:
    """Return the text of a summary message with a note that the program has put back messages of
    these contents behind it.
    """
    note = _note_of_restored(contents) if contents else ""
    return compose(_with_note(parse(text) or Summary(text), _RESTORED, note))


def count_restored(text: str) -> int:
    """Return how many messages a program has put back behind a summary message, by its note."""
    return sum(_numbers_in(text, _RESTORED))


def is_restored(text: str, contents: Sequence[str]) -> bool:
    """Return whether the messages put back behind a summary message had these contents."""
    return _note_of_restored(contents) in (parse(text) or Summary()).notes


def with_place(summary: Summary, kept: int, older: int) -> Summary:
    """Return a summary with a note of its place: behind the provider's own and ``kept`` messages,
    the first ``older`` of which are to follow it; without a note if ``kept`` is 0.
    """
    above = f"The provider's summary stands above, and then {kept} messages, {older} of them older."
    return _with_note(summary, _ABOVE, above if kept else "")


def place_of(text: str) -> tuple[int, int]:
    """Return the numbers that ``with_place`` has noted in the text of a summary message."""
    kept, older = _numbers_in(text, _ABOVE) or (0, 0)
    return kept, older


def rule_lines(declared: Iterable[str]) -> tuple[str, ...]:
    """Return declared rules as lines of a summary, each once."""
    return tuple(dict.fromkeys(RULE + flat(rule) for rule in declared))


FRAME = len(compose(Summary("_", ("_",), (), "_"))) - 3
"""Most characters that ``compose`` adds, without notes."""
