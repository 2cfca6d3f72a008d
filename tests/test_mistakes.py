"""The likeliest mistakes get the remedy."""

from __future__ import annotations

import copy
import inspect
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from tests.conversations import talk

import compacter
from compacter import Compacter, History, compacted
from compacter.errors import ConfigurationError, FunctionError
from compacter.events import CompactionStarted
from compacter.options import Options
from compacter.spending import Spending
from compacter.testing import ScriptedModel

spending: Any = Spending
HELLO = {"role": "user", "content": "hello"}


def completion(messages: list[Any]) -> None: ...


async def coroutine() -> None: ...


@dataclass
class Shown:
    messages: list[Any]


def extracted() -> Any:
    return Compacter(summarizer="extractive").compact([HELLO])


def append(text: Any) -> None:
    History().append(text)


@pytest.mark.parametrize("given", [completion, 0.7, "gpt-4o"])
def test_what_is_passed_without_a_name(given: Any) -> None:
    with pytest.raises(TypeError, match=r"compact_ratio=0\.7.*\.wrap\(completion\).*@compacted"):
        Compacter(given)


def test_a_share_in_per_cent() -> None:
    """A share in per cent is refused; ``test_options`` has those that may be tokens."""
    with pytest.raises(ConfigurationError, match=r"compact_ratio: .*did you mean 0\.7\?"):
        Compacter(compact_ratio=70)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("trigger", "trigger_tokens"),
        ("max_tokens_before_summary", "trigger_tokens"),
        ("keep", "preserve_recent_turns"),
        ("messages_to_keep", "preserve_recent_turns"),
        ("summary_model", "summarizer"),
        ("summarization_prompt", "summary_prompt"),
        ("compaction_ratio", "compact_ratio"),
    ],
)
def test_an_option_of_another_library(name: str, meant: str) -> None:
    assert meant in Options.model_fields
    with pytest.raises(ConfigurationError, match=rf"'{name}'; did you mean {meant}\?"):
        Compacter(**{name: 5})  # type: ignore[arg-type]


def test_a_decorator_with_parentheses_that_has_none() -> None:
    one = Compacter()
    registers: tuple[Any, ...] = (one.on_compaction, one.on_event)
    for register in registers:
        with pytest.raises(ConfigurationError, match=r"@compacter\.on_compaction .*no parenth"):
            register()


@pytest.mark.parametrize("given", [0.5, "gpt-4o"])
def test_an_option_of_the_decorator_without_its_name(given: Any) -> None:
    """The error for ``@compacted(0.5)`` states that options have names."""
    decorate: Any = compacted
    with pytest.raises(TypeError, match=r"@compacted\(compact_ratio=0\.5\), not"):
        decorate(given)


@pytest.mark.parametrize("name", ["wrap", "compact", "on_event"])
def test_a_method_that_is_called_on_the_module(name: str) -> None:
    """The error for ``compacter.wrap(f)`` states that a ``Compacter`` has that method."""
    assert hasattr(Compacter, name)
    with pytest.raises(AttributeError, match=rf"Compacter\(\.\.\.\)\.{name}\("):
        getattr(compacter, name)


async def test_a_result_that_is_awaited() -> None:
    """The error for ``await compacter.compact(...)`` names ``acompact``."""
    result: Any = Compacter(summarizer="extractive").compact(talk())
    with pytest.raises(TypeError, match="await acompact"):
        await result


def test_a_field_that_an_event_lacks(caplog: pytest.LogCaptureFixture) -> None:
    """The error for a field that does not exist lists the fields, and the call goes on."""

    def hook(event: Any) -> None:
        assert event.tokens_saved

    completion = Compacter(summarizer="extractive", on_compaction=hook).wrap(
        ScriptedModel(window=900).completion
    )
    completion("m", talk())
    assert "CompactionEvent has no 'tokens_saved'; it has sentence, model" in caplog.text
    event = CompactionStarted(trigger="manual", original_data_size=2, head_size=1)
    assert not hasattr(event, "tokens_saved")
    assert copy.deepcopy(event) == event


