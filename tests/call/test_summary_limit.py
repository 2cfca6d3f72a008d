"""The output limit of a request for a summary, where the server does not take the usual one."""

from __future__ import annotations

from typing import Any

import pytest

from compacter import Compacter
from compacter.testing import token_limit_error

Chat = dict[str, Any]

REFUSALS = {
    "Unsupported parameter: 'max_tokens' is not supported with this model. Use "
    "'max_completion_tokens' instead.": {"max_completion_tokens": 2_000},
    "Unrecognized request argument supplied: max_tokens": {"max_completion_tokens": 2_000},
    "max_tokens is too large: 2000. This model supports at most 900 completion tokens.": {
        "max_tokens": 900
    },
    "max_tokens参数非法：限制数值范围[1,900]": {"max_tokens": 900},
}
TALK: list[Chat] = [
    {"role": ("user", "assistant")[n % 2], "content": f"Pier {n} is {n * 7} metres long. " * 60}
    for n in range(61)
]


@pytest.mark.parametrize(
    ("refusal", "taken"), [*REFUSALS.items(), ("the account has no credit", None)]
)
def test_refused_limit(refusal: str, taken: dict[str, int] | None) -> None:
    """A model's summary is had although the server does not take the limit; another fault is not
    asked again.
    """
    asked: list[Chat] = []

    def completion(*, model: str, messages: list[Chat], **options: Any) -> Chat:
        tokens = sum(len(each["content"]) for each in messages) // 4
        if tokens > 16_000:
            raise token_limit_error(limit=16_000, input_tokens=tokens)
        if options:
            asked.append(options)
            if options != taken:
                raise ValueError(refusal)
        return {"choices": [{"message": {"content": "They spoke of piers."}}]}

    compacter = Compacter(memory=None, recall=None)
    wrapped = compacter.wrap(completion)
    wrapped(model="m", messages=TALK)
    if taken is None:
        assert asked == [{"max_tokens": 2_000}]
        return
    wrapped(model="m", messages=TALK)
    assert asked[0] == {"max_tokens": 2_000}
    assert len(asked) > 2
    assert all(each == taken for each in asked[1:])
    assert compacter.totals.failures == 0
