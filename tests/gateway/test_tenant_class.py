"""Figures are counted for the operator's own classes of tenants, never for each tenant."""

from __future__ import annotations

import pytest

from compacter.gateway.litellm_proxy.settings import Settings

GIVEN = {
    "model_groups": {"local": {"compact_ratio": 0.5}},
    "teams": {"research": {"compact_ratio": 0.6}},
    "keys": {"batch-jobs": {"compact_ratio": 0.8}},
}


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
    assert Settings(GIVEN).of(group, team, key)[1].tenant_class == tenant_class


def test_many_keys_are_no_more_classes() -> None:
    settings = Settings(GIVEN)
    classes = {
        settings.of("local", (f"team-{number}",), (f"key-{number}",))[1].tenant_class
        for number in range(1_000)
    }
    assert classes == {"other"}
