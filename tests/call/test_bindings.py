"""The arguments of a call: what is read of them, and what is changed for a smaller request or for a
summary.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel

from compacter.call.arguments import Binding, bind, characters_sent
from compacter.errors import ConfigurationError
from compacter.messages.format import get_format

if TYPE_CHECKING:
    from collections.abc import Callable

ASKED = [{"role": "user", "content": "Why?"}]
ANSWERED = [*ASKED, {"role": "assistant", "content": "So."}]


def open_ended(**options: Any) -> None: ...


def plain(
    messages: Any, /, model: str = "m", *, max_tokens: int = 9, tools: Any = None
) -> None: ...


def bound(function: Callable[..., Any] = open_ended, **options: Any) -> Binding:
    found = bind(function, **options)
    assert found is not None
    return found


class TestWhatIsRead:
    @pytest.mark.parametrize(
        ("given", "model"),
        [
            ({"model": "a", "model_id": "b", "modelId": "c"}, "a"),
            ({"model": "", "model_id": "b", "modelId": "c"}, "b"),
            ({"modelId": "c"}, "c"),
            ({"model": 7}, None),
            ({}, None),
        ],
    )
    def test_is_the_model_by_any_name(self, given: dict[str, Any], model: str | None) -> None:
        assert bound().read((), given).model == model

    @pytest.mark.parametrize(
        ("given", "name", "limit"),
        [
            ({"max_tokens": 5}, "max_tokens", 5),
            ({"max_completion_tokens": 5}, "max_completion_tokens", 5),
            ({"max_completion_tokens": 5, "max_tokens": 7}, "max_tokens", 7),
            ({"max_tokens": None, "num_predict": 5}, "num_predict", 5),
            ({"max_tokens": True}, "", None),
            ({"max_tokens": "5"}, "", None),
            ({}, "", None),
        ],
    )
    def test_is_the_output_limit(self, given: dict[str, Any], name: str, limit: int | None) -> None:
        facts = bound().read((), given)
        assert (facts.output_option, facts.output_tokens) == (name, limit)

    def test_is_what_is_sent_beside_the_messages(self) -> None:
        given = {
            "tools": [1],
            "system": "Be kind.",
            "functions": [],
            "temperature": 0.5,
            "instructions": None,
        }
        assert list(bound().read((), given).beside) == [[1], "Be kind."]

    def test_has_the_messages_of_a_call_by_position_only_if_they_were_passed(self) -> None:
        def late(model: str, messages: Any = None) -> None: ...

        assert bound(late).read(("m",), {}).messages is None
        assert bound(late).read(("m",), {"messages": ASKED}).messages is ASKED
        assert bound(late).read(("m", ASKED), {}).messages is ASKED

    def test_of_a_class_that_describes_the_reply_is_its_schema(self) -> None:
        class Colour(BaseModel):
            name: str

        assert characters_sent(Colour) > len("name")
        assert characters_sent(dict) == 0
        assert characters_sent("1234") == 4


class TestASmallerRequest:
    def test_has_messages_and_options_where_the_call_had_them(self) -> None:
        args, kwargs = bound(plain).replace(
            (ASKED, "m"), {"max_tokens": 9}, ANSWERED, {"max_tokens": 5}
        )
        assert (args, kwargs) == ((ANSWERED, "m"), {"max_tokens": 5})

    def test_has_an_option_that_was_passed_by_position_there(self) -> None:
        def ask(messages: Any, max_tokens: int) -> None: ...

        assert bound(ask).replace((ASKED, 9), {}, ANSWERED, {"max_tokens": 5}) == (
            (ANSWERED, 5),
            {},
        )
        assert bound(ask).replace((ASKED,), {"max_tokens": 9}, ANSWERED, {"max_tokens": 5}) == (
            (ANSWERED,),
            {"max_tokens": 5},
        )


def native(
    prefix: list[Any], form: str = "openai", *, binding: Binding | None = None, **given: Any
) -> dict[str, Any]:
    """The keywords of a request for a summary that continues the call's own messages."""
    own = binding or bound()
    return dict(
        own.summary_call(
            (),
            {"messages": ANSWERED, **given},
            get_format(form),
            [{"role": "system", "content": "Sum up."}],
            100,
            prefix,
        )[1]
    )


