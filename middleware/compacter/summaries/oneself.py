"""What people say of themselves: name, home, work, likes. Said once, early, and asked for much later."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from compacter.messages.parts import Entry
from compacter.summaries.sentences import sentences

_LONGEST, _SHORTEST = 160, 6

_STATEMENT = re.compile(
    r"^\W*(?:(?:hi|hello|hey|and|also|by the way|btw)[,!.]?\s+)?(?:"
    r"my (?:\w+ ){1,3}(?:is|are|was)\b|my name['’]s"
    r"|i(?:['’]m| am) (?:a|an|the|from|called|based|allergic|married|\d+)\b"
    r"|i (?:live|work|study|come from|grew up|was born|own|speak|teach|run)\b|you can call me\b|call me \w+\W*$"
    r"|ich (?:heiße|bin (?:ein|eine|der|die|aus|\d+)|wohne|lebe|arbeite|komme aus|studiere)\b"
    r"|meine? \w+ (?:ist|sind)\b"
    r"|je m['’]appelle|je suis (?:un|une|de|né)|j['’]habite|je (?:vis|travaille)\b|m(?:on|a|es) \w+ (?:est|sont)\b"
    r"|me llamo|(?:yo )?soy (?:un|una|de)\b|(?:yo )?(?:vivo|trabajo)\b|mis? \w+ (?:es|son)\b"
    r"|(?:eu )?(?:me chamo|sou (?:um|uma|de)|moro|trabalho)\b|(?:o )?meu \w+ é|(?:a )?minha \w+ é"
    r"|mi chiamo|(?:io )?(?:sono (?:un|una|di)|abito|lavoro)\b|(?:il mio|la mia) \w+ è"
    r"|ik (?:heet|ben een|woon|werk)\b|mijn \w+ (?:is|zijn)\b"
    r"|nazywam się|mam na imię|mieszkam|pracuję|moje? \w+ to\b"
    r"|меня зовут|я (?:живу|работаю|родил\w*|из)\b|мо[йяёи] \w+ (?:[-–—]|это)"
    r"|(?:benim )?adım\b|我(?:叫|姓|住在?|是一|来自|來自)|我在.{1,20}工作|我的.{1,8}是"
    r"|私の.{1,8}は|私は.{1,30}(?:です|ます)|(?:제|내) .{1,8}(?:은|는) |저는 "
    r"|اسمي|أعيش|أعمل|मेरा नाम|मैं .{1,30}(?:हूँ|हूं)"
    r")",
    re.IGNORECASE,
)


def statements(entries: Sequence[Entry], carried: Iterable[str] = ()) -> list[str]:
    """Return the user's statements about themselves, oldest first, each once; those ``carried`` come before.

    Only what the user wrote counts. Questions are none.
    """
    found = dict.fromkeys(text for text in carried if _is_one(text))
    for entry in entries:
        if entry.role == "user" and entry.kind == "text":
            found.update(dict.fromkeys(said for said in sentences(entry.text) if _is_one(said)))
    return list(found)


def _is_one(text: str) -> bool:
    return _SHORTEST <= len(text) <= _LONGEST and text[-1:] not in "?？" and _STATEMENT.match(text) is not None
