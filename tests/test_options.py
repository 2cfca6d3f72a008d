"""The options: one list of them, errors that name the remedy, and which settings may share a
summary.
"""

from __future__ import annotations

import functools
import inspect
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_type_hints

import pytest

from compacter import ClearToolResults, Compacter, Quotes, Shorten, Summarize, Truncate
from compacter.compacter import CompacterOptions
from compacter.errors import ConfigurationError
from compacter.options import Options
from compacter.options.checks import CHECKS
from compacter.overflow import TokenLimit
from compacter.testing import token_limit_error

if TYPE_CHECKING:
    from collections.abc import Callable


def shout(text: str) -> str:
    return text.upper()


def scope(**options: Any) -> str:
    return Options(**options).memory_scope


def make_redactor(secret: str) -> Callable[[str], str]:
    return lambda text: text.replace(secret, "***")


class Redactor:
    def __init__(self, secret: str) -> None:
        self.secret = secret

    def redact(self, text: str) -> str:
        return text.replace(self.secret, "***")

    def __call__(self, text: str) -> str:
        return self.redact(text)


@dataclass(frozen=True)
class Halve:
    """A strategy with a setting."""

    share: float = 0.5
    name: str = "halve"

    def compact(self, task: Any) -> Any:
        return task.keep([])


class TestOneList:
    def test_each_check_knows_its_option_without_pydantics_help(self) -> None:
        """pydantic 2.12.0 tells no name to a validator of several fields; see `make newest`."""
        validators = Options.__pydantic_decorators__.field_validators
        checks = {name: validators[f"_check_{name}"] for name in CHECKS}
        assert {name: check.info.fields for name, check in checks.items()} == {
            name: (name,) for name in CHECKS
        }
        assert not any(
            "info" in inspect.signature(check.func).parameters for check in checks.values()
        )

    def test_help_says_what_each_is_for(self) -> None:
        told = inspect.getdoc(Compacter)  # Python 3.13 keeps no indentation in ``__doc__``.
        assert told is not None
        listed = re.findall(r"^    (\w+): ", told.partition("Raises:")[0], re.MULTILINE)
        assert listed == list(Options.model_fields)

    def test_what_a_type_checker_reads_has_the_names_that_are_accepted(self) -> None:
        assert set(get_type_hints(CompacterOptions)) == set(Options.model_fields)

    def test_the_manual_has_a_row_for_each_with_its_default(self, root: Path) -> None:
        manual = (root / "docs" / "options.md").read_text(encoding="utf-8")
        rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", manual, re.MULTILINE))
        made = {"memory": "in-process", "strategy": "`Summarize()`", "recall": "`0.15`"}
        for name, option in Options.model_fields.items():
            default = made.get(name) or f"`{option.default!r}`".replace("'", '"')
            assert rows.get(name) == default, f"docs/options.md lacks | `{name}` | {default} |"

    @pytest.mark.parametrize("function", [max, dict, print])
    def test_a_function_whose_signature_is_unknown_is_believed(self, function: Any) -> None:
        assert Options(on_event=function).on_event == (function,)
        if function is max:
            assert Options(summarizer=function).summarizer is function

    def test_a_whole_number_of_tokens_may_be_a_float(self) -> None:
        assert Options(trigger_tokens=8_000.0).trigger_tokens == 8_000


