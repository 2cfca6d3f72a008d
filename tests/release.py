"""Does what is published work where it is installed? In new environments, one without extras and
one for each extra.

    make release-check

Takes the wheel. For each Python of this machine that the package supports it makes an environment,
installs the wheel with one extra, at the versions that the tests ran with, and from an empty folder
imports compacter, compares its version, runs the Python blocks of the README that the wheel
carries, and uses what the extra is for. Ends with 1 if anything failed. The extra ``proxy`` is left
to ``make gateway``: it brings 800 MB.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from email import message_from_bytes
from pathlib import Path

ROOT = Path(__file__).parent.parent
VERSIONS = ("3.11", "3.12", "3.13", "3.14")
ELSEWHERE = ("proxy",)
"""Extras that are tested in environments of their own."""

ALWAYS = """
import re
from importlib.metadata import metadata
from pathlib import Path
import compacter

about = metadata("llm-compacter").json
assert compacter.__version__ == about["version"] == {version!r}, compacter.__version__
assert "site-packages" in Path(compacter.__file__).parts, compacter.__file__
blocks = re.findall(r"^```python\\n(.*?)^```", about["description"], re.MULTILINE | re.DOTALL)
assert blocks
names = {{"__name__": "README"}}
for block in blocks:
    exec(compile(block, "README", "exec"), names)
"""

USES = {
    "": """
import subprocess, sys
import litellm
from compacter.testing import ScriptedServer
history = [
    {"role": ("user", "assistant")[turn % 2], "content": f"Number {turn}. " + "word " * 9}
    for turn in range(61)
]
with ScriptedServer(window=400) as server:
    reply = compacter.Compacter(summarizer="extractive").wrap(litellm.completion)(
        model="openai/any", messages=history, api_base=f"{server.url}/v1", api_key="-"
    )
assert reply.choices[0].message.content, reply
assert [request.refused for request in server.model.requests] == [True, False]
from pathlib import Path
text = "prompt is too long: 205668 tokens > 200000 maximum"
command = [Path(sys.executable).with_name("compacter"), "explain", text]
said = subprocess.run(command, capture_output=True, text=True)
assert said.returncode == 0 and "200,000" in said.stdout, said
""",
    "openai": "import openai; compacter.Compacter().wrap(openai.AsyncOpenAI(api_key='none'))",
    "anthropic": (
        "import anthropic; compacter.Compacter().wrap(anthropic.Anthropic(api_key='none'))"
    ),
    "google": "from google import genai; compacter.Compacter().wrap(genai.Client(api_key='none'))",
    "bedrock": """
import boto3
compacter.Compacter().wrap(boto3.client("bedrock-runtime", region_name="eu-west-1"))
""",
    "redis": "compacter.RedisMemory('redis://127.0.0.1:1').close()",
    "encryption": """
from cryptography.fernet import Fernet
compacter.SQLiteMemory("memory.db", encryption=Fernet.generate_key()).close()
""",
    "otel": "from compacter.tools.observe import OpenTelemetry; OpenTelemetry()",
    "serve": """
import subprocess, sys
from pathlib import Path
from compacter.gateway.serve import create_app
assert callable(create_app("http://127.0.0.1:1/v1"))
command = [Path(sys.executable).with_name("compacter"), "serve", "--upstream", "nowhere"]
said = subprocess.run(command, capture_output=True, text=True)
assert said.returncode == 2 and "takes a URL" in said.stderr, said
""",
}
"""Program lines that use what an extra brings; ``compacter`` is imported. The first are for no
extra."""


def interpreters() -> dict[str, str]:
    """The Pythons that run on this machine, by version. A shim on the path may name one that does
    not.
    """
    found: dict[str, str] = {}
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    for version in VERSIONS:
        inside = sorted(str(path) for path in pyenv.glob(f"{version}.*/bin/python"))
        for candidate in (shutil.which(f"python{version}"), *inside):
            if (
                candidate
                and not subprocess.run(
                    [candidate, "-c", ""], capture_output=True, check=False
                ).returncode
            ):
                found[version] = candidate
                break
    return found


def project_urls(wheel: Path) -> list[str]:
    """The addresses that the package's page would show."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        about = message_from_bytes(archive.read(name))
    return about.get_all("Project-URL", [])


def check(wheel: Path, python: str, extra: str, folder: Path) -> str:
    """Install the wheel with one extra into a new environment and use it.

    Args:
        wheel: The wheel's path.
        python: The interpreter's path.
        extra: The extra's name; empty for none.
        folder: An empty folder for the environment.

    Returns:
        What went wrong, or an empty string.
    """
    environment = folder / "environment"
    empty = folder / "empty"
    inside = environment / ("Scripts" if os.name == "nt" else "bin") / "python"
    empty.mkdir()
    wanted = f"llm-compacter{f'[{extra}]' * bool(extra)} @ {wheel.resolve().as_uri()}"
    pins = ROOT / "requirements" / "dev.txt"
    uv = [sys.executable, "-m", "uv"]
    install = [
        *uv,
        "pip",
        "install",
        "--quiet",
        "--python",
        str(inside),
        "--constraint",
        str(pins),
        wanted,
    ]
    program = ALWAYS.format(version=wheel.name.split("-")[1]) + USES[extra]
    clean = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("COMPACTER_", "PYTHON"))
    }
    for command in (
        [*uv, "venv", "--quiet", "--python", python, str(environment)],
        install,
        [str(inside), "-I", "-c", program],
    ):
        done = subprocess.run(
            command, cwd=empty, env=clean, capture_output=True, text=True, check=False
        )
        if done.returncode:
            return (done.stdout + done.stderr).strip() or f"ended with {done.returncode}"
    return ""


def main() -> int:
    """Check the wheel that the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path)
    parser.add_argument(
        "--publish",
        action="store_true",
        help="also refuse a wheel whose page would have no addresses of the project",
    )
    parser.add_argument(
        "--python",
        action="append",
        choices=VERSIONS,
        help=("a version; by default all that are present"),
    )
    arguments = parser.parse_args()
    named = re.fullmatch(r"llm_compacter-[^-]+-py3-none-any\.whl", arguments.wheel.name)
    if not (named and arguments.wheel.is_file()):
        parser.error(f"{arguments.wheel} is no wheel of compacter: make wheel")
    if arguments.publish and not project_urls(arguments.wheel):
        parser.error(
            f"{arguments.wheel.name} names no address of the project: set ADDRESS in"
            " middleware/compacter/manual.py"
        )
    versions = arguments.python or VERSIONS
    present = interpreters()
    if not present.keys() & set(versions):
        parser.error(f"none of Python {', '.join(versions)} is on this machine")
    failed = 0
    for version in versions:
        if version not in present:
            print(f"Python {version}: not on this machine")
            continue
        for extra in USES:
            with tempfile.TemporaryDirectory(
                prefix="compacter-release-", ignore_cleanup_errors=True
            ) as folder:
                wrong = check(arguments.wheel, present[version], extra, Path(folder))
            failed += bool(wrong)
            print(
                f"Python {version}, {extra or 'no extra'}: {'failed' if wrong else 'works'}",
                flush=True,
            )
            if wrong:
                print("\n".join(f"    {line}" for line in wrong.splitlines()[-15:]), flush=True)
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
