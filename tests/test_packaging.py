"""The shape of the house: which room may know what, what `import compacter` costs, what is
shipped.
"""

from __future__ import annotations

import ast
import os
import re
import runpy
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from markdown_it import MarkdownIt
from tests.release import ELSEWHERE, USES, project_urls

import compacter
from compacter import manual

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "middleware" / "compacter"

PURE_ROOMS = ("text", "messages", "compaction", "overflow", "summary", "lines")
PURE_FILES = tuple(
    f"call/{name}.py"
    for name in (
        "call",
        "incompressible",
        "policy",
        "reduce",
        "request",
        "thinking",
        "unsaid",
        "effects",
    )
)
PURE_MODULES = ("effects", "errors", "events", "objects", "options", "redaction", "spending")
"""Parts of the front that the rooms may import: they are data."""

PURE_ENOUGH = {
    "call/effects.py": {"compacter.memory.match.View"},
    "call/request.py": {
        "compacter.memory.match.View",
        "compacter.memory.record.Bound",
        "compacter.memory.record.UNBOUND",
    },
    "call/policy.py": {"compacter.memory.record.UNBOUND"},
    "call/reduce.py": {"compacter.memory.record.UNBOUND"},
    "call/thinking.py": {
        "compacter.memory.record.Bound",
        "compacter.memory.record.message_key",
    },
    "overflow/table.py": {"pathlib.Path"},
    "compaction/plan.py": {"sys.maxsize"},
    "lines/talk.py": {"sys.getsizeof"},
    "lines/archive.py": {"compacter.runtime.locks.Lock"},
    "lines/turns.py": {
        "cachetools.LRUCache",
        "compacter.runtime.locks.Lock",
        "compacter.runtime.io.resolve",
        "asyncio.CancelledError",
    },
}
"""Data files of the package itself, a constant, a type, caches in memory, which reach no disk, the
bytes of a text, what guards them, and what runs the user's own search function."""

PURE_PACKAGES = frozenset({"annotated_types", "pydantic", "tenacity", "typing_extensions"})
"""Third-party packages without I/O of their own (of tenacity, its step that decides)."""

IMPURE_STDLIB = (
    # the time
    *("datetime", "sched", "time", "zoneinfo"),
    # a network
    *("ftplib", "http", "imaplib", "poplib", "smtplib", "socket", "socketserver", "ssl", "xmlrpc"),
    *("urllib.request", "webbrowser"),
    # the disk
    *("fcntl", "glob", "mmap", "os", "pathlib", "shelve", "shutil", "sqlite3", "tempfile"),
    # the process
    *("getpass", "locale", "logging", "platform", "signal", "subprocess", "sys", "syslog"),
    # other threads and tasks
    *("asyncio", "contextvars", "multiprocessing", "queue", "select", "threading"),
    # chance
    *("random", "secrets", "uuid"),
)

IMPURE_BUILTINS = frozenset({"__import__", "breakpoint", "eval", "exec", "input", "open", "print"})

HEAVY = (
    *("litellm", "openai", "anthropic", "google.genai", "boto3"),
    *("redis", "rich", "httpx", "opentelemetry"),
)


def modules(*rooms: str) -> list[str]:
    return sorted(
        str(path.relative_to(PACKAGE)) for room in rooms for path in (PACKAGE / room).rglob("*.py")
    )


def imports(tree: ast.Module, file: str) -> Iterator[str]:
    """Each module that the file names in an import, in full; what only a type checker reads
    included.
    """
    parents = ("compacter", *Path(file).parent.parts)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = (*parents[: len(parents) - node.level + 1],) if node.level else ()
            module = ".".join((*base, *(node.module or "").split("."))).strip(".")
            yield from (f"{module}.{alias.name}" for alias in node.names)


def impure(name: str) -> bool:
    """Whether an import reaches beyond the pure rooms."""
    first, *rest = name.split(".")
    if first == "compacter":
        policy = f"{'/'.join(rest[:2])}.py" in PURE_FILES
        return bool(rest) and rest[0] not in (*PURE_ROOMS, *PURE_MODULES) and not policy
    if first in sys.stdlib_module_names:
        return any(f"{name}.".startswith(f"{module}.") for module in IMPURE_STDLIB)
    return first not in PURE_PACKAGES


