"""Bad input, failing helpers, cancellation: a clear error or the provider's own, and nothing is
lost.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from tests.conversations import Chat, talk

from compacter import (
    Compacter,
    CompactionEvent,
    History,
    InProcessMemory,
    InvalidHistoryError,
    Quotes,
    Summarize,
    Truncate,
)
from compacter.errors import ConfigurationError
from compacter.observe import JsonLines
from compacter.testing import (
    InvalidRequestError,
    ScriptedModel,
    ScriptedSummarizer,
    TokenLimitError,
)

if TYPE_CHECKING:
    from compacter.events import Event


def answered(reply: Any) -> str:
    text: str = reply["choices"][0]["message"]["content"]
    return text


async def never_awaited(*_: object) -> None: ...


class CallableLater:
    name = "later"

    async def __call__(self, *_: object) -> None: ...

    async def compact(self, task: object) -> None: ...


class Numbered:
    name = 5

    def compact(self, task: object) -> list[Chat]:
        return []


class AsyncMemory:
    async def find(self, keys: object) -> None: ...

    async def save(self, record: object) -> None: ...

    async def claim(self, key: object, seconds: object) -> None: ...


UNUSABLE: dict[str, list[Any]] = {
    "compact_ratio": [-0.1, 1.0001, float("nan"), None, True],
    "max_retries": [-1, 1.5, True, "3", never_awaited, lambda: True],
    "summarizer": [7, " "],
    "max_summary_tokens": [0],
    "strategy": ["summarize", Summarize, [], never_awaited, CallableLater(), Numbered()],
    "fallback": ["forget", {}],
    "preserve_recent_turns": [-1, True],
    "pin": ["role", lambda: True, never_awaited],
    "trigger_tokens": [0, 1.5, float("nan")],
    "min_calls_between": [-1, False],
    "memory": [object(), InProcessMemory, AsyncMemory()],
    "timeout": [0, True],
    "detect": [400, lambda: True, never_awaited, CallableLater()],
    "on_compaction": ["print", {}],
    "on_event": [[print, None], ""],
    "rules": [{"Answer in French.": True}],
    "summary_prompt": [""],
    "before_compaction": [1, lambda: None],
    "redact": ["secret", lambda: "", never_awaited],
    "logger": [3, object(), []],
    "token_counter": [lambda: 1, never_awaited],
    "retrieved": [lambda text: text, never_awaited],
    "recall": [Quotes(search=list), Quotes(search=lambda question: [])],  # type: ignore[arg-type,misc]
}
UNUSABLE_OF_A_HISTORY: dict[str, list[Any]] = {
    "messages": [{"role": "user"}, "text", 3],
    "compacter": [5, Compacter],
    "model": [5],
    "wire_format": ["smoke"],
    "max_tokens": [True, 0],
    "reserve_tokens": [-1, None],
    "conversation": [5, ""],
}


class TestOptions:
    @pytest.mark.parametrize("option", UNUSABLE)
    def test_an_unusable_option_is_named_at_construction(self, option: str) -> None:
        for value in UNUSABLE[option]:
            with pytest.raises(ConfigurationError, match=option):
                Compacter(**{option: value})

    @pytest.mark.parametrize(
        ("options", "remedy"),
        [
            ({"compact_ration": 0.5}, r"'compact_ration'; did you mean compact_ratio\?"),
            ({"colour": 5}, r"'colour'; the options are: adjust_max_tokens, .*, trigger_tokens"),
            ({"model": "gpt-4o"}, r"'model'; did you mean summarizer\?"),
            ({"max_tokens": 5}, r"'max_tokens'; did you mean trigger_tokens\?"),
            ({"summarizer": "extrative"}, r"did you mean 'extractive'\?$"),
            ({"strategy": "clear_tool_results"}, r"say ClearToolResults\(\)$"),
            ({"strategy": Truncate}, r"say Truncate\(\)$"),
            ({"strategy": [Summarize(), "truncate"]}, r"say Truncate\(\)$"),
            ({"on_event": "print"}, "of the event, not 'print'$"),
            ({"pin": "role"}, r"takes a function of a message, or None \(got 'role'\)$"),
            ({"pin": lambda: True}, "cannot be called as pin[^<]*$"),
            ({"memory": "sqlite"}, "redis://[^(]*$"),
        ],
    )
    def test_a_slip_is_told_what_was_meant(self, options: dict[str, Any], remedy: str) -> None:
        with pytest.raises(ConfigurationError, match=remedy):
            Compacter(**options)

    @pytest.mark.parametrize("argument", UNUSABLE_OF_A_HISTORY)
    def test_an_unusable_argument_of_a_history_is_named(self, argument: str) -> None:
        for value in UNUSABLE_OF_A_HISTORY[argument]:
            with pytest.raises(ConfigurationError, match=argument):
                History(**{argument: value})

    def test_a_file_that_is_no_text_is_named(self) -> None:
        with pytest.raises(ConfigurationError, match="path takes a file name, not 5"):
            JsonLines(5)  # type: ignore[arg-type]

    def test_every_bad_option_is_named_at_once(self) -> None:
        with pytest.raises(ConfigurationError, match=r"(?s)compact_ratio.*max_retries"):
            Compacter(compact_ratio=7, max_retries=-2)

    @pytest.mark.parametrize("hook", ["print", lambda: None, lambda event, more: None])
    def test_a_hook_that_cannot_be_called_is_refused(self, hook: Any) -> None:
        compacter = Compacter()
        for register in (compacter.on_compaction, compacter.on_event):
            with pytest.raises(ConfigurationError, match="hook"):
                register(hook)


class TestWhatIsNoCall:
    @pytest.mark.parametrize(
        ("target", "named"),
        [
            (None, "None: pass a client"),
            ("gpt-4o", "a str: pass a client .*; a model's name is"),
            (pytest, "the module pytest: pass a client"),
            (1, "an int: pass a client"),
            ([], ""),
            (object(), ""),
            (Compacter, ""),
            (dict, ""),
        ],
    )
    def test_something_not_callable_is_told_so_in_one_sentence_with_a_link(
        self, target: Any, named: str
    ) -> None:
        pattern = rf"^compacter cannot wrap (?={named}).{{1,160}}clients\.md\)$"
        with pytest.raises(TypeError, match=pattern) as told:
            Compacter().wrap(target)
        assert ". " not in str(told.value)

    def test_a_function_of_mere_options_that_gets_no_messages_is_told_when_it_matters(self) -> None:
        def ask(**options: Any) -> Any:
            return ScriptedModel(window=300).completion("m", options["history"])

        with pytest.raises(TokenLimitError) as refused:
            Compacter().wrap(ask)(model="m", history=talk())

        assert 'wrap(function, messages_param="...")' in refused.value.__notes__[0]

    @pytest.mark.parametrize("name", ["messages", "input", "contents"])
    def test_one_that_gets_them_under_a_usual_name_is_told_nothing(
        self, name: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        def ask(**options: Any) -> str:
            return "ok"

        Compacter().wrap(ask)(**{name: [{"role": "user", "content": "hi"}]})
        assert caplog.records == []

    def test_what_is_next_to_a_client_or_a_function_is_told_what_was_meant(self) -> None:
        openai = pytest.importorskip("openai")
        chat = never_awaited()
        near = [
            (openai.OpenAI, "is a class"),
            (chat, "result of a call"),
        ]
        for target, meant in near:
            with pytest.raises(TypeError, match=meant):
                Compacter().wrap(target)
        chat.close()

    def test_a_function_without_messages_is_told_what_is_supported(self) -> None:
        def add(one: int, other: int) -> int:
            return one + other

        with pytest.raises(TypeError, match=r"add.*only one, other; name.*messages_param"):
            Compacter().wrap(add)

    def test_messages_that_are_arguments_one_by_one_are_no_list(self) -> None:
        def chat(*messages: Chat) -> None: ...

        with pytest.raises(TypeError, match=r"chat.*messages_param"):
            Compacter().wrap(chat)
        with pytest.raises(
            ConfigurationError, match=("messages_param='messages' is not a parameter")
        ):
            Compacter().wrap(chat, messages_param="messages")

    def test_a_messages_param_that_is_none_is_named(self) -> None:
        def chat(prompt: list[Chat]) -> None: ...

        with pytest.raises(ConfigurationError, match=r"'history'.*chat.*prompt"):
            Compacter().wrap(chat, messages_param="history")

    def test_an_unknown_wire_format_is_named_beside_the_known_ones(self) -> None:
        with pytest.raises(ConfigurationError, match=r"'smoke'.*'openai'"):
            Compacter().wrap(ScriptedModel().completion, wire_format="smoke")


class TestWhatIsNoHistory:
    """The provider's own word counts: what it takes is passed on, what it refuses is raised
    unchanged.
    """

    def test_a_call_in_which_no_messages_are_found_says_so_in_a_note(self) -> None:
        def passes_on(*args: Any, **options: Any) -> Any:
            return ScriptedModel(window=300).completion(*args, **options)

        with pytest.raises(TokenLimitError) as refused:
            Compacter(summarizer=ScriptedSummarizer("They talked.")).wrap(passes_on)("m", talk())

        assert "its argument 'messages'; pass them as messages=..." in refused.value.__notes__[0]

    @pytest.mark.parametrize("messages", ["hello", {"role": "user"}, 7, None, [], b"x"])
    def test_what_is_no_list_goes_to_the_provider_as_it_is(self, messages: Any) -> None:
        model = ScriptedModel()

        with pytest.raises(InvalidRequestError):
            Compacter(summarizer=ScriptedSummarizer()).wrap(model.completion)("m", messages)

        assert len(model.requests) == 1

    @pytest.mark.parametrize("messages", [7, None, "hello", b"x", {"role": "user"}, [None], [7]])
    def test_compacting_by_hand_says_what_it_takes(self, messages: Any) -> None:
        compacter = Compacter(summarizer="extractive")
        actions: list[Any] = [
            compacter.plan,
            compacter.compact,
            compacter.estimate_tokens,
            lambda messages: compacter.search(messages, "harbour"),
        ]
        for action in actions:
            with pytest.raises(ConfigurationError, match="messages"):
                action(messages)

    @pytest.mark.parametrize("limit", [0, -1, 1.5, "5", None, True])
    @pytest.mark.parametrize("query", [None, 7, b"x"])
    def test_an_unusable_argument_of_a_search_is_named(self, query: Any, limit: Any) -> None:
        for search in (partial(Compacter().search, talk()), History(talk()).search):
            with pytest.raises(ConfigurationError, match="query"):
                search(query)
            with pytest.raises(ConfigurationError, match="limit"):
                search("harbour", limit)

    @pytest.mark.parametrize(
        "messages",
        [[], [{"role": "system", "content": "s" * 900}], [{"role": "user", "content": "u" * 900}]],
        ids=["empty", "system only", "one message"],
    )
    def test_what_holds_nothing_to_compact_comes_back_unchanged(self, messages: list[Chat]) -> None:
        result = Compacter(summarizer=ScriptedSummarizer()).compact(messages)

        assert (result.messages, result.changed, result.discarded, result.event) == (
            messages,
            False,
            (),
            None,
        )

    @pytest.mark.parametrize("budget", [0, -5, True, 1.5, "many"])
    def test_an_unusable_budget_is_named(self, budget: Any) -> None:
        with pytest.raises(ConfigurationError, match="budget"):
            Compacter(summarizer="extractive").compact(talk(), budget=budget)

    @pytest.mark.parametrize("model", [5, ["m"], b"m"])
    def test_a_model_that_is_no_name_is_refused(self, model: Any) -> None:
        compacter = Compacter(summarizer="extractive")
        actions: list[Any] = [compacter.plan, compacter.compact, compacter.estimate_tokens]
        for action in (
            *(partial(one, talk(), model=model) for one in actions),
            partial(compacter.window, model),
        ):
            with pytest.raises(ConfigurationError, match="model takes a model's name"):
                action()

    @pytest.mark.parametrize("summary", ["", "  \n", 5])
    def test_a_blank_summary_of_the_hosts_is_refused(self, summary: Any) -> None:
        with pytest.raises(ConfigurationError, match="summary"):
            Compacter().compact(talk(), summary=summary)

    def test_without_anybody_to_summarise_the_ways_out_are_named(self) -> None:
        with pytest.raises(ConfigurationError, match=r"model=.*summary=.*summarizer"):
            Compacter().compact(talk())

    @pytest.mark.parametrize(
        ("broken", "index"),
        [
            ([{"role": "tool", "tool_call_id": "call_9", "content": "42"}], 1),
            (
                [
                    {
                        "role": "assistant",
                        "content": None,
                        "tool_calls": [
                            {
                                "id": "call_9",
                                "type": "function",
                                "function": {"name": "f", "arguments": "{}"},
                            }
                        ],
                    }
                ],
                1,
            ),
        ],
        ids=["result without call", "call without result"],
    )
    def test_half_a_tool_pair_is_named_when_asked_and_never_made_worse(
        self, broken: list[Chat], index: int
    ) -> None:
        history = talk()
        history[index:index] = broken
        compacter = Compacter(summarizer=ScriptedSummarizer("A short one."))

        with pytest.raises(InvalidHistoryError, match="call_9") as caught:
            compacter.compact(history, strict=True)
        result = compacter.compact(history)

        assert (caught.value.call_id, caught.value.index) == ("call_9", index)
        assert result.changed
        halves = [message for message in result.messages if message in broken]
        assert halves in (broken, [])

    def test_a_message_larger_than_the_window_is_shortened_at_both_ends(self) -> None:
        model = ScriptedModel(window=800)
        events: list[Event] = []
        compacter = Compacter(
            summarizer=ScriptedSummarizer("A short one."),
            preserve_recent_turns=1,
            on_event=events.append,
        )
        call = {"id": "c", "type": "function", "function": {"name": "read", "arguments": "{}"}}
        report = "FIRST LINE\n" + "the middle of it\n" * 2_000 + "LAST LINE"
        history: list[Chat] = [
            {"role": "user", "content": "Read the file."},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c", "content": report},
        ]

        assert answered(compacter.wrap(model.completion)("m", history)) == "ok"

        compactions = [event for event in events if isinstance(event, CompactionEvent)]
        assert compactions
        assert history[2]["content"] == report
        assert history[2] in compactions[0].discarded

    def test_a_last_user_message_larger_than_the_window_is_the_providers_to_refuse(self) -> None:
        model = ScriptedModel(window=800)
        history = [*talk(10), {"role": "assistant", "content": "Go on."}]
        history.append({"role": "user", "content": "long " * 2_000})

        with pytest.raises(TokenLimitError) as caught:
            Compacter(summarizer=ScriptedSummarizer("A short one.")).wrap(model.completion)(
                "m", history
            )

        assert caught.value.__notes__
        assert all(request.messages[-1] == history[-1] for request in model.requests)
