"""What the program's log says: lines to be read, a warning with its remedy, levels obeyed, no text
of a message.
"""

from __future__ import annotations

import contextlib
import logging
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from compacter import Compacter, CompactionError, CompactionEvent
from compacter.call.log import Log, remedy
from compacter.errors import ConfigurationError, FunctionError
from compacter.events import (
    TEXTS,
    CompactionFailed,
    CompactionReused,
    Event,
    MessageShortened,
    SilentTruncation,
)
from compacter.options import Options
from compacter.runtime import models
from compacter.summary import prompt
from compacter.testing import ScriptedModel, ScriptedSummarizer

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

Chat = dict[str, Any]
TALK: list[Chat] = [
    {
        "role": "assistant" if n % 2 else "user",
        "content": (f"Harbour {n} takes ships of {n} metres."),
    }
    for n in range(61)
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
    """The level of the logger ``compacter`` counts, and an example or a page of the manual may have
    set it.
    """
    logger = logging.getLogger("compacter")
    level = logger.level
    logger.setLevel(logging.NOTSET)
    yield
    logger.setLevel(level)


class TestLinesForPeople:
    def test_a_compaction_is_one_sentence_with_its_numbers(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO)
        fold(summarizer="extractive")
        (record,) = caplog.records
        assert record.getMessage().startswith("compacter: compacted ")
        assert " of 61 messages, " in record.getMessage()
        assert " characters, gpt-4o, 0." in record.getMessage()
        assert record.__dict__["messages_before"] == 61

    def test_a_program_without_structlog_does_not_load_it(self) -> None:
        program = """
import logging, sys
from compacter import Compacter
from compacter.testing import ScriptedModel

def talk(text):
    return [{"role": "user", "content": f"{text} {n} has harbours and ships."} for n in range(61)]

call = Compacter(summarizer="extractive").wrap(ScriptedModel(window=300).completion)
logging.basicConfig(level=logging.INFO, format="%(filename)s %(message)s %(model)s")
call("gpt-4o", talk("Two"))
assert "structlog" not in sys.modules
"""
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
        )
        (line,) = done.stderr.splitlines()
        assert line.startswith("log.py compacter: compacted ")
        assert line.endswith(" gpt-4o")

    @pytest.mark.parametrize(
        "adapt", [lambda plain: plain, lambda plain: logging.LoggerAdapter(plain, {"job": 7})]
    )
    def test_a_standard_logger_of_ones_own_gets_them(
        self, caplog: pytest.LogCaptureFixture, adapt: Callable[[logging.Logger], Any]
    ) -> None:
        caplog.set_level(logging.INFO)
        fold(summarizer="extractive", logger=adapt(logging.getLogger("app")))
        assert [(record.name, record.levelname) for record in caplog.records] == [("app", "INFO")]
        assert "compacted" in caplog.text

    def test_a_program_needs_no_structlog(
        self, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        caplog.set_level(logging.INFO)
        monkeypatch.delitem(sys.modules, "structlog")
        fold(summarizer="extractive")
        assert "compacter: compacted " in caplog.text

    def test_its_level_is_obeyed(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        caplog.set_level(logging.WARNING, logger="app")
        fold(summarizer="extractive", logger=logging.getLogger("app"))
        assert not caplog.records


class TestASummarizerThatFails:
    def test_is_warned_of_once_with_cause_and_remedy(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.DEBUG)
        compacter = Compacter(summarizer=without_key, memory=None)
        completion = compacter.wrap(ScriptedModel(window=300).completion)
        for _ in range(3):
            completion("gpt-4o", TALK)

        (warning,) = [record for record in caplog.records if record.levelno == logging.WARNING]
        assert "AuthenticationError (HTTP 401, test_log.py, line " in warning.getMessage()
        assert "valid API key" in warning.getMessage()
        assert "'extractive'" in warning.getMessage()
        assert (
            len(
                [
                    record
                    for record in caplog.records
                    if "AuthenticationError" in record.getMessage()
                ]
            )
            == 3
        )
        assert "Harbour" not in caplog.text

    @pytest.mark.parametrize(
        ("fallback", "ending"),
        [
            ("truncate", "; the fallback 'truncate' takes over. What helps"),
            (
                ("extractive", "truncate"),
                ("; the fallback 'extractive' or 'truncate' takes over. What helps"),
            ),
            (None, "). What helps"),
        ],
    )
    def test_tells_what_takes_over(
        self, fallback: Any, ending: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        with contextlib.suppress(CompactionError):
            Compacter(summarizer=without_key, fallback=fallback).compact(TALK)
        (warning,) = [
            record.getMessage() for record in caplog.records if record.levelno == logging.WARNING
        ]
        assert ending in warning
        assert ("takes over" in warning) is (fallback is not None)

    def test_is_warned_of_again_where_it_fails_otherwise(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        failures = iter([AuthenticationError(), TimeoutError(), AuthenticationError(), ""])

        def fails(messages: list[Chat]) -> str:
            failure = next(failures, "")
            if isinstance(failure, Exception):
                raise failure
            return str(failure)

        compacter = Compacter(summarizer=fails)
        for _ in range(4):
            compacter.compact(TALK)

        warnings = [
            record.getMessage() for record in caplog.records if record.levelno == logging.WARNING
        ]
        assert [
            "AuthenticationError" in warnings[0],
            "TimeoutError" in warnings[1],
            "refused" in warnings[2],
        ] == [True] * 3
        assert len(warnings) == 3

    def test_is_warned_of_once_by_calls_with_options_of_their_own_too(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        completion: Any = Compacter(summarizer=without_key, memory=None).wrap(
            ScriptedModel(window=300).completion
        )
        for _ in range(2):
            completion("gpt-4o", TALK, compacter_options={"max_retries": 2})
        assert len([record for record in caplog.records if record.levelno == logging.WARNING]) == 1

    def test_a_misspelt_model_is_named(self, caplog: pytest.LogCaptureFixture) -> None:
        class NotFoundError(Exception): ...

        def fails(messages: list[Chat], model: str = "") -> str:
            raise NotFoundError

        with contextlib.suppress(ConfigurationError):
            Compacter(summarizer=fails).compact(TALK, model="gtp-4o")
        assert "check the model's name and its provider" in caplog.text

    @pytest.mark.parametrize("options", [{"summarizer": "gtp-4o"}, {}])
    def test_the_model_that_was_asked_is_named(
        self,
        options: dict[str, Any],
        caplog: pytest.LogCaptureFixture,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        class NotFoundError(Exception): ...

        def fails(**_: Any) -> None:
            raise NotFoundError

        monkeypatch.setattr(models, "completion", fails)
        # It is not needed here, and takes seconds.
        monkeypatch.setattr(models, "_import_quietly", lambda: None)
        Compacter(**options).compact(TALK, model="gtp-4o")
        assert "check the model's name 'gtp-4o' and its provider" in caplog.text

    def test_a_key_that_is_not_there_is_the_remedy_whatever_is_raised(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
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
    def test_is_logged_with_its_traceback_and_without_what_it_says(
        self, caplog: pytest.LogCaptureFixture
    ) -> None:
        def forgetful(event: CompactionEvent) -> None:
            raise LookupError(event.summary)

        fold(summarizer="extractive", on_compaction=forgetful)

        assert (
            "a hook raised LookupError; the call goes on without it\nTraceback (most recent"
            in caplog.text
        )
        assert "in forgetful" in caplog.text
        assert "compacter/call" not in caplog.text
        assert "Harbour" not in caplog.text + str([record.__dict__ for record in caplog.records])


class TestWhatElseFails:
    @pytest.mark.parametrize("what", ["reading", "compaction", "recall", "totals"])
    def test_is_logged_with_its_traceback(
        self, what: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        Log(Options()).failed(what, LookupError("a text"))
        assert "\nTraceback (most recent" in caplog.text
        assert "a text" not in caplog.text

    @pytest.mark.parametrize(
        ("what", "entries"), [("hook", 2), ("memory", 2), ("pin", 1), ("recall", 1)]
    )
    def test_is_logged_once_only_where_it_may_be_so_for_every_message(
        self, what: str, entries: int, caplog: pytest.LogCaptureFixture
    ) -> None:
        log = Log(Options())
        for _ in range(2):
            log.failed(what, LookupError())
        assert len(caplog.records) == entries

    def test_a_memory_that_is_away_is_one_line(self, caplog: pytest.LogCaptureFixture) -> None:
        Log(Options()).failed("memory", ConnectionError("a text"))
        assert "the memory failed (ConnectionError); the call goes on without it\n" in caplog.text
        assert "Traceback" not in caplog.text


class Entries:
    """A logger as structlog's: a method for each level, which gets the event's name and its
    numbers.
    """

    def __init__(self) -> None:
        self.entries: list[tuple[str, str, dict[str, Any]]] = []

    def __getattr__(self, level: str) -> Callable[..., None]:
        if level not in {"debug", "info", "warning"}:
            raise AttributeError(level)
        return lambda name, **facts: self.entries.append((level, name, facts))


def failed(reason: str = "the summary was refused: it is empty", **facts: Any) -> CompactionFailed:
    return CompactionFailed(trigger="token_limit", reason=reason, **facts)


class TestAnEntry:
    """What a logger gets of an event: name, level, numbers."""

    def entries(self, *events: Event, **options: Any) -> list[tuple[str, str, dict[str, Any]]]:
        logger = Entries()
        log = Log(Options(logger=logger, **options))
        for event in events:
            log.event(event)
        return logger.entries

    def test_has_the_name_of_the_event_and_those_of_its_fields_that_say_something(self) -> None:
        ((level, name, facts),) = self.entries(
            CompactionReused(messages_before=30, messages_after=4, model="m")
        )
        assert (level, name) == ("debug", "compacter.compaction_reused")
        assert facts.items() >= {"messages_before": 30, "messages_after": 4, "model": "m"}.items()
        assert not [value for value in facts.values() if value in (None, "")]

    def test_of_a_number_that_is_zero_has_it(self) -> None:
        ((_, _, facts),) = self.entries(CompactionReused(messages_before=0, messages_after=0))
        assert (facts["messages_before"], facts["messages_after"]) == (0, 0)

    @pytest.mark.parametrize("field", ["summary", "ledger", "unverified", "discarded"])
    def test_has_no_field_with_text_of_messages(self, field: str) -> None:
        told: list[CompactionEvent] = []
        fold(summarizer="extractive", on_compaction=told.append)
        changed = told[0].model_copy(update={field: "Harbour 7"})
        ((level, name, facts),) = self.entries(changed)
        assert (level, name) == ("info", "compacter.compaction_event")
        assert field not in facts
        assert "Harbour" not in str(facts)

    @pytest.mark.parametrize(
        ("event", "levels"),
        [
            (MessageShortened(before=90, after=30), ["info", "info"]),
            (SilentTruncation(expected_tokens=90, prompt_tokens=30), ["warning", "debug"]),
            (failed(error="TimeoutError"), ["warning", "debug"]),
            (failed(), ["warning", "debug"]),
            (failed("rules: two are missing"), ["warning", "debug"]),
            (failed("strategy mine returned no list"), ["warning", "debug"]),
            (failed("strategy truncate found nothing to drop"), ["debug", "debug"]),
            (failed("nothing to summarize"), ["debug", "debug"]),
        ],
    )
    def test_is_a_warning_once_where_the_user_can_help(
        self, event: Event, levels: list[str]
    ) -> None:
        assert [level for level, _, _ in self.entries(event, event)] == levels

    def test_differs_by_more_than_its_numbers_to_be_a_warning_again(self) -> None:
        said = [
            failed(f"the summary was refused: {why}")
            for why in ("1,200 of 900", "7 of 3.5", "a tool call")
        ]
        assert [level for level, _, _ in self.entries(*said)] == ["warning", "debug", "warning"]

    def test_of_each_function_that_fails_is_a_warning_once(self) -> None:
        said = [
            failed(str(cause), error="KeyError", cause=cause)
            for option in ("token_counter", "retrieved", "token_counter")
            for cause in [FunctionError(f"{option} raised KeyError")]
        ]
        assert [level for level, _, _ in self.entries(*said)] == ["warning", "warning", "debug"]

    def test_of_a_warning_has_cause_and_remedy_beside_the_numbers(self) -> None:
        first, second = self.entries(
            failed(error="RateLimitError"), failed(error="RateLimitError"), fallback=()
        )
        assert "RateLimitError" in first[2]["cause"]
        assert first[2]["remedy"] == "name another model, or try again later"
        assert {"cause", "remedy"}.isdisjoint(second[2])

    def test_goes_nowhere_if_the_logger_raises(self) -> None:
        class Broken:
            def debug(self, name: str, **facts: Any) -> None:
                raise OSError("disk full")

            info = warning = debug

        log = Log(Options(logger=Broken()))
        log.event(CompactionReused(messages_before=30, messages_after=4))
        log.failed("hook", ValueError())


class TestTheRemedy:
    @pytest.mark.parametrize(
        ("error", "helps"),
        [
            ("AuthenticationError", "valid API key"),
            ("PermissionDeniedError", "valid API key"),
            ("NotFoundError", "check the model's name 'm' and"),
            ("BadRequestError", "check the model's name 'm' and"),
            ("ModuleNotFoundError", "pip install litellm"),
            ("TypeError", "a summarizer is called as"),
            ("TimeoutError", "raise the option timeout"),
            ("APIConnectionError", "another model"),
            ("ZeroDivisionError", "check the function"),
            ("", "a more capable model"),
        ],
    )
    def test_goes_by_the_type_of_the_exception(self, error: str, helps: str) -> None:
        assert helps in remedy(error, None, "m")

    def test_names_no_model_where_none_is_known(self) -> None:
        assert remedy("NotFoundError", None, None) == "check the model's name and its provider"

    @pytest.mark.parametrize(
        ("before", "helps"), [(1_900, "valid API key"), (2_000, "check the function")]
    )
    def test_is_a_key_where_the_beginning_of_the_exception_says_so(
        self, before: int, helps: str
    ) -> None:
        cause = ValueError("x" * before + " no API key was given")
        assert helps in remedy("ValueError", cause, None)

    @pytest.mark.parametrize(
        ("reason", "helps"),
        [
            ("rules: two are missing", "declare fewer rules"),
            ("strategy mine returned no list", "fix that strategy"),
            ("strategy summary_of_mine returned no list", "fix that strategy"),
            ("the summary was refused: it is empty", "a more capable model"),
        ],
    )
    def test_goes_by_the_reason_where_nothing_was_raised(self, reason: str, helps: str) -> None:
        logger = Entries()
        Log(Options(logger=logger)).event(failed(reason))
        assert helps in logger.entries[0][2]["remedy"]

    @pytest.mark.parametrize(
        ("summarizer", "helps"),
        [
            (without_key, "must return a summary"),
            ("gpt-4o", "a more capable model"),
        ],
    )
    def test_of_an_empty_summary_goes_by_who_made_it(self, summarizer: Any, helps: str) -> None:
        logger = Entries()
        log = Log(Options(logger=logger, summarizer=summarizer))
        log.event(failed("the summary was refused: the summary is empty"))
        assert helps in logger.entries[0][2]["remedy"]

    def test_tells_status_and_place_of_the_exception_where_there_are_any(self) -> None:
        logger = Entries()
        log = Log(Options(logger=logger, fallback=()))
        with pytest.raises(AuthenticationError) as caught:
            without_key(TALK)
        error = caught.value
        raised_in = caught.traceback[-1].lineno + 1
        log.event(
            failed(
                "the summarizer raised AuthenticationError",
                error="AuthenticationError",
                cause=error,
            )
        )
        plain = TimeoutError()
        plain.status_code = "late"  # type: ignore[attr-defined]
        log.event(failed("the summarizer raised TimeoutError", error="TimeoutError", cause=plain))
        causes = [facts["cause"] for _, _, facts in logger.entries]
        assert causes[0].endswith(f"AuthenticationError (HTTP 401, test_log.py, line {raised_in})")
        assert causes[1].endswith("raised TimeoutError")

    def test_tells_the_place_of_a_fault_of_compacter_itself(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        logger = Entries()
        monkeypatch.setattr(prompt, "_FORGED", None)
        fold(logger=logger)
        (facts,) = [facts for level, _, facts in logger.entries if level == "warning"]
        assert "strategy summarize raised AttributeError (prompt.py, line " in facts["cause"]
        assert "report it as a fault of compacter" in facts["remedy"]


class TestStructlog:
    def test_the_programs_levels_are_obeyed(self, capsys: pytest.CaptureFixture[str]) -> None:
        with structlog_set(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING)):
            fold(summarizer="extractive")
        assert capsys.readouterr().out == ""

    def test_without_a_level_no_debug_line_is_printed(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with structlog_set(
            processors=[structlog.processors.add_log_level, structlog.processors.JSONRenderer()]
        ):
            fold(summarizer="extractive")
        out = capsys.readouterr().out
        assert "compacter.compaction_event" in out
        assert '"debug"' not in out

    def test_debug_lines_come_where_the_program_asks_for_them(
        self, capsys: pytest.CaptureFixture[str]
    ) -> None:
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
        with pytest.raises(
            ConfigurationError,
            match=(
                r"summarizer: .*(Truncate|Shorten|"
                r"leave summarizer out)"
            ),
        ):
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
            with pytest.raises(
                ConfigurationError,
                match=(
                    r"summarizer: .*lambda messages, "
                    r"\*\*options"
                ),
            ):
                Compacter(summarizer=wrong)

    def test_the_method_of_a_client(self) -> None:
        openai = pytest.importorskip("openai")
        client = openai.OpenAI(api_key="none", base_url="http://127.0.0.1:9")
        with pytest.raises(
            ConfigurationError,
            match=(
                r"Completions.create cannot be called as "
                r"summarizer"
            ),
        ):
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
            with pytest.raises(
                ConfigurationError, match=(f"{option}: .*takes the event and nothing else")
            ):
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
        own = {"sentence", "_words"}
        assert [kind.__name__ for kind in kinds if not own & vars(kind).keys()] == []

    def test_repr_has_the_numbers_and_no_text_of_messages(self) -> None:
        event = next(event for event in self.every() if isinstance(event, CompactionEvent))
        assert event.summary
        assert "messages_before=61" in repr(event)
        assert [name for name in TEXTS if f"{name}=" in repr(event)] == []
        assert len(repr(event)) < 900