class TestNewOptions:
    def test_recall_takes_a_share_tokens_quotes_or_nothing(self) -> None:
        """``recall`` accepts a share, tokens or ``Quotes``; 0 and ``None`` turn quotes off."""
        given: list[Any] = [0.15, 4_000]
        for recall in given:
            assert Options(recall=recall).recall == Quotes(share=recall)
            assert Options(recall=Quotes(share=recall)).recall == Quotes(share=recall)
        given = [0, 0.0, None]
        assert [Options(recall=recall).recall for recall in given] == [None] * 3

    @pytest.mark.parametrize("recall", [1.5, -0.1, -1, 1.0, True, False, "much", float("nan")])
    def test_another_recall_is_refused_with_the_remedy(self, recall: Any) -> None:
        with pytest.raises(ConfigurationError, match=r"recall: takes a share of the window"):
            Compacter(recall=recall)

    @pytest.mark.parametrize("rules", ["Be brief.", [""], ["  "], [3], 3, None])
    def test_other_rules_are_refused_with_the_remedy(self, rules: Any) -> None:
        with pytest.raises(ConfigurationError, match=r"rules: takes a list of rules"):
            Compacter(rules=rules)

    @pytest.mark.parametrize(
        "fallback", ["truncate", ("extractive", "truncate"), ["truncate"], None, []]
    )
    def test_a_fallback_may_be_one_several_or_none(self, fallback: Any) -> None:
        given: Any = fallback
        names = [fallback] if isinstance(fallback, str) else fallback or ()
        assert Options(fallback=given).fallback == tuple(names)


class TestMemoryScope:
    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"redact": shout},
            {"pin": shout, "summarizer": "gpt-4o"},
            {"strategy": [ClearToolResults(exclude=("read", "write", "list")), Shorten()]},
            {"strategy": Halve(0.25)},
            {"rules": ["Be brief."], "fallback": ["extractive", "truncate"]},
        ],
    )
    def test_equal_settings_share(self, options: dict[str, Any]) -> None:
        assert scope(**options) == scope(**options)

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ({"compact_ratio": 0.5}, {}),
            ({"summarizer": "gpt-4o"}, {"summarizer": "gpt-4o-mini"}),
            ({"strategy": Summarize()}, {"strategy": Truncate()}),
            ({"strategy": Halve(0.25)}, {"strategy": Halve(0.75)}),
            ({"strategy": Shorten(min_size=400)}, {"strategy": Shorten(min_size=800)}),
            ({"fallback": None}, {}),
            ({"rules": ["Be brief."]}, {}),
            ({"redact": shout}, {}),
            ({"redact": make_redactor("a")}, {"redact": make_redactor("b")}),
            ({"redact": Redactor("a").redact}, {"redact": Redactor("b").redact}),
            ({"redact": Redactor("a")}, {"redact": Redactor("b")}),
            (
                {"redact": functools.partial(str.replace, "a", "b")},
                {"redact": functools.partial(str.replace, "b", "a")},
            ),
            ({"pin": lambda message: True}, {"pin": lambda message: False}),
        ],
    )
    def test_settings_that_differ_never_share(
        self, one: dict[str, Any], other: dict[str, Any]
    ) -> None:
        assert scope(**one) != scope(**other)

    def test_settings_that_matter_to_no_summary_may_differ(self) -> None:
        limits: dict[str, Any] = {
            "max_retries": 5,
            "trigger_tokens": 0.8,
            "min_calls_between": 0,
            "timeout": 9.0,
        }
        functions: dict[str, Any] = {
            name: lambda _: None for name in ("detect", "on_event", "token_counter")
        }
        assert scope(**limits, **functions, memory=None, recall=None, conversation="a") == scope()

    def test_a_closure_shares_with_itself_and_no_other(self) -> None:
        closure = make_redactor("a")
        assert scope(redact=closure) == scope(redact=closure)
        assert scope(redact=closure) != scope(redact=make_redactor("a"))

    def test_a_closure_that_takes_the_place_of_a_dead_one_shares_nothing_with_it(self) -> None:
        seen = [scope(redact=make_redactor("a")) for _ in range(50)]
        assert len(set(seen)) == len(seen)

    def test_a_summarizer_object_is_known_by_its_class(self) -> None:
        assert scope(summarizer=Redactor("a")) == scope(summarizer=Redactor("b"))

    def test_named_settings_are_the_same_in_another_process(self) -> None:
        program = (
            "from compacter import ClearToolResults\nfrom compacter.options import "
            "Options\nimport textwrap\n"
            "names = ('read', 'write', 'list', 'grep')\n"
            "print(Options(redact=textwrap.dedent, "
            "strategy=ClearToolResults(exclude=names)).memory_scope)"
        )
        run = [sys.executable, "-c", program]
        env = os.environ | {"PYTHONPATH": str(Path(__file__).parent.parent / "middleware")}
        first, second = (
            subprocess.run(run, env=env, capture_output=True, check=True).stdout for _ in range(2)
        )
        assert first == second
        assert b"'redact': 'textwrap.dedent'" in first


