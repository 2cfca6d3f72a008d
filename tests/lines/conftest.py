"""A conversation of which most has been folded."""

from __future__ import annotations

import pytest

from compacter.messages.parts import Part

_SAID = (
    "We moved the bakery to Harbour Street last spring, next to the old cinema.",
    "That is a lovely corner. How is the new oven?",
    "It took the electrician nine days to wire it. His name is Tomasz and he charged 840 euros.",
    "Did he leave a guarantee?",
    "Two years, and the paper lies in the blue folder.",
    "Good. What do you bake first in the morning?",
    "Rye loaves at four, then the poppy seed rolls that the school orders.",
    "How many rolls does the school take?",
    "Sixty on weekdays, and none in the holidays.",
    "I will note that for the flour order.",
    "The flour comes from the mill in Brannock every second Tuesday.",
    "Understood, the mill in Brannock.",
)


@pytest.fixture(scope="session")
def folded() -> list[Part]:
    """Twelve messages of a baker and an assistant in turn, from index 1 on."""
    return [
        Part("user" if at % 2 == 0 else "assistant", "text", text, "", at + 1)
        for at, text in enumerate(_SAID)
    ]
