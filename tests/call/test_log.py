"""Log entries: sentences and numbers, levels, one warning with a link; no text of a message."""

from __future__ import annotations

import contextlib
import logging
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog

from compacter import Compacter, CompactionEvent
from compacter.call.log import REMEDIES, Log
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
from compacter.summary import prompt
from compacter.testing import ScriptedModel, ScriptedSummarizer

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

Chat = dict[str, Any]
TALK: list[Chat] = [
    {"role": "assistant" if n % 2 else "user", "content": f"Harbour {n} takes ships of {n} metres."}
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
    """The level of the logger ``compacter`` counts; an example of the manual may have set it."""
    logger = logging.getLogger("compacter")
    level = logger.level
    logger.setLevel(logging.NOTSET)
    yield
    logger.setLevel(level)


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]


def own_logger() -> logging.Logger:
    return logging.getLogger("app")


class TestStandardLogger:
    @pytest.mark.parametrize(
        ("options", "name"),
        [
            ({}, "compacter"),
            ({"logger": own_logger()}, "app"),
            ({"logger": logging.LoggerAdapter(own_logger(), {"job": 7})}, "app"),
        ],
    )
    def test_compaction(
        self, options: dict[str, Any], name: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A compaction is one sentence, with its numbers as attributes of the record."""
        caplog.set_level(logging.INFO)
        fold(summarizer="extractive", **options)
        (record,) = caplog.records
        assert (record.name, record.levelname) == (name, "INFO")
        assert record.getMessage().startswith("compacter: compacted ")
        assert " of 61 messages, " in record.getMessage()
        assert " characters, gpt-4o, 0." in record.getMessage()
        if not isinstance(options.get("logger"), logging.LoggerAdapter):  # It has its own extra.
            assert record.__dict__["messages_before"] == 61

    def test_structlog_is_not_loaded(self) -> None:
        """A program that has not loaded structlog gets its lines without it."""
        program = """
import logging, sys
from compacter import Compacter
from compacter.testing import ScriptedModel

talk = [{"role": "user", "content": f"Two {n} has harbours and ships."} for n in range(61)]
call = Compacter(summarizer="extractive").wrap(ScriptedModel(window=300).completion)
logging.basicConfig(level=logging.INFO, format="%(filename)s %(message)s %(model)s")
call("gpt-4o", talk)
assert "structlog" not in sys.modules
"""
        done = subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60
        )
        (line,) = done.stderr.splitlines()
        assert line.startswith("log.py compacter: compacted ")
        assert line.endswith(" gpt-4o")

    def test_level(self, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.DEBUG)
        caplog.set_level(logging.WARNING, logger="app")
        fold(summarizer="extractive", logger=own_logger())
        assert not caplog.records


class TestFailedSummary:
    def test_warned_once(self, caplog: pytest.LogCaptureFixture, root: Path) -> None:
        """The first failure of a kind is a warning: cause, event, a section of the manual."""
        caplog.set_level(logging.DEBUG)
        completion: Any = Compacter(summarizer=without_key, memory=None).wrap(
            ScriptedModel(window=300).completion
        )
        for options in ({}, {}, {"max_retries": 2}):
            completion("gpt-4o", TALK, compacter_options=options)

        (warning,) = warnings(caplog)
        assert "AuthenticationError (HTTP 401, test_log.py, line " in warning
        assert "CompactionFailed" in warning
        assert f"What helps: {REMEDIES}" in warning
        assert sum("AuthenticationError" in entry.getMessage() for entry in caplog.records) == 3
        assert "Harbour" not in caplog.text
        place, _, anchor = REMEDIES.partition("#")
        page = (root / place).read_text(encoding="utf-8")
        assert f"## {anchor.replace('-', ' ')}" in page.lower()

    def test_other_failures_are_warned_of(self, caplog: pytest.LogCaptureFixture) -> None:
        """A failure of another kind is a warning of its own; one of the same kind is not."""
        failures = iter([AuthenticationError(), TimeoutError(), AuthenticationError(), ""])

        def fails(messages: list[Chat]) -> str:
            failure = next(failures, "")
            if isinstance(failure, Exception):
                raise failure
            return str(failure)

        compacter = Compacter(summarizer=fails)
        for _ in range(4):
            compacter.compact(TALK)

        authentication, timeout, refused = warnings(caplog)
        assert "AuthenticationError" in authentication
        assert "TimeoutError" in timeout
        assert "refused" in refused

    def test_place_in_compacter_itself(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """A fault of compacter is reported with its place."""
        logger = Entries()
        monkeypatch.setattr(prompt, "_FORGED", None)
        fold(logger=logger)
        (facts,) = [facts for level, _, facts in logger.entries if level == "warning"]
        assert "strategy summarize raised AttributeError (prompt.py, line " in facts["cause"]

    def test_status_that_is_no_number(self) -> None:
        error = TimeoutError()
        error.status_code = "late"  # type: ignore[attr-defined]
        failure = failed("the summarizer raised TimeoutError", error="TimeoutError", cause=error)
        ((_, _, facts),) = entries(failure, fallback=())
        assert facts["cause"].endswith("raised TimeoutError")


class TestOtherFailures:
    def test_hook(self, caplog: pytest.LogCaptureFixture) -> None:
        """A hook's exception is logged with its traceback, and without its text."""

        def forgetful(event: CompactionEvent) -> None:
            raise LookupError(event.summary)

        fold(summarizer="extractive", on_compaction=forgetful)

        assert (
            "hook failed (LookupError); the call goes on without it\nTraceback (most recent"
            in caplog.text
        )
        assert "in forgetful" in caplog.text
        assert "compacter/call" not in caplog.text
        assert "Harbour" not in caplog.text + str([record.__dict__ for record in caplog.records])

    @pytest.mark.parametrize(
        ("what", "times", "traceback"),
        [
            ("hook", 2, True),
            ("reading", 2, True),
            ("compaction", 2, True),
            ("totals", 2, True),
            ("memory", 2, False),
            ("pin", 1, True),
            ("recall", 1, True),
        ],
    )
    def test_entry(
        self, what: str, times: int, traceback: bool, caplog: pytest.LogCaptureFixture
    ) -> None:
        """A failure that may repeat for every message is logged once; a memory's failure is one
        line.
        """
        log = Log(Options())
        for _ in range(2):
            log.failed(what, LookupError("a text"))
        assert len(caplog.records) == times
        assert ("\nTraceback (most recent" in caplog.text) is traceback
        assert "LookupError" in caplog.text
        assert "a text" not in caplog.text


class Entries:
    """A logger like structlog's: each level is a method that takes a name and numbers."""

    def __init__(self) -> None:
        self.entries: list[tuple[str, str, dict[str, Any]]] = []

    def __getattr__(self, level: str) -> Callable[..., None]:
        if level not in {"debug", "info", "warning"}:
            raise AttributeError(level)
        return lambda name, **facts: self.entries.append((level, name, facts))


def entries(*events: Event, **options: Any) -> list[tuple[str, str, dict[str, Any]]]:
    logger = Entries()
    log = Log(Options(logger=logger, **options))
    for event in events:
        log.event(event)
    return logger.entries


def failed(reason: str = "the summary was refused: it is empty", **facts: Any) -> CompactionFailed:
    return CompactionFailed(trigger="token_limit", reason=reason, **facts)


def raised(option: str) -> CompactionFailed:
    cause = FunctionError(f"{option} raised KeyError")
    return failed(str(cause), error="KeyError", cause=cause)


class TestEntry:
    def test_name_and_fields(self) -> None:
        """An entry has the event's name, and each of its fields that has a value."""
        ((level, name, facts),) = entries(
            CompactionReused(messages_before=30, messages_after=0, model="m")
        )
        assert (level, name) == ("debug", "compacter.compaction_reused")
        assert facts.items() >= {"messages_before": 30, "messages_after": 0, "model": "m"}.items()
        assert not [value for value in facts.values() if value in (None, "")]

    @pytest.mark.parametrize("field", ["summary", "ledger", "unverified", "discarded"])
    def test_no_text_of_messages(self, field: str) -> None:
        events: list[CompactionEvent] = []
        fold(summarizer="extractive", on_compaction=events.append)
        ((level, name, facts),) = entries(events[0].model_copy(update={field: "Harbour 7"}))
        assert (level, name) == ("info", "compacter.compaction_event")
        assert field not in facts
        assert "Harbour" not in str(facts)

    @pytest.mark.parametrize(
        ("events", "levels"),
        [
            ([MessageShortened(before=90, after=30)] * 2, "info info"),
            ([SilentTruncation(expected_tokens=90, prompt_tokens=30)] * 2, "warning debug"),
            ([failed(error="TimeoutError")] * 2, "warning debug"),
            ([failed()] * 2, "warning debug"),
            ([failed("rules: two are missing")] * 2, "warning debug"),
            ([failed("strategy mine returned no list")] * 2, "warning debug"),
            ([failed("strategy truncate found nothing to drop")] * 2, "debug debug"),
            ([failed("nothing to summarize")] * 2, "debug debug"),
            (
                [
                    failed(f"the summary was refused: {why}")
                    for why in ("1,200 of 900", "7 of 3.5", "a tool call")
                ],
                "warning debug warning",
            ),
            (
                [raised("token_counter"), raised("retrieved"), raised("token_counter")],
                "warning warning debug",
            ),
        ],
    )
    def test_level(self, events: list[Event], levels: str) -> None:
        """A failure that the user can mend is a warning, once for each kind of it."""
        assert [level for level, _, _ in entries(*events)] == levels.split()

    def test_logger_that_raises(self) -> None:
        class Broken:
            def debug(self, name: str, **facts: Any) -> None:
                raise OSError("disk full")

            info = warning = debug

        log = Log(Options(logger=Broken()))
        log.event(CompactionReused(messages_before=30, messages_after=4))
        log.failed("hook", ValueError())


class TestStructlog:
    @pytest.mark.parametrize(
        ("settings", "level", "logged"),
        [
            ({"wrapper_class": structlog.make_filtering_bound_logger(logging.WARNING)}, 0, []),
            ({}, 0, ["compaction_event"]),
            ({}, logging.DEBUG, ["compaction_started", "compaction_event"]),
            ({}, logging.ERROR, []),
        ],
    )
    def test_level(
        self,
        settings: dict[str, Any],
        level: int,
        logged: list[str],
        capsys: pytest.CaptureFixture[str],
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        """The program's level counts, and that of the standard logger ``compacter``."""
        caplog.set_level(level, logger="compacter")
        with structlog_set(processors=[structlog.processors.JSONRenderer()], **settings):
            fold(summarizer="extractive")
        out = capsys.readouterr().out
        assert [
            name
            for name in ("compaction_started", "compaction_event")
            if f"compacter.{name}" in out
        ] == logged


def create(*, messages: list[Chat], model: str) -> str:
    return "short"


def add(one: int, other: int) -> int:
    return one + other


class TestRefusedSummarizers:
    """A summarizer that cannot work is refused when the Compacter is made."""

    @pytest.mark.parametrize(
        ("summarizer", "message"),
        [
            *[
                (name, r"summarizer: .*(Truncate|Shorten|leave summarizer out)")
                for name in ("truncate", " Truncate", "shorten", "summarize", "None")
            ],
            *[
                (function, r"summarizer: .*lambda messages, \*\*options")
                for function in (create, add, lambda: "short", ScriptedSummarizer)
            ],
            (str, "summarizer"),
        ],
    )
    def test_refused(self, summarizer: Any, message: str) -> None:
        with pytest.raises(ConfigurationError, match=message):
            Compacter(summarizer=summarizer)

    def test_client(self) -> None:
        openai = pytest.importorskip("openai")
        client = openai.OpenAI(api_key="none", base_url="http://127.0.0.1:9")
        with pytest.raises(
            ConfigurationError, match=r"Completions\.create cannot be called as summarizer"
        ):
            Compacter(summarizer=client.chat.completions.create)
        with pytest.raises(ConfigurationError, match="takes None, a litellm model name"):
            Compacter(summarizer=client)

    @pytest.mark.parametrize(
        "summarizer",
        [
            "Extractive",
            lambda messages: "short",
            lambda messages, **options: "short",
            lambda messages, max_tokens, model: "short",
            lambda *args: "short",
            ScriptedSummarizer(),
        ],
    )
    def test_accepted(self, summarizer: Any) -> None:
        assert Compacter(summarizer=summarizer).options.summarizer in (summarizer, "extractive")


class TestEventsAsText:
    def test_one_line_without_text_of_messages(self) -> None:
        """``str``, ``repr`` and JSON of an event have its numbers; ``repr`` has no text."""
        events: list[Event] = []
        fold(summarizer="extractive", on_event=events.append)
        fold(summarizer=without_key, on_event=events.append)
        for event in events:
            assert str(event).startswith(f"{type(event).__name__}: ")
            assert "\n" not in str(event)
        event = next(event for event in events if isinstance(event, CompactionEvent))
        assert event.summary
        assert "messages_before=61" in repr(event)
        assert [name for name in TEXTS if f"{name}=" in repr(event)] == []
        assert len(repr(event)) < 900
        failure = next(event for event in events if isinstance(event, CompactionFailed))
        assert isinstance(failure.cause, AuthenticationError)
        assert "cause" not in failure.model_dump()
        assert "Harbour" not in failure.model_dump_json() + repr(failure) + str(failure)

    def test_every_kind_of_event_has_a_sentence(self) -> None:
        kinds = Event.__subclasses__()
        assert len(kinds) >= 9
        own = {"sentence", "_words"}
        assert [kind.__name__ for kind in kinds if not own & vars(kind).keys()] == []
