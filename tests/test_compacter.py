"""A ``Compacter`` as an object: made anew with other options, copied, pickled, shown, set by the
environment.
"""

from __future__ import annotations

import copy
import functools
import inspect
import os
import pickle
import pydoc
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

import compacter as package
from compacter import (
    ClearToolResults,
    Compacter,
    CompactionEvent,
    History,
    InProcessMemory,
    SQLiteMemory,
    Truncate,
)
from compacter.errors import ConfigurationError
from compacter.options import Options
from compacter.testing import ScriptedModel, ScriptedSummarizer

if TYPE_CHECKING:
    from pathlib import Path

TALK = [{"role": "user", "content": f"Harbour {n} takes ships of {n} metres."} for n in range(60)]
told: list[CompactionEvent] = []


def note(event: CompactionEvent) -> None:
    told.append(event)


def is_system(message: Any) -> bool:
    return bool(message["role"] == "system")


def never(error: BaseException) -> None:
    return None


class TestWindow:
    def test_is_what_a_refusal_stated_or_the_table_has(self) -> None:
        compacter = Compacter(summarizer=ScriptedSummarizer("Harbours."))
        assert compacter.window("m") is None
        model = ScriptedModel(window=700)
        talk = [
            {"role": role, "content": f"{turn} ".ljust(200, "x")}
            for turn in range(9)
            for role in ("user", "assistant")
        ]
        compacter.wrap(model.completion)("m", [*talk, {"role": "user", "content": "And now?"}])
        assert compacter.window("m") == 700
        assert compacter.window("gpt-4o") == 128_000


class TestReplace:
    def test_other_options_the_same_memory_and_hooks(self) -> None:
        one = Compacter(compact_ratio=0.5, summarizer="extractive")
        one.on_compaction(note)
        other = one.replace(compact_ratio=0.9)
        assert (one.options.compact_ratio, other.options.compact_ratio) == (0.5, 0.9)
        assert other.options.memory is one.options.memory
        told.clear()
        other.compact(TALK)
        assert len(told) == 1
        assert (one.totals.rounds, other.totals.rounds) == (0, 1)


class TestCopies:
    @pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
    def test_a_copy_shares_the_memory(self, copied: Any) -> None:
        compacter = Compacter(compact_ratio=0.4, pin=is_system)
        clone = copied(compacter)
        assert clone is not compacter
        assert clone.options == compacter.options
        assert clone.options.memory is compacter.options.memory

    def test_a_pickled_one_has_the_options_and_an_empty_memory(self) -> None:
        compacter = Compacter(
            compact_ratio=0.4,
            pin=is_system,
            detect=never,
            fallback=None,
            memory=InProcessMemory(7),
            redact="secrets",
            strategy=[ClearToolResults(exclude=["read"]), Truncate()],
            on_compaction=note,
            recall=900,
        )
        compacter.wrap(ScriptedModel(window=300).completion)("m", TALK)

        clone = pickle.loads(pickle.dumps(compacter))  # noqa: S301 - its own

        assert clone.options.model_copy(update={"memory": None}) == compacter.options.model_copy(
            update={"memory": None}
        )
        assert (clone.options.memory.max_entries, len(clone.options.memory)) == (7, 0)

    def test_a_memory_in_a_file_is_found_again(self, tmp_path: Path) -> None:
        model = ScriptedModel(window=300)
        compacter = Compacter(summarizer="extractive", memory=SQLiteMemory(tmp_path / "memory.db"))
        compacter.wrap(model.completion)("m", TALK)
        clone = pickle.loads(pickle.dumps(compacter))  # noqa: S301 - its own
        clone.wrap(model.completion)("m", TALK)
        assert model.rejected == 1

    def test_a_subclass_stays_one(self) -> None:
        assert type(pickle.loads(pickle.dumps(Own(compact_ratio=0.4)))) is Own  # noqa: S301 - its own
        assert type(Own().replace(compact_ratio=0.4)) is Own
        assert type(Own.frugal()) is Own


