"""What the program's log says: lines to be read, a warning with its remedy, levels obeyed, no text of a message."""

from __future__ import annotations

import contextlib
import logging
import pickle
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from compacter import Compacter, CompactionError, CompactionEvent, models
from compacter.call.log import Log
from compacter.errors import ConfigurationError
from compacter.events import Event
from compacter.options import Options
from compacter.testing import ScriptedModel, ScriptedSummarizer

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

Chat = dict[str, Any]
TALK: list[Chat] = [
    {"role": "assistant" if n % 2 else "user", "content": f"Harbour {n} takes ships of {n} metres."} for n in range(61)
]


class AuthenticationError(Exception):
    status_code = 401


def without_key(messages: list[Chat], **options: object) -> str:
    raise AuthenticationError(f"no key for {messages[-1]['content']}")


def fold(**options: Any) -> None:
    Compacter(**options).wrap(ScriptedModel(window=300).completion)("gpt-4o", TALK)


@contextlib.contextmanager
def structlog_set(**settings: Any) -> Generator[None]:
    structlog.configure(**settings)
    try:
        yield
    finally:
        structlog.reset_defaults()


@pytest.fixture(autouse=True)
def untouched_level() -> Generator[None]:
    """The level of the logger ``compacter`` counts, and an example or a page of the manual may have set it."""
    logger = logging.getLogger("compacter")
    level = logger.level
    logger.setLevel(logging.NOTSET)
    yield
    logger.setLevel(level)


