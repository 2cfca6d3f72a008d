"""Figures are counted for the operator's own classes of tenants, never for each tenant."""

from __future__ import annotations

from collections import Counter

import pytest

from compacter.events import Event
from compacter.gateway.litellm_proxy.settings import Settings

GIVEN = {
    "model_groups": {"local": {"compact_ratio": 0.5}},
    "teams": {"research": {"compact_ratio": 0.6}},
    "keys": {"batch-jobs": {"compact_ratio": 0.8}},
}


class Counted:
    """Counts by class."""

    def __init__(self) -> None:
        self.found: Counter[tuple[str, str, str]] = Counter()

    def of(self, tenant_class: str) -> CountedPart:
        return CountedPart(self, tenant_class)


class CountedPart:
    def __init__(self, whole: Counted, tenant_class: str) -> None:
        self._whole = whole
        self._class = tenant_class

    def hear(self, event: Event) -> None:
        self.add(type(event).__name__, event.model or "")

    def add(self, name: str, model: str, amount: float = 1) -> None:
        self._whole.found[self._class, name, model] += int(amount)


@pytest.mark.parametrize(
    ("group", "team", "key", "tenant_class"),
    [
        ("local", ("t-1", "research"), ("hash", None), "team research"),
        ("chat", ("t-1", "research"), ("hash", "batch-jobs"), "key batch-jobs"),
        ("local", ("t-2", "sales"), ("hash", "laptop"), "other"),
        ("chat", (None,), (None,), "other"),
    ],
)
def test_a_call_counts_for_the_most_specific_name_in_the_settings(
    group: str, team: tuple[str | None, ...], key: tuple[str | None, ...], tenant_class: str
) -> None:
    counted = Counted()
    _, state = Settings(GIVEN, counted.of).of(group, team, key)
    state.count("refusals", group)
    assert counted.found == {(tenant_class, "refusals", group): 1}


def test_many_keys_are_no_more_classes() -> None:
    counted = Counted()
    settings = Settings(GIVEN, counted.of)
    for number in range(1_000):
        settings.of("local", (f"team-{number}",), (f"key-{number}",))[1].count("refusals", "local")
    assert counted.found == {("other", "refusals", "local"): 1_000}