class Own(Compacter):
    """A user's own."""


class TestWhatIsShown:
    def test_repr_shows_what_is_not_as_usual(self) -> None:
        assert repr(Compacter()) == "Compacter()"
        shown = repr(Compacter(compact_ratio=0.5, strategy=Truncate(), recall=None))
        assert shown == (
            "Compacter(compact_ratio=0.5, strategy=(Truncate(name='truncate'),), recall=None)"
        )

    def test_help_has_every_option_with_its_default(self) -> None:
        parameters = inspect.signature(Compacter).parameters
        assert list(parameters) == list(Options.model_fields)
        assert parameters["compact_ratio"].default == 0.7
        assert "max_retries=3" in pydoc.render_doc(Compacter)

    def test_the_signature_of_a_subclass_is_its_own(self) -> None:
        class Fixed(Compacter):
            def __init__(self, ratio: float) -> None:
                super().__init__(compact_ratio=ratio)

        assert list(inspect.signature(Fixed).parameters) == ["ratio"]

    def test_completion_shows_public_names_only(self) -> None:
        assert dir(package) == sorted([*package.__all__, "__version__"])
        assert all(hasattr(package, name) for name in dir(package))

    def test_the_package_has_twenty_one_names(self) -> None:
        """These names are what ``compacter`` exports; all else is imported from its module."""
        assert package.__all__ == sorted(
            [
                *("Compacter", "compacted", "History", "Quotes", "recall_tool"),
                *("CompactionEvent", "CompactionResult", "CompactionPlan"),
                *("TokenLimit", "detect_token_limit"),
                *("CompactionStrategy", "Summarize", "Truncate", "ClearToolResults"),
                *("Shorten", "InProcessMemory", "SQLiteMemory", "RedisMemory"),
                *("CompacterError", "CompactionError", "InvalidHistoryError"),
            ]
        )


