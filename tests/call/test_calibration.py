"""Meanings of a stated number of tokens."""

from __future__ import annotations

import base64
import random

import litellm
import pytest

from compacter.call.request import MOST_OF_ESTIMATE
from compacter.lines.weight import tokens

_RANDOM = random.Random(7)


@pytest.mark.parametrize(
    "text",
    [
        "Please book the early train to Oslo, and two seats by the window. " * 20,
        '{"path": "/srv/app/config.yaml", "lines": [12, 480], "ok": true}' * 20,
        base64.b64encode(_RANDOM.randbytes(900)).decode(),
        _RANDOM.randbytes(600).hex(),
        "0123456789" * 60,
        "!?;:{}[]()<>#$%&*" * 30,
        "今天天气很好我们去公园散步吧。" * 20,
        "မင်္ဂလာပါ" * 30,
        "\N{GRINNING FACE}\N{PARTY POPPER}\N{ROCKET}" * 40,
        "lone \ud83d surrogate",
        "",
    ],
)
def test_no_text_has_more_tokens_than_the_most(text: str) -> None:
    counted = litellm.token_counter(model="gpt-4", text=text.encode("utf-8", "replace").decode())
    assert counted <= MOST_OF_ESTIMATE * tokens(text.replace(" ", ""))


def test_the_most_of_plain_words_is_less_than_their_characters() -> None:
    words = "Please book the early train to Oslo, and two seats by the window. " * 20
    assert MOST_OF_ESTIMATE * tokens(words.replace(" ", "")) < 0.8 * len(words)
