"""Writes the table in `windows.md`: what litellm's table has of the models of some vendors.

python docs/make_windows.py            write docs/windows.md
python docs/make_windows.py --check    exit with 1 where it is out of date
"""

from __future__ import annotations

import json
import re
import sys
from collections import defaultdict
from importlib.metadata import distribution
from pathlib import Path

from compacter.runtime import models

PAGE = Path(__file__).parent / "windows.md"
BEGIN = "<!-- models: written by docs/make_windows.py -->\n"
END = "<!-- end of models -->\n"
VENDORS = {
    "openai": "OpenAI",
    "anthropic": "Anthropic",
    "gemini": "Google Gemini",
    "mistral": "Mistral",
    "deepseek": "DeepSeek",
    "xai": "xAI",
    "cohere_chat": "Cohere",
    "moonshot": "Moonshot",
    "zai": "Z.ai",
    "minimax": "MiniMax",
    "groq": "Groq",
    "cerebras": "Cerebras",
}
_DATE = re.compile(r"[-@](\d{4}-\d{2}-\d{2}|\d{8}|\d{3,4}|\d{2}-\d{2,4})$")
_LEFT_OUT = re.compile(r"^ft:|audio|realtime|image|tts|transcribe|live|embed|search-")


def table() -> dict[str, dict[str, object]]:
    """The models of litellm's own table, whatever a program has added to it."""
    folder = Path(str(distribution("litellm").locate_file("litellm")))
    text = (folder / "model_prices_and_context_window_backup.json").read_text(encoding="utf-8")
    models_of: dict[str, dict[str, object]] = json.loads(text)
    return {name: facts for name, facts in models_of.items() if name != "sample_spec"}


def windows(vendor: str) -> dict[int, list[str]]:
    """Names of a vendor's chat models by their windows, the largest window first; a name with a
    date only where the bare one has another window.
    """
    sizes: dict[str, int] = {}
    for key, facts in table().items():
        is_chat = facts.get("mode") in {"chat", "responses"}
        if facts.get("litellm_provider") == vendor and is_chat and (size := models.window(key)):
            sizes[key.rsplit("/", 1)[-1]] = size
    found: dict[int, list[str]] = defaultdict(list)
    for name in sorted(sizes):
        bare = _DATE.sub("", name)
        is_second = bare != name and sizes.get(bare) == sizes[name]
        if not is_second and not _LEFT_OUT.search(name):
            found[sizes[name]].append(name)
    return dict(sorted(found.items(), reverse=True))


def page() -> str:
    """The page with a table as it is now."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    litellm = distribution("litellm").version
    lines = [
        f"Of the {len(table()):,} models that litellm {litellm} knows, those of some vendors.",
        "A name with a date has the window of the one without it.",
        "",
        "| vendor | tokens | models |",
        "|---|---|---|",
    ]
    for vendor, title in VENDORS.items():
        for size, names in windows(vendor).items():
            lines.append(f"| {title} | {size:,} | {', '.join(f'`{name}`' for name in names)} |")
    body = "\n".join(lines)
    return f"{before}{BEGIN}{body}\n{END}{rest.partition(END)[2]}"


def main() -> int:
    """Write the page, or compare it."""
    if "--check" in sys.argv:
        return int(PAGE.read_text(encoding="utf-8") != page())
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
