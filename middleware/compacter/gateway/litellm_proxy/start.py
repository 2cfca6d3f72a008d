"""Checks at the start of the proxy: litellm's version, names in the config, and
whether the memory answers.
"""

from __future__ import annotations

import difflib
import fnmatch
import logging
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from typing import Any

from compacter.errors import ConfigurationError
from compacter.gateway.checks import problem_of
from compacter.gateway.litellm_proxy.settings import Settings

log = logging.getLogger("compacter")

TESTED = ("1.106", "1.108", "1.109")
"""Minor lines of litellm that the plug-in is tested with."""
# Versions that the plug-in does not work with: refused at start, see `docs/gateway.md`.
_OLDEST = (1, 106)
_BROKEN = ((1, 107),)
_PATH = "callback_settings.compacter"


def check_version() -> None:
    """Raise ``ConfigurationError`` if the plug-in does not support this version of litellm."""
    from litellm.integrations.custom_logger import CustomLogger

    installed = version("litellm")
    numbers = tuple(int(part) for part in installed.split(".")[:2])
    if (
        numbers < _OLDEST
        or numbers in _BROKEN
        or not hasattr(CustomLogger, "async_post_call_failure_deployment_hook")
    ):
        raise ConfigurationError(
            f"compacter's plug-in does not work with litellm {installed}: it is tested with "
            f"{', '.join(f'{line}.x' for line in TESTED)}; pip install 'litellm[proxy]>=1.108'"
        )
    if f"{numbers[0]}.{numbers[1]}" not in TESTED:
        log.warning(
            "compacter: litellm %s is newer than those tested: %s", installed, ", ".join(TESTED)
        )


def check_settings(settings: Settings, given: object) -> None:
    """Check names and memory once. Raises ``ConfigurationError``."""
    from litellm.proxy import proxy_server

    read: Any = getattr(proxy_server.proxy_config, "get_config_state", None)
    config = read() if callable(read) else None
    if isinstance(config, Mapping) and isinstance(given, Mapping):
        check_names(config, given)
    problem = problem_of(settings.memory, settings.memory_settings.address)
    if problem:
        log.warning("compacter: %s", problem)


def check_names(config: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Check that every model group which the settings name is in the config.

    A config without a list, or with models in a database, has no names to compare.

    Args:
        config: The proxy's config file.
        given: Value of ``callback_settings.compacter``.

    Raises:
        ConfigurationError: A name is unknown; the message has the nearest one.
    """
    groups = _groups(config)
    if not groups or (config.get("general_settings") or {}).get("store_model_in_db"):
        return
    for path, name in _name_groups(given):
        if not any(fnmatch.fnmatchcase(name, group) for group in groups):
            near = difflib.get_close_matches(name, groups, 1)
            question = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(groups)}"
            raise ConfigurationError(f"{path}: there is no model group {name!r}{question}")


def _groups(config: Mapping[str, Any]) -> list[str]:
    """Return the names of model groups, wildcards and aliases in a config."""
    entries = config.get("model_list")
    groups = [
        str(entry["model_name"])
        for entry in entries or ()
        if isinstance(entry, Mapping) and entry.get("model_name")
    ]
    aliases = (config.get("router_settings") or {}).get("model_group_alias")
    return sorted({*groups, *(aliases if groups and isinstance(aliases, Mapping) else ())})


def _name_groups(given: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the model groups that the settings name, each with its path."""
    for name in given.get("model_groups") or ():
        yield f"{_PATH}.model_groups.{name}", str(name)
    tables = [(_PATH, given)]
    for kind in ("model_groups", "teams", "keys"):
        tables.extend(
            (f"{_PATH}.{kind}.{name}", table)
            for name, table in (given.get(kind) or {}).items()
            if isinstance(table, Mapping)
        )
    for path, table in tables:
        writer = table.get("summarizer")
        if isinstance(writer, str) and writer != "extractive":
            yield f"{path}.summarizer", writer