class TestASummaryThatContinuesTheCall:
    @pytest.mark.parametrize(
        ("form", "prefix", "roles"),
        [
            ("anthropic", ANSWERED, ["user", "assistant", "user"]),
            ("anthropic", [], ["user"]),
            ("openai", ASKED, ["user", "user"]),
            ("openai", ANSWERED, ["user", "assistant", "user"]),
        ],
    )
    def test_ends_with_instruction(self, form: str, prefix: list[Any], roles: list[str]) -> None:
        messages = native(prefix, form)["messages"]
        assert [message["role"] for message in messages] == roles
        assert messages[: len(prefix)] == prefix
        assert "Sum up." in str(messages[-1])

    @pytest.mark.parametrize(
        ("choice", "forces"),
        [
            *((choice, False) for choice in ("auto", "none", None, {"type": "auto"})),
            *((choice, True) for choice in ("required", {"type": "any"}, {"type": "function"})),
        ],
    )
    def test_keeps_a_choice_of_tools_unless_it_forces_a_call(
        self, choice: Any, forces: bool
    ) -> None:
        assert ("tool_choice" in native(ASKED, tool_choice=choice)) is not forces

    def test_has_the_calls_options_but_for_the_form_of_its_reply(self) -> None:
        sent = native(ASKED, tools=[1], system="Be kind.", stop=["END"], n=3, temperature=0.1)
        assert sent.items() >= {"tools": [1], "system": "Be kind.", "temperature": 0.1}.items()
        assert {"stop", "n"}.isdisjoint(sent)

    @pytest.mark.parametrize(("store", "sent"), [(False, False), (True, None)])
    def test_is_not_stored_where_the_call_is_not(self, store: bool, sent: bool | None) -> None:
        assert native(ASKED, store=store).get("store") is sent

    @pytest.mark.parametrize(
        ("given", "stream"), [({}, None), ({"stream": True}, False), ({"stream": False}, False)]
    )
    def test_is_no_stream(self, given: dict[str, Any], stream: bool | None) -> None:
        assert native(ASKED, **given).get("stream") is stream

    @pytest.mark.parametrize(
        ("thinking", "limit"),
        [
            (None, 100),
            ({"type": "enabled", "budget_tokens": 1_024}, 1_124),
            ({"type": "enabled", "budget_tokens": -1}, 100),
            ({"type": "adaptive"}, 100),
        ],
    )
    def test_leaves_room_for_thinking_beside_the_summary(self, thinking: Any, limit: int) -> None:
        assert native(ASKED, thinking=thinking)["max_tokens"] == limit

    def test_states_none_to_a_function_that_knows_none(self) -> None:
        def ask(messages: Any, tools: Any = None) -> None: ...

        assert set(native(ASKED, binding=bound(ask))) == {"messages"}


class TestASummaryOfTheTranscript:
    def sent(self, function: Callable[..., Any], *args: Any, **given: Any) -> tuple[Any, Any]:
        prompt = [
            {"role": "system", "content": "Sum up."},
            {"role": "user", "content": "The record."},
        ]
        return bound(function).summary_call(args, given, get_format("openai"), prompt, 100)

    def test_has_none_of_the_tools_and_the_calls_own_name_for_its_limit(self) -> None:
        def ask(
            messages: Any, tools: Any = None, num_predict: int = 9, flavour: str = ""
        ) -> None: ...

        _, sent = self.sent(ask, messages=ASKED, tools=[1], num_predict=5, flavour="mild")
        assert (sent["tools"], sent["num_predict"], sent["flavour"]) == (None, 100, "mild")
        assert set(sent) == {"messages", "tools", "num_predict", "flavour"}
        assert "The record." in str(sent["messages"])

    @pytest.mark.parametrize("given", [{}, {"stream": True}, {"stream": False}])
    @pytest.mark.parametrize("streams", [True, False])
    def test_is_no_stream(self, streams: bool, given: dict[str, bool]) -> None:
        """Nothing is said of streams where neither the function nor the call does."""

        def ask(messages: Any, stream: bool = streams) -> None: ...

        _, sent = self.sent(ask, messages=ASKED, **given)
        assert sent.get("stream") is (False if streams or given else None)


class TestAFunctionsOwnBinding:
    def test_prefers_the_name_that_the_function_has(self) -> None:
        def ask(contents: Any = None, **options: Any) -> None: ...

        assert bound(ask, wire_format="responses").messages_param == "contents"

    def test_is_none_for_a_function_without_messages(self) -> None:
        def ask(question: str) -> None: ...

        assert bind(ask) is None

    def test_goes_by_the_name_that_the_user_states(self) -> None:
        def ask(question: str) -> None: ...

        assert bound(ask, messages_param="question").messages_param == "question"
        assert bound(messages_param="question").messages_param == "question"
        with pytest.raises(
            ConfigurationError, match=r"'prompt' is not a parameter of .*ask, which has: question"
        ):
            bind(ask, messages_param="prompt")