@pytest.mark.parametrize("answer", [["a", "list"], 5, None, lambda prompt: prompt])
def test_what_a_function_returns_in_place_of_a_summary(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The error for a function whose answer is not a summary states what to return, not another
    model.
    """

    def summarize(messages: list[Any]) -> Any:
        return answer(messages) if callable(answer) else answer

    completion = Compacter(summarizer=summarize).wrap(ScriptedModel(window=900).completion)
    completion("m", talk())
    assert "the summary was refused: " in caplog.text
    assert "docs/troubleshooting.md#" in caplog.text
    assert "capable model" not in caplog.text


async def test_a_limit_in_tokens_where_characters_are_meant() -> None:
    limit: Any = {"max_tokens": 100}
    one = Compacter()
    with pytest.raises(TypeError, match=r"'max_tokens': budget=.*History\(messages, max_tokens="):
        one.compact([HELLO], **limit)
    with pytest.raises(TypeError, match="budget="):
        await one.acompact([HELLO], **limit)


@pytest.mark.parametrize("message", ["hello", {"content": "hello"}, {}])
def test_what_is_appended_in_place_of_a_message(message: Any) -> None:
    """The error for a text, or a dict without a role, shows a message."""
    with pytest.raises(ConfigurationError, match=r'\{"role": "user", "content": '):
        append(message)


@pytest.mark.parametrize(
    ("message", "wire_format"),
    [({"type": "reasoning", "summary": []}, "responses"), ({"parts": [{"text": "a"}]}, "gemini")],
)
def test_messages_of_formats_without_a_role_are_appended(message: Any, wire_format: str) -> None:
    """Items of the Responses API, and Gemini's contents, need no role."""
    History(wire_format=wire_format).append(message)


@pytest.mark.parametrize("index", [99, 1, -2])
def test_a_pin_on_a_message_that_is_not_there(index: int) -> None:
    history = History([HELLO])
    for use in (history.pin, history.unpin):
        with pytest.raises(IndexError, match=f"no message {index}: the history has 1"):
            use(index)


c: Any = compacter  # Type checkers refuse most of these.
testing: Any = compacter.testing
SLIPS: list[tuple[Callable[[], object], str]] = [
    # A typing error in a name, or another library's name.
    (lambda: c.Compacter(compact_ratoi=0.5), r"'compact_ratoi'; did you mean compact_ratio\?"),
    (lambda: c.Compacter(COMPACT_RATIO=0.5), r"did you mean compact_ratio\?"),
    (lambda: c.Compacter(context_window=8_000), r"did you mean trigger_tokens\?"),
    (lambda: c.Compacter(n_ctx=8_000), r"did you mean trigger_tokens\?"),
    (lambda: c.Quotes(embed=5), r"^Quotes has no 'embed'; it takes share, steps, search, tool$"),
    (lambda: c.Compacter().add_hook(print), r"^Compacter has no 'add_hook'; .*on_compaction"),
    (lambda: c.Compacter().wrapp(len), r"did you mean wrap\?"),
    (lambda: c.Compacter().completion("m", [HELLO]), r"has no 'completion'; it has .*wrap$"),
    (lambda: c.History().add(HELLO), r"^History has no 'add'; it has .*append"),
    (lambda: c.History().snapshots(), r"did you mean snapshot\?"),
    (lambda: c.Compacter().totals.saved, r"^Totals has no 'saved'; .*characters_saved"),
    (
        lambda: c.Compacter().compact([HELLO], summary="a").summary,
        r"no 'summary'; .*messages",
    ),
    (lambda: testing.ScriptedModel(windows=300), r"'windows'; .*Model\(\*, window=8000"),
    (
        lambda: c.SQLiteMemory("a.db", size=5),
        r"'size'; .*SQLiteMemory\(path, max_",
    ),
    (lambda: c.RedisMemory(host="localhost"), r"'host'; call it as RedisMemory\(url, "),
    (
        lambda: c.Compacter().wrap(len, format="openai"),
        r"'format'; .*\.wrap\(target, \*, m",
    ),
    (
        lambda: c.History().append(role="user"),
        r"'role'; .*History\(\.\.\.\)\.append\(",
    ),
    # What belongs elsewhere.
    (
        lambda: c.Compacter.wrap(len),
        r"not of its class; call it as Compacter\(\.\.\.\)\.wrap",
    ),
    (lambda: c.Compacter.on_event(print), r"Compacter\(\.\.\.\)\.on_event\(hook=None\)$"),
    (
        lambda: c.Compacter.compact([HELLO]),
        r"Compacter\(\.\.\.\)\.compact\(messages, \*",
    ),
    (lambda: c.Compacter().compact([HELLO], 500), r"were given; .*compact\(messages, \*, model="),
    (lambda: c.Compacter().search([HELLO]), r"'query'; call it as .*search\(messages, query"),
    (lambda: c.Compacter.from_env("prod.env"), r"environment takes a mapping .*not 'prod\.env'"),
    (lambda: setattr(c.Compacter(), "compact_ratio", 0.5), r"\.replace\(compact_ratio=\.\.\.\)$"),
    (
        lambda: setattr(c.Compacter(), "on_compaction", print),
        r"Compacter\(on_compaction=\.\.\.\)",
    ),
    (lambda: c.Quotes(0.2), r"were given; call it as Quotes\(\*, share=0\.15"),
    (lambda: c.Shorten(400), r"were given; call it as Shorten\(\*, min_size="),
    (lambda: c.ClearToolResults(keep=3), r"'keep'; .*ClearToolResults\(\*, keep_recent=3"),
    (lambda: c.History([HELLO]).pin(HELLO), r"there is no message \{'role'.*the history has 1$"),
    (lambda: c.Compacter.for_agents(0.5), r"call it as Compacter\.for_agents\(\*\*"),
    (lambda: c.Compacter().totals(), r"totals is no method: compacter\.totals\.rounds"),
    (lambda: setattr(Options(), "timeout", 5), r"read-only: Compacter\(timeout=\.\.\.\)"),
    (lambda: c.Compacter().plan([HELLO]).removed, r"CompactionPlan has no 'removed'; "),
    (lambda: list(extracted()), r"CompactionResult is no list .*result\.messages$"),
    (lambda: extracted()["messages"], r"CompactionResult is no list .*result\.messages$"),
    (lambda: operator.add(c.History([HELLO]), [HELLO]), r"no \+; history\.extend\(messages\)"),
    (lambda: operator.add([HELLO], c.History([HELLO])), r"no \+; history\.extend\(messages\)"),
    # Another kind of value.
    (lambda: spending(tokens=0.5), r"^tokens: takes a whole number above 0, or None; not 0\.5$"),
    (lambda: spending(dollars="5"), r"^dollars: takes a number above 0, or None; not '5'$"),
    (
        lambda: c.Compacter(summary_prompt="Sum up: {{ history }}"),
        r"\{\{ history \}\} would .*\{history\}",
    ),
    (
        lambda: c.Compacter(summary_prompt="Sum up: $history"),
        r"\$history would .*\{history\}",
    ),
    (
        lambda: c.Compacter(summary_prompt="Sum up: {messages}"),
        r"\{messages\} would .*\{history\}",
    ),
    (
        lambda: c.Compacter(summary_prompt="{text}: in short"),
        r"summary_prompt: .*\{history\} or %s",
    ),
    (lambda: c.Compacter(detect=ValueError), r"detect: takes a function of an exception"),
    (
        lambda: c.Compacter(strategy=lambda *, plan: plan),
        r"strategy\(plan\): too many posit",
    ),
    (
        lambda: c.Compacter(strategy="extractive"),
        r"strategy: takes a strategy .*; not 'extractive'$",
    ),
    (
        lambda: c.Compacter(on_event=True),
        r"^on_event: a hook is a function of the event, not True$",
    ),
    (lambda: c.Compacter(summarizer=coroutine()), r"pass the function, without a call of it$"),
    (
        lambda: c.Compacter().compact(Shown([HELLO])),
        r"list of messages, not Shown; .*\.messages$",
    ),
    (lambda: c.detect_token_limit("too long"), r"not 'too long'; .*Exception\(text\)\)$"),
    (lambda: c.detect_token_limit(None), r"detect_token_limit takes an exception, not None"),
    # Another unit.
    (lambda: c.Compacter(timeout=30_000), r"timeout: takes .*seconds.*did you mean 30\?$"),
    (lambda: c.Compacter(timeout=1e9), r"timeout: takes a number of seconds .*or None$"),
    (lambda: c.Quotes(share=2), r"^share: .*did you mean 0\.02\?$"),
    (lambda: c.Compacter(recall=15), r"^recall: takes a share .*did you mean 0\.15\?$"),
    (lambda: c.Compacter().drain("5s"), r"^timeout takes a number of seconds above 0, not '5s'$"),
]


@pytest.mark.parametrize(("use", "words"), SLIPS)
def test_a_slip_names_the_argument_and_the_remedy(use: Callable[[], object], words: str) -> None:
    with pytest.raises((ConfigurationError, TypeError, AttributeError, IndexError), match=words):
        use()


async def test_the_arguments_of_an_async_method() -> None:
    one: Any = Compacter()
    assert inspect.iscoroutinefunction(one.acompact)
    with pytest.raises(TypeError, match=r"call it as Compacter\(\.\.\.\)\.acompact\(messages"):
        await one.acompact([HELLO], 500)


def test_an_exception_in_a_method_is_raised_as_it_is() -> None:
    """Arguments that a method takes are not blamed for an exception of its own."""

    def count(messages: Any) -> int:
        raise TypeError(messages)

    one: Any = Compacter(token_counter=count)
    with pytest.raises(FunctionError, match=r"^token_counter raised TypeError$"):
        one.estimate_tokens([HELLO])
    with pytest.raises(TypeError, match=r"^compacter cannot wrap an int: .*clients\.md\)$"):
        one.wrap(5)


def test_a_prompt_with_both_kinds_of_braces_or_with_json_is_taken() -> None:
    for prompt in ("{history} as {key}: {value}", 'Answer {"a": 1}', "%s in {language}", "{{a}}"):
        assert Compacter(summary_prompt=prompt).options.summary_prompt == prompt


@pytest.mark.parametrize("count", [lambda text: len(text) // 4, lambda text: 0])
def test_a_counter_of_a_text_is_told_that_it_gets_a_list(count: Any) -> None:
    with pytest.raises(FunctionError, match=r"token_counter returned \d+ for a list of 80 messag"):
        Compacter(token_counter=count).estimate_tokens([HELLO] * 80)


def test_a_file_of_variables_may_have_some_without_a_value() -> None:
    """As ``dotenv_values`` returns them."""
    given: dict[str, Any] = {"COMPACTER_MEMORY": None, "COMPACTER_COMPACT_RATIO": 0.5}
    assert Compacter.from_env(given).options.compact_ratio == 0.5


@pytest.mark.parametrize("answer", [[], "no", 0.5])
def test_what_a_hook_returns_in_place_of_a_plan(
    answer: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """The warning names the hook and what it may return, and the call goes on."""
    model = ScriptedModel(window=900)
    one = Compacter(summarizer="extractive", before_compaction=lambda _: answer)
    one.wrap(model.completion)("m", talk())
    assert f"before_compaction returned {type(answer).__name__}; " in caplog.text
    assert one.totals.rounds == 1