class TestLinesForPeople:
    def test_a_compaction_is_one_sentence_with_its_numbers(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        fold(summarizer="extractive")
        (record,) = caplog.records
        assert record.getMessage().startswith("compacter: folded ")
        assert " of 61 messages, " in record.getMessage()
        assert " characters, gpt-4o, 0." in record.getMessage()
        assert record.__dict__["messages_before"] == 61

    @pytest.mark.parametrize("adapt", [lambda plain: plain, lambda plain: logging.LoggerAdapter(plain, {"job": 7})])
    def test_a_standard_logger_of_ones_own_gets_them(
        self, caplog: pytest.LogCaptureFixture, adapt: Callable[[logging.Logger], Any]
    ) -> None:
        caplog.set_level(logging.INFO)
        fold(summarizer="extractive", logger=adapt(logging.getLogger("app")))
        assert [(record.name, record.levelname) for record in caplog.records] == [("app", "INFO")]
        assert "folded" in caplog.text

    def test_its_level_is_obeyed(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        caplog.set_level(logging.WARNING, logger="app")
        fold(summarizer="extractive", logger=logging.getLogger("app"))
        assert not caplog.records


class TestASummarizerThatFails:
    def test_is_warned_of_once_with_cause_and_remedy(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        compacter = Compacter(summarizer=without_key, memory=None)
        completion = compacter.wrap(ScriptedModel(window=300).completion)
        for _ in range(3):
            completion("gpt-4o", TALK)

        (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
        assert "AuthenticationError (HTTP 401, test_log.py, line " in warning.getMessage()
        assert "valid API key" in warning.getMessage()
        assert "'extractive'" in warning.getMessage()
        assert len([record for record in caplog.records if "AuthenticationError" in record.getMessage()]) == 3
        assert "Harbour" not in caplog.text

    @pytest.mark.parametrize(
        ("fallback", "ending"),
        [
            ("truncate", "; the fallback 'truncate' takes over. What helps"),
            (("extractive", "truncate"), "; the fallback 'extractive' or 'truncate' takes over. What helps"),
            (None, "). What helps"),
        ],
    )
    def test_tells_what_takes_over(self, fallback: Any, ending: str, caplog: pytest.LogCaptureFixture) -> None:
        with contextlib.suppress(CompactionError):
            Compacter(summarizer=without_key, fallback=fallback).compact(TALK)
        (warning,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert ending in warning
        assert ("takes over" in warning) is (fallback is not None)

    def test_is_warned_of_again_where_it_fails_otherwise(self, caplog: pytest.LogCaptureFixture) -> None:
        failures = iter([AuthenticationError(), TimeoutError(), AuthenticationError(), ""])

        def fails(messages: list[Chat]) -> str:
            failure = next(failures, "")
            if isinstance(failure, Exception):
                raise failure
            return str(failure)

        compacter = Compacter(summarizer=fails)
        for _ in range(4):
            compacter.compact(TALK)

        warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
        assert ["AuthenticationError" in warnings[0], "TimeoutError" in warnings[1], "refused" in warnings[2]] == [
            True
        ] * 3
        assert len(warnings) == 3

    def test_a_misspelt_model_is_named(self, caplog: pytest.LogCaptureFixture) -> None:
        class NotFoundError(Exception): ...

        def fails(messages: list[Chat], model: str = "") -> str:
            raise NotFoundError

        with contextlib.suppress(ConfigurationError):
            Compacter(summarizer=fails).compact(TALK, model="gtp-4o")
        assert "check the model's name and its provider" in caplog.text

    @pytest.mark.parametrize("options", [{"summarizer": "gtp-4o"}, {}])
    def test_the_model_that_was_asked_is_named(
        self, options: dict[str, Any], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        class NotFoundError(Exception): ...

        def fails(**_: Any) -> None:
            raise NotFoundError

        monkeypatch.setattr(models, "completion", fails)
        monkeypatch.setattr(models, "_import_quietly", lambda: None)  # It is not needed here, and takes seconds.
        Compacter(**options).compact(TALK, model="gtp-4o")
        assert "check the model's name 'gtp-4o' and its provider" in caplog.text

    def test_a_key_that_is_not_there_is_the_remedy_whatever_is_raised(self, caplog: pytest.LogCaptureFixture) -> None:
        class InternalServerError(Exception): ...

        def fails(messages: list[Chat]) -> str:
            raise InternalServerError("Missing credentials. Please pass an `api_key`.")

        Compacter(summarizer=fails).compact(TALK)
        assert "What helps: give it a valid API key" in caplog.text
        assert "credentials" not in caplog.text  # What an exception says may quote a message.

    def test_the_exception_itself_is_in_the_event_and_not_in_its_json(self) -> None:
        told: list[Any] = []
        Compacter(summarizer=without_key, on_event=told.append).compact(TALK)
        assert isinstance(told[1].cause, AuthenticationError)
        assert "cause" not in told[1].model_dump()
        assert pickle.loads(pickle.dumps(told[1])).cause is None  # noqa: S301 - its own
        assert "Harbour" not in told[1].model_dump_json() + repr(told[1]) + str(told[1])


class TestAHookThatFails:
    def test_is_logged_with_its_traceback_and_without_what_it_says(self, caplog: pytest.LogCaptureFixture) -> None:
        def forgetful(event: CompactionEvent) -> None:
            raise LookupError(event.summary)

        fold(summarizer="extractive", on_compaction=forgetful)

        assert "a hook raised LookupError; the call goes on without it\nTraceback (most recent" in caplog.text
        assert "in forgetful" in caplog.text
        assert "compacter/call" not in caplog.text
        assert "Harbour" not in caplog.text + str([record.__dict__ for record in caplog.records])


class TestWhatElseFails:
    @pytest.mark.parametrize("what", ["reading", "compaction", "recall", "totals"])
    def test_is_logged_with_its_traceback(self, what: str, caplog: pytest.LogCaptureFixture) -> None:
        Log(Options()).failed(what, LookupError("a text"))
        assert "\nTraceback (most recent" in caplog.text
        assert "a text" not in caplog.text

    def test_a_memory_that_is_away_is_one_line(self, caplog: pytest.LogCaptureFixture) -> None:
        Log(Options()).failed("memory", ConnectionError("a text"))
        assert "the memory failed (ConnectionError); the call goes on without it\n" in caplog.text
        assert "Traceback" not in caplog.text


class TestStructlog:
    def test_the_programs_levels_are_obeyed(self, capsys: pytest.CaptureFixture[str]) -> None:
        with structlog_set(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING)):
            fold(summarizer="extractive")
        assert capsys.readouterr().out == ""

    def test_without_a_level_no_debug_line_is_printed(self, capsys: pytest.CaptureFixture[str]) -> None:
        with structlog_set(processors=[structlog.processors.add_log_level, structlog.processors.JSONRenderer()]):
            fold(summarizer="extractive")
        out = capsys.readouterr().out
        assert "compacter.compaction_event" in out
        assert '"debug"' not in out

    def test_debug_lines_come_where_the_program_asks_for_them(self, capsys: pytest.CaptureFixture[str]) -> None:
        with structlog_set(wrapper_class=structlog.make_filtering_bound_logger(logging.DEBUG)):
            fold(summarizer="extractive")
        assert "compacter.compaction_started" in capsys.readouterr().out

    def test_the_level_of_the_standard_logger_compacter_counts_too(
        self, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.ERROR, logger="compacter")
        with structlog_set(processors=[structlog.processors.JSONRenderer()]):
            fold(summarizer="extractive")
        assert capsys.readouterr().out == ""


class TestSummarizersRefusedAtOnce:
    @pytest.mark.parametrize("name", ["truncate", " Truncate", "shorten", "summarize", "None"])
    def test_names_that_are_no_models(self, name: str) -> None:
        with pytest.raises(ConfigurationError, match=r"summarizer: .*(Truncate|Shorten|leave summarizer out)"):
            Compacter(summarizer=name)

    def test_extractive_may_be_written_in_capitals(self) -> None:
        assert Options(summarizer="Extractive").summarizer == "extractive"

    def test_functions_that_cannot_be_called_like_one(self) -> None:
        def create(*, messages: list[Chat], model: str) -> str:
            return "short"

        def add(one: int, other: int) -> int:
            return one + other

        def nothing() -> str:
            return "short"

        for wrong in (create, add, nothing, ScriptedSummarizer):
            with pytest.raises(ConfigurationError, match=r"summarizer: .*lambda messages, \*\*options"):
                Compacter(summarizer=wrong)

    def test_the_method_of_a_client(self) -> None:
        openai = pytest.importorskip("openai")
        client = openai.OpenAI(api_key="none", base_url="http://127.0.0.1:9")
        with pytest.raises(ConfigurationError, match=r"Completions.create cannot be called as summarizer"):
            Compacter(summarizer=client.chat.completions.create)
        with pytest.raises(ConfigurationError, match="takes None, a litellm model name"):
            Compacter(summarizer=client)

    @pytest.mark.parametrize(
        "summarizer",
        [
            lambda messages: "short",
            lambda messages, **options: "short",
            lambda messages, max_tokens, model: "short",
            lambda *args: "short",
            ScriptedSummarizer(),
            str,
        ],
    )
    def test_others_pass(self, summarizer: Any) -> None:
        if summarizer is str:
            with pytest.raises(ConfigurationError):
                Compacter(summarizer=summarizer)
        else:
            Compacter(summarizer=summarizer)

    @pytest.mark.parametrize("hook", [lambda: None, lambda one, two: None])
    def test_hooks_that_cannot_take_an_event(self, hook: Any) -> None:
        for option in ("on_event", "on_compaction"):
            with pytest.raises(ConfigurationError, match=f"{option}: .*takes the event and nothing else"):
                Compacter(**{option: hook})


class TestEventsAsText:
    def every(self) -> list[Event]:
        told: list[Event] = []
        fold(summarizer="extractive", on_event=told.append)
        fold(summarizer=without_key, on_event=told.append)
        return told

    def test_print_is_one_line_that_begins_with_the_type(self) -> None:
        for event in self.every():
            assert str(event).startswith(f"{type(event).__name__}: ")
            assert "\n" not in str(event)

    def test_every_kind_of_event_has_a_sentence(self) -> None:
        kinds = Event.__subclasses__()
        assert len(kinds) >= 9
        assert [kind.__name__ for kind in kinds if "sentence" not in vars(kind)] == []

    def test_repr_leaves_out_what_is_as_usual_and_cuts_texts(self) -> None:
        event = next(event for event in self.every() if isinstance(event, CompactionEvent))
        assert "messages_before=61" in repr(event)
        assert "unverified" not in repr(event)
        assert len(repr(event)) < 700