class TestFromEnvironment:
    def test_variables_are_read_like_options(self, tmp_path: Path) -> None:
        options = Compacter.from_env(
            {
                "COMPACTER_COMPACT_RATIO": "0.4",
                "COMPACTER_MAX_RETRIES": "5",
                "COMPACTER_SUMMARIZER": "extractive",
                "COMPACTER_TRIGGER_TOKENS": "0.8",
                "COMPACTER_ADJUST_MAX_TOKENS": "false",
                "COMPACTER_TIMEOUT": "none",
                "COMPACTER_RECALL": "2000",
                "COMPACTER_STRATEGY": "clear_tool_results, truncate",
                "COMPACTER_FALLBACK": "truncate",
                "COMPACTER_RULES": "Be brief.\nAnswer in French.",
                "COMPACTER_RETRIEVED": '["<context>", "</context>"]',
                "COMPACTER_CONVERSATION": "5",
                "COMPACTER_MEMORY": f"sqlite:{tmp_path}/memory.db",
                "COMPACTER_MAX_SUMMARY_TOKENS": "",
                "PATH": "/bin",
            }
        ).options
        expected = {
            "compact_ratio": 0.4,
            "max_retries": 5,
            "summarizer": "extractive",
            "trigger_tokens": 0.8,
            "adjust_max_tokens": False,
            "timeout": None,
            "fallback": ("truncate",),
            "rules": ("Be brief.", "Answer in French."),
            "retrieved": ("<context>", "</context>"),
            "conversation": "5",
        }
        assert {name: getattr(options, name) for name in expected} == expected
        assert options.recall is not None
        assert options.recall.share == 2000
        assert [one.name for one in options.strategy] == ["clear_tool_results", "truncate"]
        assert isinstance(options.memory, SQLiteMemory)

    def test_the_environment_of_the_process(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("os.environ", {"COMPACTER_COMPACT_RATIO": "0.4"})
        assert Compacter().options.compact_ratio == 0.7
        assert Compacter.from_env().options.compact_ratio == 0.4
        assert Compacter.from_env(compact_ratio=0.5).options.compact_ratio == 0.5

    def test_none_in_the_environment_turns_an_option_off(self) -> None:
        off: list[tuple[object, list[str]]] = [
            (None, ["memory", "recall", "conversation", "summary_prompt", "redact", "timeout"]),
            ((), ["rules", "fallback"]),
        ]
        for value, names in off:
            options = Compacter.from_env({f"COMPACTER_{name.upper()}": "None" for name in names})
            assert [getattr(options.options, name) for name in names] == [value] * len(names)

    def test_rules_may_be_json_and_the_prefix_ones_own(self) -> None:
        options = Compacter.from_env(
            {"BOT_RULES": '["Be brief.\\nAlways."]', "COMPACTER_RECALL": "off"}, prefix="BOT_"
        )
        assert options.options.rules == ("Be brief.\nAlways.",)
        assert options.options.recall is not None

    @pytest.mark.parametrize(
        ("name", "value", "told"),
        [
            ("COMPACT_RATIO", "many", "='many': "),
            ("MAX_RETRIES", "-1", "='-1': takes a whole number of at least 0"),
            ("ON_EVENT", "print", "='print': .*a hook is a function"),
            ("STRATEGY", "forget", "='forget'"),
            ("FALLBACK", "forget", "="),
            ("MEMORY", "mysql://host", ": memory takes sqlite:PATH"),
            ("RULES", "[Be brief.", "='.Be brief.': takes a list of rules"),
        ],
    )
    def test_what_cannot_be_read_is_named(self, name: str, value: str, told: str) -> None:
        with pytest.raises(ConfigurationError, match=f"COMPACTER_{name}{told}"):
            Compacter.from_env({f"COMPACTER_{name}": value})

    @pytest.mark.parametrize(
        ("variable", "told"),
        [
            ("COMPACTER_FOO", "unknown option 'foo'; the options are: "),
            ("COMPACTER_MODEL", r"did you mean summarizer\?$"),
            ("COMPACTER_COMPACT_RATO", r"did you mean compact_ratio\?$"),
            ("COMPACTER_RATIO", r"did you mean compact_ratio\?$"),
        ],
    )
    def test_a_variable_that_sets_nothing_is_warned_of(self, variable: str, told: str) -> None:
        with pytest.warns(UserWarning, match=f"{variable} is ignored: .*{told}"):
            Compacter.from_env({variable: "0.4"})


class TestOptionsOfOneCall:
    def test_they_hold_for_that_call_alone(self) -> None:
        model = ScriptedModel(window=300)
        compacter = Compacter(summarizer="extractive", memory=None, on_compaction=note)
        completion: Any = compacter.wrap(model.completion)
        told.clear()
        for options in (
            {"strategy": Truncate()},
            {},
            {"summarizer": lambda messages: "Many harbours were spoken of."},
        ):
            completion("m", TALK, compacter_options=options)
        assert [event.strategy for event in told] == ["truncate", "summarize", "summarize"]
        assert [event.summarizer_calls > 0 for event in told] == [False, False, True]
        assert (compacter.totals.calls, compacter.totals.rounds) == (3, 3)

    def test_the_memory_is_shared(self) -> None:
        model = ScriptedModel(window=300)
        completion: Any = Compacter(summarizer="extractive").wrap(model.completion)
        completion("m", TALK, compacter_options={"max_retries": 2})
        completion("m", TALK)
        assert model.rejected == 1

    async def test_in_async_programs_and_streams_too(self) -> None:
        model = ScriptedModel(window=300)
        compacter = Compacter(max_retries=0)
        completion: Any = compacter.wrap(model.acompletion)
        options = {"max_retries": 3, "summarizer": "extractive"}
        assert (await completion("m", TALK, compacter_options=options))["choices"]
        stream = await completion("m", [*TALK, TALK[0]], stream=True, compacter_options=options)
        assert [chunk async for chunk in stream]

    def test_generators_get_none_of_them(self) -> None:
        model = ScriptedModel(window=300)

        def chunks(messages: list[Any]) -> Any:
            yield from model.completion("m", messages, stream=True)

        call: Any = Compacter(max_retries=0).wrap(chunks)
        assert list(call(TALK, compacter_options={"max_retries": 1, "summarizer": "extractive"}))

    @pytest.mark.parametrize("options", [{"compact_rato": 0.5}, {"compact_ratio": 7}, 3, {1: 2}])
    def test_what_is_no_option_is_an_error(self, options: Any) -> None:
        completion: Any = Compacter().wrap(ScriptedModel().completion)
        with pytest.raises(
            ConfigurationError, match=r"compact_ratio|compacter_options|Keys should be strings"
        ):
            completion("m", TALK, compacter_options=options)


class TestWrappedTwice:
    def test_the_same_compacter_leaves_it(self, caplog: pytest.LogCaptureFixture) -> None:
        compacter = Compacter()
        once = compacter.wrap(ScriptedModel().completion)
        assert compacter.wrap(once) is once
        assert "ScriptedModel.completion is wrapped already, and is left unchanged" in caplog.text

    def test_clients_and_their_methods_too(self, caplog: pytest.LogCaptureFixture) -> None:
        openai = pytest.importorskip("openai")
        compacter = Compacter()
        client = compacter.wrap(openai.OpenAI(api_key="none"))
        assert compacter.wrap(client) is client
        compacter.wrap(client.chat.completions.create)
        assert len(caplog.records) == 2
        copy.deepcopy(vars(client)["__compacter__"])

    def test_a_copy_of_a_client_is_no_second_time(self, caplog: pytest.LogCaptureFixture) -> None:
        openai = pytest.importorskip("openai")
        Compacter().wrap(openai.OpenAI(api_key="none")).with_options(timeout=3)
        assert not caplog.records

    def test_a_decorator_around_it_hides_nothing(self, caplog: pytest.LogCaptureFixture) -> None:
        compacter = Compacter()
        once = compacter.wrap(ScriptedModel().completion)

        @functools.wraps(once)
        def logged(*args: Any, **kwargs: Any) -> Any:
            return once(*args, **kwargs)

        assert compacter.wrap(logged) is logged
        assert compacter.wrap(functools.partial(once, "m")).func is once
        assert len(caplog.records) == 2


class TestPresets:
    @pytest.mark.parametrize("preset", [Compacter.for_agents, Compacter.for_chat, Compacter.frugal])
    def test_each_works_and_can_be_changed(self, preset: Any) -> None:
        compacter = preset(max_retries=5, summarizer=ScriptedSummarizer("Harbours."))
        assert compacter.options.max_retries == 5
        assert compacter.wrap(ScriptedModel(window=300).completion)("m", TALK)["choices"]

    def test_frugal_asks_no_model(self) -> None:
        model = ScriptedModel(window=300)
        compacter = Compacter.frugal()
        compacter.wrap(model.completion)("m", TALK)
        assert (compacter.totals.summarizer_calls, compacter.totals.cost) == (0, 0.0)


class TestCosts:
    def test_the_total_is_unknown_once_a_price_is(self) -> None:
        model = ScriptedModel(window=300, replies="They spoke of harbours.")
        compacter = Compacter(memory=None)
        compacter.wrap(model.completion)("gpt-4o-mini", TALK)
        assert compacter.totals.cost
        compacter.wrap(model.completion)("a-model-of-ones-own", TALK)
        compacter.wrap(model.completion)("gpt-4o-mini", TALK)
        assert compacter.totals.cost is None


class TestHistories:
    def make(self) -> History:
        history = History(
            TALK[:5],
            compacter=Compacter(summarizer="extractive", compact_ratio=0.4),
            max_tokens=4_000,
        )
        history.append(
            {"role": "user", "content": "Never call before ten."}, pinned=True, rule=True
        )
        history.extend(TALK)
        history.compact(budget=2_500)
        return history

    def test_a_pickled_one_goes_on_where_it_was(self) -> None:
        history = self.make()
        clone = pickle.loads(pickle.dumps(history))  # noqa: S301 - its own
        assert clone == history
        assert clone.rules == history.rules
        assert [p.text for p in clone.search("harbour 2")] == [
            p.text for p in history.search("harbour 2")
        ]
        assert repr(clone) == repr(history)
        clone.append(TALK[0])
        assert len(clone) == len(history) + 1

    @pytest.mark.parametrize(
        "thing", [None, 3, 2.5, True, b"bytes", ["list"], ("a", "b"), {1, 2}, dict]
    )
    def test_what_is_no_message_is_refused_wherever_it_comes_from(self, thing: Any) -> None:
        history = self.make()
        before = list(history)
        for use in (
            lambda: history.append(thing),
            lambda: history.insert(0, thing),
            lambda: history.extend([TALK[0], thing]),
            lambda: history.__setitem__(0, thing),
            lambda: History([thing]),
        ):
            with pytest.raises(ConfigurationError, match="is not a message"):
                use()
        assert list(history)[:2] == before[:2]


def printed(program: str, *places: Path) -> list[str]:
    """Lines that a program of its own prints; ``places`` come first where it looks for modules."""
    path = os.pathsep.join(map(str, places))
    env = os.environ | {"PYTHONPATH": path, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


WITHOUT_LITELLM = """
import sys
sys.modules["litellm"] = None
from compacter import Compacter
from compacter.testing import ScriptedModel

talk = [{"role": "user", "content": f"Harbour {n} takes ships of {n} metres."} for n in range(60)]
compacter = Compacter(trigger_tokens=0.8)
compacter.wrap(ScriptedModel(window=300, replies="Harbours.").completion)("gpt-4o", talk)
print(compacter.totals.rounds, compacter.totals.failures)
for use in (
    lambda: Compacter(summarizer="gpt-4o"), lambda: Compacter().compact(talk, model="gpt-4o")
):
    try:
        use()
    except Exception as error:
        print(type(error).__name__, "pip install litellm" in str(error))
"""


def test_without_litellm(root: Path) -> None:
    """Calls are recovered without litellm; a model's name is refused with the remedy."""
    lines = printed(WITHOUT_LITELLM, root / "middleware")
    assert lines == ["1 0", "ConfigurationError True", "ConfigurationError True"]


IMPORTING = """
import sys, threading
from compacter import Compacter

Compacter(summarizer="extractive")
Compacter()
print("litellm" in sys.modules)
Compacter(summarizer="gpt-4o")
(thread,) = [one for one in threading.enumerate() if one.name == "compacter"]
thread.join()
print(sys.modules["litellm"].suppress_debug_info)
"""


def test_litellm_is_imported_in_a_thread_once_a_model_is_named(root: Path, tmp_path: Path) -> None:
    (tmp_path / "litellm.py").write_text(
        "import time\ntime.sleep(0.5)\n"
        "suppress_debug_info = False\nmodel_cost = {'gpt-4o': {'max_tokens': 9}}\n"
    )
    assert printed(IMPORTING, tmp_path, root / "middleware") == ["False", "True"]


class TestLitellmsBanner:
    def test_is_not_printed_by_a_wrapped_function(
        self, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        litellm = pytest.importorskip("litellm")
        monkeypatch.setattr(litellm, "suppress_debug_info", False)
        completion = Compacter().wrap(litellm.completion)
        with pytest.raises(litellm.exceptions.InternalServerError):
            completion(
                "openai/m", TALK, api_key="none", api_base="http://127.0.0.1:9", max_retries=0
            )
        assert capfd.readouterr().out == ""


class TestLitellm:
    def test_an_unknown_name_is_doubted_at_once(self, caplog: pytest.LogCaptureFixture) -> None:
        pytest.importorskip("litellm")
        Compacter(summarizer="gtp-4o")
        Compacter(summarizer="openai/my-own")
        (record,) = caplog.records
        assert "did you mean 'gpt-4o'?" in record.getMessage()
