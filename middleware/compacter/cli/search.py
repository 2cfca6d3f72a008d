"""``compacter search``: print the passages of a conversation that match a question."""

from __future__ import annotations

from dataclasses import asdict

from rich.text import Text

from compacter.cli.files import read_transcript
from compacter.cli.terminal import MistakeError, harmless, print_json, results
from compacter.compacter import Compacter


def run(path: str, query: str, number: int | None, *, limit: int, as_json: bool) -> int:
    """Print the passages, best first, and return the exit code: 1 if there are none.

    Args:
        path: Name of the file, or ``-`` for standard input.
        query: A question, or words to look for.
        number: Number of the conversation in the file, from 1; ``None`` if it has only one.
        limit: Largest number of passages.
        as_json: Whether to print JSON.
    """
    if not query.strip():
        raise MistakeError("QUERY is empty; say what to look for")
    file = read_transcript(path, number)
    found = Compacter(memory=None).search(file.messages, query, limit, wire_format=file.wire_format)
    if as_json:
        print_json([{"message": passage.index + 1, **asdict(passage)} for passage in found])
        return 0 if found else 1
    console = results()
    for passage in found:
        speaker = f"{passage.role} {passage.name}".rstrip()
        console.print(
            Text(
                harmless(f"message {passage.index + 1} (index {passage.index}), {speaker}  ({passage.score:.2f})"),
                "dim",
            )
        )
        console.print(Text(harmless(passage.text)))
        console.print()
    if not found:
        console.print("No passage matches.")
    return 0 if found else 1
