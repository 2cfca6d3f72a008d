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


class RefusedError(Exception):
    """A refusal whose words are in its body, as `compacter serve` has them."""

    status_code = 400

    def __init__(self, words: str) -> None:
        super().__init__("the upstream answered 400")
        self.body = {"error": {"message": words, "type": "invalid_request_error"}}


def too_long(messages: list[Chat]) -> None:
    tokens = sum(len(each["content"]) for each in messages) // 4
    if tokens > 16_000:
        raise token_limit_error(limit=16_000, input_tokens=tokens)


def reply_of(text: str, finish: str = "stop") -> Chat:
    return {"choices": [{"message": {"content": text}, "finish_reason": finish}]}


def chunks_of(text: str) -> list[Chat]:
    return [
        *({"choices": [{"delta": {"content": word + " "}}]} for word in text.split()),
        {"choices": [{"delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 90, "completion_tokens": 9}},
    ]


@pytest.mark.parametrize(("refusal", "taken"), REFUSALS.items())
def test_refused_limit_in_the_body(refusal: str, taken: dict[str, int]) -> None:
    asked: list[Chat] = []

    def completion(*, model: str, messages: list[Chat], **options: Any) -> Chat:
        too_long(messages)
        if options:
            asked.append(options)
            if options != taken:
                raise RefusedError(refusal)
        return reply_of("They spoke of piers.")

    Compacter(memory=None, recall=None).wrap(completion)(model="m", messages=TALK)
    assert asked[0] == {"max_tokens": 2_000}
    assert len(asked) > 1
    assert all(each == taken for each in asked[1:])


@pytest.mark.parametrize(
    "refusal",
    [
        "This model only support stream mode, please enable the stream parameter.",
        "Stream must be set to true",
        "Streaming is required for operations that may take longer than 10 minutes.",
    ],
)
def test_a_summary_of_a_server_that_only_streams_is_read_from_the_stream(refusal: str) -> None:
    asked: list[bool] = []

    def completion(*, model: str, messages: list[Chat], **options: Any) -> Any:
        too_long(messages)
        if "max_tokens" in options:
            asked.append(bool(options.get("stream")))
        if not options.get("stream"):
            raise RefusedError(refusal)
        return iter(chunks_of("They spoke of Pier 3 and of Pier 5."))

    compacter = Compacter(memory=None, recall=None)
    wrapped = compacter.wrap(completion)
    for _ in range(2):
        list(wrapped(model="m", messages=TALK, stream=True))
    assert asked[:2] == [False, True]
    assert all(asked[1:])
    totals = compacter.totals
    assert (totals.failures, totals.output_tokens) == (0, 9 * asked.count(True))


def test_an_option_that_a_summarys_request_may_not_have_is_left_out() -> None:
    asked: list[Chat] = []

    def completion(*, model: str, messages: list[Chat], **options: Any) -> Chat:
        too_long(messages)
        is_summary = "max_tokens" in options
        asked.extend([options] * is_summary)
        if is_summary and "tenant" in options:
            raise RefusedError("Unknown parameter: 'tenant'.")
        return reply_of("They spoke of piers.")

    wrapped = Compacter(memory=None, recall=None).wrap(completion)
    wrapped(model="m", messages=TALK, tenant="harbour", colour="red")
    assert asked[0] == {"max_tokens": 2_000, "tenant": "harbour", "colour": "red"}
    assert len(asked) > 1
    assert all(each == {"max_tokens": 2_000, "colour": "red"} for each in asked[1:])


def test_a_form_that_did_not_help_is_not_remembered() -> None:
    asked: list[Chat] = []

    def completion(*, model: str, messages: list[Chat], **options: Any) -> Chat:
        too_long(messages)
        if "max_tokens" in options:
            asked.append(options)
            raise RefusedError("the stream was closed by the server")
        return reply_of("Answer.")

    wrapped = Compacter(memory=None, recall=None).wrap(completion)
    for _ in range(2):
        wrapped(model="m", messages=TALK)
    assert [each.get("stream", False) for each in asked[:2]] == [False, True]
    assert asked.count({"max_tokens": 2_000}) >= 2
