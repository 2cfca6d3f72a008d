"""Is it a token limit? compacter's detector on errors that others have reported.

Run: ``python benchmarks/detector.py``. ``errors.jsonl`` has short texts of errors as providers,
gateways and servers raise them, with numbers of our own, and for each the public thread in which
somebody reported one like it. Nothing of the detector was changed for them, though most of these
providers' wordings were known when it was written. Beside it stand
litellm's own check, which decides whether litellm raises ``ContextWindowExceededError``, and the
two strings that most programs look for. Ends with one JSON line.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from compacter import detect_token_limit

TEXTS = Path(__file__).parent / "errors.jsonl"
Case = dict[str, Any]


class ReportedError(Exception):
    """An error as an SDK raises it: a text, a status, a code."""

    def __init__(self, case: Case) -> None:
        super().__init__(case["text"])
        self.status_code = case["status"]
        self.code = case["code"]


def cases() -> list[Case]:
    """The texts, each with whether it is a token limit."""
    return [json.loads(line) for line in TEXTS.read_text(encoding="utf-8").splitlines()]


def by_compacter(case: Case) -> bool:
    """As programs call it."""
    return detect_token_limit(ReportedError(case)) is not None


def by_litellm(case: Case) -> bool:
    """The check of ``litellm.exceptions``."""
    from litellm.litellm_core_utils.exception_mapping_utils import ExceptionCheckers

    text = f"{case['code'] or ''} {case['text']}"
    return "context_length_exceeded" in text or bool(
        ExceptionCheckers.is_error_str_context_window_exceeded(text)
    )


def by_two_strings(case: Case) -> bool:
    """OpenAI's code, and the words of its error."""
    text = f"{case['code'] or ''} {case['text']}"
    return "context_length_exceeded" in text or "maximum context length" in text


DETECTORS: dict[str, Callable[[Case], bool]] = {
    "compacter": by_compacter,
    "litellm": by_litellm,
    "two strings": by_two_strings,
}


def measure() -> dict[str, Any]:
    """How many of the texts each of them takes for a token limit."""
    texts = cases()
    limits = [case for case in texts if case["token_limit"]]
    others = [case for case in texts if not case["token_limit"]]
    return {
        "token_limits": len(limits),
        "other_errors": len(others),
        "providers": len({case["provider"].partition(",")[0] for case in texts}),
        "found": {name: sum(map(detect, limits)) for name, detect in DETECTORS.items()},
        "alarms": {name: sum(map(detect, others)) for name, detect in DETECTORS.items()},
    }


def main() -> None:
    """Print a table, what was missed, and the JSON line."""
    measured = measure()
    limits = measured["token_limits"]
    others = measured["other_errors"]
    print(f"{'':14}{'found':>10}{'false alarms':>16}\n")
    for name in DETECTORS:
        found = f"{measured['found'][name]} of {limits}"
        print(f"{name:14}{found:>10}{measured['alarms'][name]:>10} of {others}")
    print()
    for case in cases():
        if by_compacter(case) is not case["token_limit"]:
            print(f"misjudged by compacter: {case['provider']}: {case['text']}")
    print(f"\n{json.dumps(measured)}")


if __name__ == "__main__":
    main()
