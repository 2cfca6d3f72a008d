"""Rules for every test: no other machine is reached, litellm uses its own prices, no clock
decides.
"""

from __future__ import annotations

import asyncio
import gc
import ipaddress
import os
import shutil
import sys
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from tests.clients import loopback
from tests.effort import times
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from playwright.sync_api import Browser
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

ROOT = Path(__file__).parent.parent

# None is current, rather than none yet: pytest-asyncio asks for the current loop, which would make
# one that nobody closes, and any later test could be blamed for it.
asyncio.set_event_loop(None)

# A busy machine is not a bug: hypothesis counts examples here, never seconds. They are the same
# ones each time, so that a run tells of the change that was made; --hypothesis-profile=explore
# looks for others.
settings.register_profile("explore", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile(
    "compacter",
    settings.get_profile("explore"),
    derandomize=True,
    max_examples=times(25, long=200),
)
settings.load_profile("compacter")


SLOW = (
    # Real servers, models and processes.
    "tests/call/test_prepare_ends.py",
    "tests/cli/test_command.py",
    "tests/cli/test_doctor.py::test_the_methods_of_each_sdk_are_looked_at",
    "tests/cli/test_run.py",
    "tests/gateway/",
    "tests/live/",
    "tests/memory/test_busy_loop.py",
    "tests/memory/test_fork.py",
    "tests/memory/test_one_summary.py",
    "tests/memory/test_prepare_killed.py",
    "tests/memory/test_redis.py",
    "tests/memory/test_trouble.py",
    "tests/observe/test_jsonl.py",
    "tests/sdk_suites/",
    "tests/serve/",
    "tests/test_agents.py",
    "tests/test_examples.py",
    "tests/test_packaging.py",
    # A browser.
    "tests/report/test_browser.py",
    "tests/test_site_browser.py",
    # What imports litellm, which takes seconds.
    "README.md",
    "docs/clients/litellm.md",
    "docs/quickstart.md",
    "tests/clients/test_litellm.py",
    "tests/clients/test_methods.py",
    "tests/clients/test_summary_requests.py",
    "tests/test_compacter.py::TestLitellm",
    "tests/test_compacter.py::test_litellm_is_imported",
    "tests/test_compacter.py::test_without_litellm",
    "tests/test_readme.py",
    "tests/test_sdk_streams.py",
    # Many histories, or long texts.
    "tests/overflow/test_linear_work.py",
    "tests/properties/",
    "tests/test_growth.py",
    "tests/test_invariants.py",
    "tests/test_structure.py::test_the_way_of_an_overflow",
)
"""Beginnings of the names of tests that are marked `slow`: `make quick` leaves them out."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker(pytest.mark.slow)


LONGEST = [
    "tests/live",
    "tests/test_examples.py",
    "tests/serve/test_rolling.py",
    "tests/serve/test_open_streams.py",
    "tests/memory/test_busy_loop.py",
    "tests/sdk_suites/test_wrap_clients.py",
    "tests/properties/test_promises.py",
    "tests/memory/test_fork.py",
    "tests/report/test_browser.py",
    "tests/test_growth.py",
    "tests/cli/test_run.py",
    "tests/compaction/test_summarize_window.py",
    "tests/memory/test_one_summary.py",
    "docs/clients/litellm.md",
    "README.md",
    "tests/test_readme.py",
]
"""Files of few tests that take long: begun first, or the other workers would wait for the last of
them."""


class _OneWorkerHoldsTheModel(LoadScopeScheduling):
    """Any file to any worker, so that what it starts is started once, and all live ones to one, for
    the model.
    """

    def _split_scope(self, nodeid: str) -> str:
        return "tests/live" if nodeid.startswith("tests/live/") else nodeid.partition("::")[0]

    def _assign_work_unit(self, node: WorkerController) -> None:
        for scope in reversed(LONGEST):
            if scope in self.workqueue:
                self.workqueue.move_to_end(scope, last=False)
        super()._assign_work_unit(node)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    return _OneWorkerHoldsTheModel(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Imported and collected objects stay: to look for garbage among it is a tenth of what the
    tests take.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _is_loopback(host: object) -> bool:
    if not isinstance(host, str) or host == "localhost":
        return host == "localhost"
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _stay_at_home(event: str, args: tuple[Any, ...]) -> None:
    """Refuse connections to other machines, so that no test can come to need one unnoticed."""
    if event == "socket.connect" and isinstance(args[1], tuple) and not _is_loopback(args[1][0]):
        msg = f"a test tried to reach {args[1]!r}"
        raise PermissionError(msg)


sys.addaudithook(_stay_at_home)


@pytest.fixture
def caplog(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    """Without what is logged when the garbage of other tests is collected."""
    gc.disable()
    yield caplog
    gc.enable()


@pytest.fixture(scope="session")
def root() -> Path:
    """The project's folder."""
    return ROOT


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium; without it, a test of a page is skipped."""
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    program = next(
        filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
    )
    if program is None:
        pytest.skip("no Chromium on this machine; on Debian: apt-get install chromium")
    with playwright.sync_playwright() as started:
        # As root in a container the sandbox of Chromium does not start; the pages are our own.
        found = started.chromium.launch(
            executable_path=program, args=["--no-sandbox"] if os.geteuid() == 0 else []
        )
        yield found
        found.close()


@pytest.fixture
def openai_server() -> Iterator[loopback.Provider]:
    with loopback.serving(loopback.openai) as server:
        yield server


@pytest.fixture
def anthropic_server() -> Iterator[loopback.Provider]:
    with loopback.serving(loopback.anthropic) as server:
        yield server


@pytest.fixture(params=["status", "event"])
def refusing(request: pytest.FixtureRequest) -> str:
    """Where these servers refuse a stream: by HTTP status, or as its first event inside
    HTTP 200.
    """
    return str(request.param)


@pytest.fixture
def words() -> str:
    """Their answers."""
    return loopback.WORDS


@pytest.fixture(scope="session")
def data() -> Path:
    """Texts and transcripts of others, for measuring only; the test is skipped where they are not
    at hand.
    """
    folder = Path(os.environ.get("COMPACTER_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no data at {folder} (COMPACTER_DATA)")
    return folder
