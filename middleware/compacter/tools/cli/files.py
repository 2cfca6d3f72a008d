"""Conversations in files: providers' messages and requests as JSON or JSONL, and agents' session
files.

A file is read into one or more instances of `Transcript`. Each can be written with other messages:
messages and requests in the format they were read in, those of a session as a record.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from textwrap import shorten
from typing import Any

from compacter.messages.format import FORMATS, Message
from compacter.messages.recognise import recognise
from compacter.tools.cli import sessions
from compacter.tools.cli.terminal import (
    STDIN,
    MistakeError,
    json_text,
    read_text,
    remarks,
)
from compacter.tools.report import plural
from compacter.tools.visible import one_line

READABLE = (
    "OpenAI, Anthropic, Responses, Gemini or Bedrock messages as JSON or JSONL, or "
    "a session file of Claude Code, "
    "Codex, opencode or pi"
)

_NAME = 40
"""Characters of a kind of line that a remark shows: the name stands in somebody else's file."""
_KINDS = 5
"""Kinds of lines that a remark names."""

_PARAMS = ("messages", "input", "contents")
_WRAPPERS = ("request", "body", "kwargs", "params")
"""Members in which loggers store the request."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """One conversation from a file."""

    name: str
    """Name of the file, and the conversation's number if the file has several."""
    messages: list[Message] = field(repr=False)
    wire_format: str | None
    """Format stated by the file; ``None`` to recognise it by the messages."""
    write: Callable[[Sequence[Message]], str] = field(repr=False)
    """Returns the text of a file with these messages in place of its own: of the same kind, or a
    record with them and their format if this is an agent's session."""
    kind: str = "messages"
    """``messages``, or the name of the agent that wrote the session file."""
    id: str = ""
    """Id of the conversation in the file; empty if it has none."""
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Kinds of lines that were skipped as they are not known, and how many of each."""

    @property
    def format(self) -> str:
        """Wire format of the messages.

        Raises:
            ConfigurationError: The messages are in an unknown format.
        """
        return self.wire_format or recognise(self.messages)


def read_transcripts(path: str) -> list[Transcript]:
    """Return all conversations in a file, or in standard input for ``-``.

    Raises:
        MistakeError: The file cannot be read, or contains no messages in a known format.
    """
    name = "standard input" if path == STDIN else path
    text = read_text(path)
    if not text.strip():
        raise MistakeError(f"{name} is empty")
    data, are_lines, broken = _parse(name, text)
    indent = 2 if "\n" in text.strip() and not are_lines else None

    def dump(value: Any) -> str:
        return json_text(value, indent) + "\n"

    found = _conversations(name, data, are_lines=are_lines, broken=broken, dump=dump)
    if not found:
        raise MistakeError(f"{name} contains no conversation; supported are {READABLE}")
    return found


def read_transcript(path: str, number: int | None = None) -> Transcript:
    """Return one conversation of a file; ``number`` counts from 1 and is required if the file has
    several.

    Raises:
        MistakeError: As ``read_transcripts``, or ``number`` is out of range or missing.
    """
    found = read_transcripts(path)
    if number is None and len(found) == 1:
        return found[0]
    if number is None:
        raise MistakeError(
            f"{path} has {len(found)} conversations; choose one with "
            f"--conversation 1 to {len(found)}"
        )
    if not 1 <= number <= len(found):
        raise MistakeError(f"--conversation {number} is out of range: {path} has {len(found)}")
    return found[number - 1]


def tell_skipped(file: Transcript) -> None:
    """Name the kinds of lines that were skipped on standard error."""
    if not file.skipped:
        return
    total = sum(file.skipped.values())
    kinds = sorted(file.skipped.items(), key=lambda each: (-each[1], each[0]))
    names = ", ".join(
        f"{one_line(shorten(kind, _NAME, placeholder='...'))} ({count:,})"
        for kind, count in kinds[:_KINDS]
    )
    more = f" and {plural(len(kinds) - _KINDS, 'other kind')}" if len(kinds) > _KINDS else ""
    remarks().print(
        f"{file.name}: {plural(total, 'line')} of {file.kind} skipped, of a kind that is not "
        f"known here: {names}{more}",
        style="yellow",
        markup=False,
    )


def _parse(name: str, text: str) -> tuple[Any, bool, list[str]]:
    """Return the data of a text, whether it had one JSON value a line, and what is wrong with lines
    that are not JSON.
    """
    try:
        return json.loads(text), False, []
    except RecursionError:
        raise MistakeError(f"{name} is nested too deeply") from None
    except ValueError as error:
        whole = error
    values: list[Any] = []
    broken: list[str] = []
    rows = text.split("\n")  # Not splitlines: JSON texts may hold U+2028.
    for number, row in enumerate(rows, 1):
        if not row.strip():
            continue
        try:
            values.append(json.loads(row))
        except (ValueError, RecursionError) as error:
            if number == len(rows) and values:
                break  # The line is still being written.
            if not values:
                raise MistakeError(f"{name} is neither JSON nor JSONL: {whole}") from None
            broken.append(f"line {number} is not JSON: {error}")
    return values, True, broken


def _conversations(
    name: str, data: Any, *, are_lines: bool, broken: list[str], dump: Callable[[Any], str]
) -> list[Transcript]:
    """Return the conversations in a document, or in its lines: requests or lists of messages, a
    session, or messages.
    """
    session = sessions.from_export(data)
    if session is not None:
        return [_session(name, session, 0)]
    values = data if isinstance(data, list) else [data]
    places = [name] * len(values)
    if len(values) > 1:
        places = [f"{name}, conversation {number}" for number in range(1, len(values) + 1)]
    each = [_conversation(place, value, dump) for place, value in zip(places, values, strict=True)]
    if are_lines or not any(each):
        session = sessions.from_lines(values)
    if session is not None:
        return [_session(name, session, len(broken))]
    # Agents skip such lines too: one was cut when the disk was full, or the agent was killed.
    if broken:
        raise MistakeError(f"{name}, {broken[0]}")
    if any(each):
        found = [one for one in each if one is not None]
        if len(found) < len(each):
            place = places[each.index(None)]
            raise MistakeError(f"{place} is not a conversation; supported are {READABLE}")
        return found
    if not _is_history(values):
        return []
    if isinstance(data, list) and not are_lines:
        return [Transcript(name, values, None, lambda messages: dump(list(messages)))]
    return [Transcript(name, values, None, lambda messages: "".join(map(dump, messages)))]


def _conversation(name: str, value: Any, dump: Callable[[Any], str]) -> Transcript | None:
    """Return the conversation in a list of messages, in a request to a provider's API, or in a
    record that contains such a request.
    """
    if isinstance(value, list):
        listed = _is_history(value)
        return (
            Transcript(name, value, None, lambda messages: dump(list(messages))) if listed else None
        )
    return _from_request(name, value, dump) if isinstance(value, dict) else None


def _from_request(
    name: str, record: dict[str, Any], dump: Callable[[Any], str]
) -> Transcript | None:
    found = _messages_of(record)
    if found is None:
        return None
    path, messages = found
    stated = record.get("format") or record.get("wire_format")
    known = stated if stated in FORMATS else recognise(messages, param=path[-1])
    identity = next(
        (str(record[key]) for key in ("id", "name") if isinstance(record.get(key), (str, int))), ""
    )
    return Transcript(
        name,
        messages,
        known,
        lambda new: dump(_replace_messages(record, path, list(new))),
        id=identity,
    )


def _messages_of(record: dict[str, Any]) -> tuple[tuple[str, ...], list[Any]] | None:
    for param in _PARAMS:
        if isinstance(record.get(param), list) and _is_history(record[param]):
            return (param,), record[param]
    for wrapper in _WRAPPERS:
        if isinstance(record.get(wrapper), dict):
            found = _messages_of(record[wrapper])
            if found is not None:
                return (wrapper, *found[0]), found[1]
    return None


def _replace_messages(
    record: dict[str, Any], path: tuple[str, ...], messages: list[Message]
) -> dict[str, Any]:
    first, *rest = path
    return {
        **record,
        first: _replace_messages(record[first], tuple(rest), messages) if rest else messages,
    }


def _is_history(values: list[Any]) -> bool:
    """Return whether these are messages, by the members that each format requires."""
    return bool(values) and all(
        isinstance(each, dict)
        and ("role" in each or "parts" in each or ("type" in each and "payload" not in each))
        for each in values
    )


def _session(name: str, session: sessions.Session, broken: int) -> Transcript:
    skipped = Counter(session.skipped)
    if broken:
        skipped["not JSON"] += broken
    stated = {"id": session.id, "wire_format": session.wire_format}
    return Transcript(
        name,
        session.messages,
        session.wire_format,
        lambda messages: json_text({**stated, "messages": list(messages)}, 2) + "\n",
        kind=session.agent,
        id=session.id,
        skipped=skipped,
    )
