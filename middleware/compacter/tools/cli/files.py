"""Conversations in files: lists of messages of the five formats, and requests with such a list, as
JSON or JSONL. For any other file, an error names the fault.

A file is read into one or more instances of `Transcript`, each of which can be written with other
messages in the form it was read in.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from compacter.errors import ConfigurationError
from compacter.messages.format import Message, MessageFormat, get_format
from compacter.messages.parts import Kind
from compacter.messages.recognise import recognise
from compacter.tools.cli.terminal import STDIN, MistakeError, json_text, read_text

READABLE = (
    "supported are lists of messages of OpenAI, Anthropic, Responses, Gemini or Bedrock, and "
    "requests with one, as JSON or JSONL"
)

_PARAMS = ("messages", "input", "contents")
_WRAPPERS = ("request", "body", "kwargs", "params")
"""Members in which loggers store the request."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """One conversation from a file."""

    name: str
    """Name of the file, and the conversation's number if the file has several."""
    messages: list[Message] = field(repr=False)
    format: MessageFormat
    write: Callable[[Sequence[Message]], str] = field(repr=False)
    """Returns the text of a file with these messages in place of its own."""


def read_transcripts(path: str) -> list[Transcript]:
    """Return all conversations in a file, or in standard input for ``-``.

    Raises:
        MistakeError: The file cannot be read, or contains no messages in a known format.
    """
    name = "standard input" if path == STDIN else path
    text = read_text(path)
    if not text.strip():
        raise MistakeError(f"{name} is empty")
    data, are_lines = _parse(name, text)
    indent = 2 if "\n" in text.strip() and not are_lines else None

    def dump(value: Any) -> str:
        return json_text(value, indent) + "\n"

    if isinstance(data, dict) and "role" in data:  # The file has only this line.
        data = [data]
        are_lines = True
    values = data if isinstance(data, list) else [data]
    if all(_path_of(value) is None for value in values):
        write = dump if not are_lines else lambda messages: "".join(map(dump, messages))
        return [_read(name, data, write)]
    return [
        _read(f"{name}, conversation {number}" if len(values) > 1 else name, value, dump)
        for number, value in enumerate(values, 1)
    ]


def read_transcript(path: str, number: int | None = None) -> Transcript:
    """Return one conversation of a file; ``number`` counts from 1 and is required if the file has
    several.

    Raises:
        MistakeError: As ``read_transcripts``, or ``number`` is out of range or missing.
    """
    transcripts = read_transcripts(path)
    if number is None and len(transcripts) == 1:
        return transcripts[0]
    if number is None:
        raise MistakeError(
            f"{path} has {len(transcripts)} conversations; choose one with "
            f"--conversation 1 to {len(transcripts)}"
        )
    if not 1 <= number <= len(transcripts):
        raise MistakeError(
            f"--conversation {number} is out of range: {path} has {len(transcripts)}"
        )
    return transcripts[number - 1]


def _parse(name: str, text: str) -> tuple[Any, bool]:
    """Return the data of a text, and whether it has a JSON value on each line."""
    try:
        return json.loads(text), False
    except RecursionError:
        raise MistakeError(f"{name} is nested too deeply") from None
    except ValueError as error:
        whole = error
    values: list[Any] = []
    rows = text.split("\n")  # Not splitlines: JSON texts may contain U+2028.
    for number, row in enumerate(rows, 1):
        if not row.strip():
            continue
        try:
            values.append(json.loads(row))
        except (ValueError, RecursionError) as error:
            if not values:
                raise MistakeError(f"{name} is neither JSON nor JSONL: {whole}") from None
            if number == len(rows):
                break  # The line is still being written.
            raise MistakeError(f"{name}, line {number} is not JSON: {error}") from None
    return values, True


def _path_of(value: Any) -> tuple[str, ...] | None:
    """Return the path of the list of messages in a request, or in a record around one; an empty
    path for the list itself, and ``None`` without such a list.
    """
    if isinstance(value, list):
        return ()
    if not isinstance(value, dict) or "role" in value:  # A message may have a list too.
        return None
    for name in (*_PARAMS, *_WRAPPERS):
        path = _path_of(value.get(name))
        if path is not None and (name in _WRAPPERS) == bool(path):
            return (name, *path)
    return None


def _read(name: str, value: Any, dump: Callable[[Any], str]) -> Transcript:
    """Return the conversation in a list of messages, in a request, or in a record around one.

    Raises: MistakeError: There are no messages, or one of them has no known format.
    """
    path = _path_of(value)
    messages: Any = None if path is None else value
    for member in path or ():
        messages = messages[member]
    if not messages or not all(isinstance(message, dict) for message in messages):
        raise MistakeError(f"{name} has no list of messages; {READABLE}")
    try:
        form = get_format(recognise(messages, param=path[-1] if path else ""))
    except ConfigurationError as error:
        raise MistakeError(f"{name}: {error}") from None
    for index, message in enumerate(messages):
        if not _is_message(form, message):
            raise MistakeError(
                f"{name}: messages[{index}] has nothing that the format {form.name} knows; "
                f"{READABLE}"
            )
    if not sum(form.outline(messages).sizes):
        raise MistakeError(f"{name}: all messages are read as empty; {READABLE}")
    return Transcript(
        name,
        messages,
        form,
        lambda new: dump(_replace_messages(value, path or (), list(new))),
    )


def _is_message(form: MessageFormat, message: Message) -> bool:
    """Return whether a message is one of the format, and has a block that the format knows."""
    blocks = form.blocks(message)
    known = [row is not form.other or row.read(of) for row, of, _ in map(form.find, blocks)]
    return form.kind(message) is not Kind.UNKNOWN and (not known or any(known))


def _replace_messages(record: Any, path: tuple[str, ...], messages: list[Message]) -> Any:
    if not path:
        return messages
    return {**record, path[0]: _replace_messages(record[path[0]], path[1:], messages)}