@pytest.mark.parametrize("file", [*modules(*PURE_ROOMS), *PURE_FILES])
def test_a_pure_room_reaches_neither_network_nor_clock_nor_disk(file: str) -> None:
    tree = ast.parse((PACKAGE / file).read_text())
    calls = (node.func for node in ast.walk(tree) if isinstance(node, ast.Call))
    named = {function.id for function in calls if isinstance(function, ast.Name)}
    allowed = PURE_ENOUGH.get(file, set())
    assert [name for name in imports(tree, file) if impure(name) and name not in allowed] == []
    assert named & IMPURE_BUILTINS == set()


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import time", True),
        ("from time import monotonic", True),
        ("import urllib.request", True),
        ("from urllib.parse import urlsplit", False),
        ("import litellm.exceptions", True),
        ("from compacter.memory import base", True),
        ("from ..memory import base", True),
        ("from .. import memory", True),
        ("from . import request", False),
        ("from compacter.messages.format import Message", False),
        ("def f():\n    import socket", True),
    ],
)
def test_the_rule_sees_an_import_however_it_is_spelled(source: str, found: bool) -> None:
    assert any(impure(name) for name in imports(ast.parse(source), "call/call.py")) is found


def test_importing_compacter_loads_no_provider() -> None:
    program = (
        f"import compacter, sys; compacter.Compacter(); print(*[name for name in "
        f"{HEAVY} if name in sys.modules])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(ROOT / "middleware")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert loaded.stdout.split() == []


def test_the_package_has_one_name() -> None:
    # Through the source root the same classes would exist twice, and no `isinstance` between them
    # would hold.
    wrong = re.compile(r"^\s*(from|import)\s+middleware\b", re.MULTILINE)
    folders = ("middleware", "tests", "examples", "benchmarks", "docs")
    files = [
        path
        for folder in folders
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".md"}
    ]
    assert [
        str(path) for path in (*files, ROOT / "README.md") if wrong.search(path.read_text())
    ] == []


def test_no_file_names_a_package_registry() -> None:
    # Whoever installs chooses where from; the spelling is split so that this file passes its own
    # test.
    hosts = re.compile(
        "|".join(("pypi" + r"\.org", "python" + "hosted", "npmjs" + r"\.", "index" + "-url"))
    )
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)  # noqa: S607
    if listed.returncode:
        pytest.skip("not a git checkout")
    files = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    assert [
        str(path)
        for path in files
        if path.is_file() and hosts.search(path.read_text(errors="ignore"))
    ] == []


