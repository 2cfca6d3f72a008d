"""The conversations that tests begin with where their words do not matter."""

from __future__ import annotations

from typing import Any

Chat = dict[str, Any]


def user(content: object) -> Chat:
    return {"role": "user", "content": content}


def bot(content: object) -> Chat:
    return {"role": "assistant", "content": content}


class TooLongError(Exception):
    """A provider's refusal, which is known by its code."""

    code = "context_length_exceeded"


def dialogue(turns: int, asked: str, answered: str, *, first: int = 0) -> list[Chat]:
    """So many questions and answers; ``{n}`` in them is their number."""
    return [
        say(text.format(n=number))
        for number in range(first, first + turns)
        for say, text in ((user, asked), (bot, answered))
    ]


def history(turns: int = 10, size: int = 200) -> list[Chat]:
    """So many questions, each with its answer, in OpenAI's format; ``size`` characters each."""
    return [
        {"role": role, "content": f"{said} {number}. ".ljust(size, said[0].lower())}
        for number in range(turns)
        for role, said in (("user", "Question"), ("assistant", "Answer"))
    ]


def talk(turns: int = 14, size: int = 160) -> list[Chat]:
    """A system prompt, a history, and the question that is to be answered."""
    system = {"role": "system", "content": "You are terse."}
    question = {"role": "user", "content": "And now?"}
    return [system, *history(turns, size), question]