TOKENS_OR_SHARE = ("recall", "trigger_tokens", "prepare_tokens")


@pytest.mark.parametrize(("number", "share"), [(1, "1.0"), (2, "0.02"), (63, "0.63")])
@pytest.mark.parametrize("name", TOKENS_OR_SHARE)
def test_a_whole_number_that_is_no_number_of_tokens_is_refused(
    name: str, number: int, share: str
) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{name}: .*did you mean {share}\?"):
        Compacter(**{name: number})  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match=rf"{name.upper()}=.*did you mean {share}\?"):
        Compacter.from_env({f"COMPACTER_{name.upper()}": str(number)})


@pytest.mark.parametrize("name", TOKENS_OR_SHARE)
def test_from_100_on_it_is_a_number_of_tokens(name: str) -> None:
    options: dict[str, Any] = {name: 100}
    assert str(getattr(Options(**options), name)) in (
        "100",
        "share=100 steps=True search=None tool=False",
    )


def test_quotes_refuse_it_too() -> None:
    with pytest.raises(ValueError, match=r"did you mean 1\.0\?"):
        Quotes(share=1)


def test_every_option_that_takes_a_share_or_tokens_is_named_here() -> None:
    """By what each takes: a share as a float, and a large whole number of tokens."""

    def takes(name: str, value: object) -> bool:
        try:
            Options(**{name: value})  # type: ignore[arg-type]
        except ValueError:
            return False
        return True

    names = {name for name in Options.model_fields if takes(name, 0.25) and takes(name, 20_000)}
    assert names - {"timeout"} == set(TOKENS_OR_SHARE)


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("compact_ratio", 0, "takes a number above 0 and at most 1"),
        ("compact_ratio", 2, "takes a number above 0 and at most 1"),
        ("compact_ratio", "x", "takes a number"),
        ("max_summary_tokens", 3, "takes a whole number of at least 16"),
        ("min_calls_between", "x", "takes a whole number"),
        ("min_calls_between", 1.5, "takes a whole number"),
        ("alternate_roles", "maybe", "takes True or False"),
        ("conversation", "", "takes a text that is not empty"),
        ("conversation", 3, "takes a text"),
        ("memory", "x", "takes sqlite:PATH"),
    ],
)
def test_what_an_option_takes_is_said_in_words_and_the_name_once(
    option: str, value: object, words: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"^{option}: {re.escape(words)}") as refused:
        Compacter(**{option: value})  # type: ignore[arg-type]
    assert str(refused.value).count(option) == 1


@pytest.mark.parametrize("option", Options.model_fields)
def test_what_each_option_takes_is_said_in_words_of_ours(option: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"^{option}: ") as refused:
        Compacter(**{option: object()})  # type: ignore[arg-type]
    assert "Input should" not in str(refused.value)


class TestTheUsersDetector:
    @pytest.mark.parametrize("answer", [True, TokenLimit(limit=10, requested=20, kind="input")])
    def test_it_is_asked_first(self, answer: Any) -> None:
        found = Options(detect=lambda error: answer).detect(ValueError("mine"))
        assert isinstance(found, TokenLimit)

    def test_its_no_is_final_and_its_none_asks_on(self) -> None:
        error = token_limit_error(limit=10, input_tokens=20)
        assert Options(detect=cast("Any", lambda error: False)).detect(error) is None
        assert Options(detect=lambda error: None).detect(error) is not None
        assert Options().detect(error) is not None

    def test_one_that_raises_is_passed_over(self) -> None:
        def broken(error: BaseException) -> Any:
            raise KeyError

        assert (
            Options(detect=broken).detect(token_limit_error(limit=10, input_tokens=20)) is not None
        )
        assert Options(detect=broken).detect(ValueError("no")) is None
