"""The shares to reach on errors collected from many providers, where that collection is at hand."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from compacter.overflow import detect_token_limit

DATA = (
    Path(os.environ.get("COMPACTER_DATA") or Path(__file__).parents[3] / "shared" / "data")
    / "token_limit_errors.jsonl"
)

pytestmark = pytest.mark.skipif(
    not DATA.exists(), reason=(f"no collection of errors at {DATA} (set COMPACTER_DATA)")
)


def rows() -> list[dict[str, Any]]:
    with DATA.open(encoding="utf-8") as lines:
        return [row for row in map(json.loads, lines) if not row["ambiguous"]]


def exception(name: str | None, text: str, **attributes: object) -> Exception:
    """The error as an SDK would raise it: a class of that name, with what is known as
    attributes.
    """
    dotted = re.sub(r"\s*\(.*\)$", "", name or "ProviderError")
    module, _, bare = dotted.rpartition(".")
    error: Exception = type(
        bare or "ProviderError", (Exception,), {"__module__": module or "provider"}
    )(text)
    for key, value in attributes.items():
        if value is not None:
            setattr(error, key, value)
    return error


def built(row: dict[str, Any]) -> Exception:
    error = exception(
        row["exception"],
        row["message"],
        message=row["message"],
        status_code=row["http_status"],
        code=row["code"],
        body=row["body"],
    )
    last = error
    for link in row.get("chain") or []:
        cause = exception(
            link.get("exception"),
            link["message"],
            message=link["message"],
            status_code=link.get("http_status"),
        )
        group = next(
            (name for name in ("exceptions", "errors") if name in (link.get("via") or "")), None
        )
        if group:
            setattr(error, group, [*getattr(error, group, []), cause])
        else:
            last.__cause__ = cause
            last = cause
    return error


def share(hits: list[bool]) -> float:
    return sum(hits) / len(hits)


def test_token_limits_are_found() -> None:
    assert (
        share(
            [
                detect_token_limit(built(row)) is not None
                for row in rows()
                if row["kind"] == "overflow"
            ]
        )
        >= 0.97
    )


def test_look_alikes_are_not() -> None:
    assert (
        share(
            [
                detect_token_limit(built(row)) is not None
                for row in rows()
                if row["kind"] != "overflow"
            ]
        )
        <= 0.01
    )


@pytest.mark.parametrize("name", ["limit", "requested"])
def test_numbers_are_read(name: str) -> None:
    stated = [
        row
        for row in rows()
        if row["kind"] == "overflow"
        and row[name] is not None
        and not (name == "requested" and row.get("requested_is") == "sum_not_literal")
    ]

    assert (
        share([getattr(detect_token_limit(built(row)), name, None) == row[name] for row in stated])
        >= 0.95
    )