def build(source: Path, folder: Path, *targets: str) -> list[Path]:
    """The project in ``source``, built for each target, the wheel first."""
    for target in targets:
        options = ("--target", target, "--directory", str(folder))
        command = [sys.executable, "-m", "hatchling", "build", *options]
        environment = os.environ | {"SOURCE_DATE_EPOCH": "1700000000"}
        subprocess.run(command, cwd=source, check=True, capture_output=True, env=environment)
    return sorted(folder.iterdir(), key=lambda path: path.suffix, reverse=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The wheel and the source archive."""
    wheel, archive = build(ROOT, tmp_path_factory.mktemp("dist"), "wheel", "sdist")
    return wheel, archive


def test_the_wheel_holds_the_package_and_its_types(built: tuple[Path, Path]) -> None:
    wheel, _ = built
    with zipfile.ZipFile(wheel) as archive:
        shipped = {name for name in archive.namelist() if ".dist-info/" not in name}
    source = {
        f"compacter/{path.relative_to(PACKAGE)}"
        for path in PACKAGE.rglob("*.*")
        if path.suffix in {".py", ".css", ".js", ".toml"}
    }
    assert shipped == source | {"compacter/py.typed"}


def test_the_wheel_carries_its_licence(built: tuple[Path, Path]) -> None:
    wheel, _ = built
    with zipfile.ZipFile(wheel) as archive:
        (licence,) = (
            name for name in archive.namelist() if name.endswith(".dist-info/licenses/LICENSE")
        )
        assert archive.read(licence) == (ROOT / "LICENSE").read_bytes()


def description(wheel: Path) -> Message:
    """Source of the package's page."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        return message_from_bytes(archive.read(name))


def test_the_version_is_the_newest_dated_one_of_the_changelog(built: tuple[Path, Path]) -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.search(r"^## \[(.+)\] - \d{4}-\d\d-\d\d$", changelog, re.MULTILINE)

    assert released is not None
    assert description(built[0])["Version"] == compacter.__version__ == released[1]
    assert f"-{released[1]}-" in built[0].name


def links(text: str) -> list[str]:
    """Where the links and pictures of a Markdown text lead."""
    tokens = MarkdownIt().enable("table").parse(text)
    inline = [child for token in tokens for child in token.children or ()]
    found = [str(one.attrs.get("href") or one.attrs.get("src") or "") for one in inline]
    html = [one.content for one in (*tokens, *inline) if one.type.startswith("html")]
    sources = re.findall(r'(?:src|srcset|href)="([^"]+)"', " ".join(html))
    return [*filter(None, found), *sources]


def test_the_description_has_no_link_that_leads_nowhere(built: tuple[Path, Path]) -> None:
    about = description(built[0])
    assert about["Description-Content-Type"] == "text/markdown"
    text = str(about.get_payload())
    assert "```python" in text
    assert [link for link in links(text) if not link.startswith(("https://", "#"))] == []


def test_with_an_address_every_link_and_picture_of_the_description_is_absolute() -> None:
    hook = build_hook()
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    text = hook["described"](readme, "https://example.org/c", "v1.0")
    found = links(text)
    assert len(found) == len(links(readme))
    assert all(link.startswith(("https://", "#")) for link in found), found
    assert "https://example.org/c/raw/v1.0/docs/images/demo.svg" in found
    assert "https://example.org/c/blob/v1.0/docs/quickstart.md" in found


def test_every_page_that_the_project_names_has_the_one_address() -> None:
    found = build_hook()["urls"]("https://example.org/c", "v1.0")
    assert found["Documentation"] == "https://example.org/c/blob/v1.0/docs/index.md"
    assert all(link.startswith("https://example.org/c") for link in found.values())
    assert build_hook()["urls"]("", "v1.0") == {}


def test_a_release_without_an_address_is_refused(built: tuple[Path, Path], tmp_path: Path) -> None:
    if manual.ADDRESS:
        assert project_urls(built[0])
        return
    wheel = tmp_path / built[0].name
    wheel.write_bytes(built[0].read_bytes())
    command = [sys.executable, str(ROOT / "tests" / "release.py"), str(wheel), "--publish"]
    refused = subprocess.run(command, capture_output=True, text=True, check=False)
    assert refused.returncode == 2
    assert "set ADDRESS" in refused.stderr


def build_hook() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "hatch_build.py"))


def test_the_source_archive_builds_the_same_wheel_and_itself(
    built: tuple[Path, Path], tmp_path: Path
) -> None:
    # Another folder and other times of change, and no git: neither may leave a trace.
    with tarfile.open(built[1]) as archive:
        archive.extraction_filter = getattr(tarfile, "data_filter", None)  # From Python 3.11.4 on.
        archive.extractall(tmp_path)  # noqa: S202 - made by this test
    (source,) = tmp_path.iterdir()
    for path in source.rglob("*"):
        os.utime(path, (0, 1_000_000_000))
    again = build(source, tmp_path / "dist", "wheel", "sdist")
    assert [path.name for path in again] == [path.name for path in built]
    assert [path.read_bytes() for path in again] == [path.read_bytes() for path in built]


def test_the_source_archive_holds_what_its_tests_want(built: tuple[Path, Path]) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)  # noqa: S607
    if listed.returncode:
        pytest.skip("not a git checkout")
    with tarfile.open(built[1]) as archive:
        shipped = {name.partition("/")[2] for name in archive.getnames()}
    tracked = {
        name for name in listed.stdout.decode().split("\0") if name and (ROOT / name).is_file()
    }
    assert {name for name in tracked - shipped if not name.startswith(".github/")} == set()
    assert [
        name
        for name in shipped
        if re.search(r"(^|/)(\.venv|node_modules|__pycache__|\.git)(/|$)", name)
    ] == []


def test_the_release_is_tried_with_each_extra() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {*USES, *ELSEWHERE} == {"", *project["optional-dependencies"]}


def test_each_install_line_of_a_page_works_from_a_checkout() -> None:
    """The package index does not have the package before its first release."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"][
        "optional-dependencies"
    ]
    for page in (ROOT / "README.md", *(ROOT / "docs").rglob("*.md")):
        for line in re.findall(r"pip install .*", page.read_text(encoding="utf-8")):
            before = line.partition("after the first release")[0]
            assert "llm-compacter" not in before, f"{page}: {line}"
            for names in re.findall(r'"\.\[([\w,]+)\]"', line):
                assert set(names.split(",")) <= extras.keys(), f"{page}: {line}"
