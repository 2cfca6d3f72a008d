"""Settings in the proxy's config file: ``callback_settings: {compacter: {...}}``.

They are the options of ``Compacter`` that are plain data, and the plug-in's own settings. Both can
be overridden for a model group, a team and a key; the more specific setting wins. The setting
``summarizer`` names a model group of the
proxy: summaries are requested through its router, charged to the caller whose history is compacted.
"""

from __future__ import annotations

import difflib
import fnmatch
import logging
from collections.abc import Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import version
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from compacter.call.ahead import Preparations
from compacter.call.state import State
from compacter.errors import ConfigurationError
from compacter.gateway import AHEAD
from compacter.gateway.checks import checked, problem_of, read_summarizer
from compacter.gateway.metrics import CountingState, Metrics
from compacter.memory import Memory
from compacter.memory.address import IN_PROCESS, REDIS, keys_from, memory_of
from compacter.memory.stored import DEADLINE, WEEK
from compacter.options import Options, validated
from compacter.runtime.models import window

_PATH = "callback_settings.compacter"
# Options that take objects or functions, or need the wrapped call itself, and cannot be set in a
# file; the proxy has one memory.
_IN_CODE = {
    "memory",
    "pin",
    "detect",
    "on_compaction",
    "on_event",
    "before_compaction",
    "after_compaction",
    "logger",
    "token_counter",
    "strategy",
    "conversation",
}


class Switches(BaseModel):
    """The plug-in's own settings, which may differ by model group, team and key."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    enabled: bool = True
    """Whether requests are compacted."""
    dry_run: bool = False
    """Whether a refusal is only counted and logged, with what would be compacted. The client gets
    the error."""


class MemorySettings(BaseModel):
    """Memory in which summaries are saved, so that each is made once."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    address: str = IN_PROCESS
    """An address, as the option ``memory`` of a client takes it."""
    ttl: float = Field(default=WEEK, gt=0)
    """Seconds after which an unused record is deleted."""
    namespace: str = Field(default="compacter", min_length=1)
    """Prefix of all keys in Redis."""
    deadline: float = Field(default=DEADLINE, gt=0)
    """Longest time of one Redis operation, in seconds; a call then goes on without the memory."""
    encryption: str | tuple[str, ...] = ()
    """``file:PATH``, a file with one key a line, or ``env:NAME``; or several of these. The first
    key encrypts, all decrypt."""
    share: Literal["key", "team"] = "key"
    """Calls that share records: those of one key, or of one team."""

    @model_validator(mode="before")
    @classmethod
    def _of_address(cls, given: object) -> object:
        """Return the settings that an address alone, or ``false``, stands for."""
        if isinstance(given, str):
            return {"address": given}
        return {"address": "none"} if given is False else given

    def open(self) -> Memory | None:
        """Return the memory. Raises ``ConfigurationError`` for an invalid address or key."""
        name = f"{_PATH}.memory.encryption"
        sources = [self.encryption] if isinstance(self.encryption, str) else self.encryption
        keys = [key for source in sources for key in keys_from(source, name)] or None
        if keys and self.address == IN_PROCESS:
            raise ConfigurationError(f"{name} needs an address to store at")
        more: dict[str, Any] = {"encryption": keys}
        if self.address.startswith(REDIS):
            more |= {"ttl": self.ttl, "namespace": self.namespace, "deadline": self.deadline}
        try:
            return memory_of(self.address, **more)
        except (ConfigurationError, ImportError) as error:
            raise ConfigurationError(f"{_PATH}.memory: {error}") from error


def _as_table(given: object) -> object:
    """Read ``false`` as ``{enabled: false}``."""
    return {"enabled": given} if isinstance(given, bool) else given


_Tables = dict[str, Annotated[dict[str, Any], BeforeValidator(_as_table)]]


class _File(BaseModel):
    """The shape of the settings. A setting that is no field of this class is the same for every
    call.
    """

    model_config = ConfigDict(extra="allow")

    memory: MemorySettings = MemorySettings()
    model_groups: _Tables = {}
    teams: _Tables = {}
    keys: _Tables = {}


class Settings:
    """The settings of one proxy. Thread-safe: only a cache is changed, once for each entry.

    Args:
        given: Value of ``callback_settings.compacter``; ``None`` without one.
        metrics: Figures that count events and failures.

    Raises:
        ConfigurationError: A setting is unknown or invalid; the message has its path in the file.
    """

    def __init__(self, given: object = None, metrics: Metrics | None = None) -> None:
        file = checked(_File, {} if given is None else given, _PATH)
        self.memory_settings = file.memory
        self.memory = file.memory.open()
        self._by = {name: getattr(file, name) for name in _BY}
        self._top = file.model_extra or {}
        self._metrics = metrics or Metrics()
        self._preparations = Preparations()
        self._states: dict[tuple[tuple[str, str], ...], tuple[Switches, CountingState]] = {}
        self.groups = [(f"{_PATH}.model_groups.{name}", name) for name in file.model_groups]
        """Model groups that the settings name, each with its path."""
        self._make_state(_PATH, self._top)
        for kind in _BY:
            for name, table in self._by[kind].items():
                self._make_state(f"{_PATH}.{kind}.{name}", {**self._top, **table})

    def of(
        self, group: str, team: tuple[str | None, ...], key: tuple[str | None, ...]
    ) -> tuple[Switches, CountingState]:
        """Return switches and state for a call.

        Args:
            group: The called model group.
            team: The team's names, such as id and alias.
            key: The key's names, such as hash and alias.
        """
        places = tuple(
            (kind, name)
            for kind, names in zip(_BY, ((group,), team, key), strict=True)
            for name in names
            if name and name in self._by[kind]
        )
        found = self._states.get(places)
        if found is None:
            table = dict(self._top)
            for kind, name in places:
                table |= self._by[kind][name]
            made = self._make_state(_PATH, table, _class_of(places))
            found = self._states.setdefault(places, made)
        return found

    def _make_state(
        self, path: str, table: Mapping[str, Any], tenant_class: str = "other"
    ) -> tuple[Switches, CountingState]:
        own = {name: value for name, value in table.items() if name in Switches.model_fields}
        options = {name: value for name, value in table.items() if name not in own}
        unknown = sorted(options.keys() - _KNOWN)
        if unknown:
            raise ConfigurationError(
                f"{path}.{unknown[0]} cannot be set here: it is unknown, takes an object or a "
                f"function, or is one for the whole proxy; what can: {', '.join(sorted(_KNOWN))}"
            )
        switches = checked(Switches, own, path)
        try:
            group, writer = read_summarizer(options)
            options["summarizer"] = writer or RouterSummarizer(group)
            valid = validated({"prepare_tokens": AHEAD, **options, "memory": self.memory})
        except ConfigurationError as error:
            raise ConfigurationError(f"{path}: {error}") from None
        if group is not None:
            self.groups.append((f"{path}.summarizer", group))
        return switches, CountingState(
            valid, self._metrics, self._preparations, tenant_class=tenant_class
        )


def _class_of(places: Sequence[tuple[str, str]]) -> str:
    """Return the class under which figures are counted: the name of the team or key in the file. So
    there are no more classes than such names.
    """
    named = [f"{kind.removesuffix('s')} {name}" for kind, name in places if kind != "model_groups"]
    return named[-1] if named else "other"


_BY = ("model_groups", "teams", "keys")
_KNOWN = {*Options.model_fields, *Switches.model_fields} - _IN_CODE


# -- requests for summaries ------------------------------------------------------------------------

MARK = "compacter"
"""Tag of summary requests in spend logs."""
# Prefix of the metadata keys in which the proxy stores the caller.
_CARRIED = "user_api_key"

# Name of the proxy's reservation for a call, in its metadata and its authentication.
_RESERVATION = "budget_reservation"


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller whose history is compacted."""

    group: str
    """Called model group."""
    metadata: Mapping[str, Any]
    """Metadata of the call, filled in by the proxy."""
    auth: Any
    """``UserAPIKeyAuth`` of the call."""


CALLER: ContextVar[Caller] = ContextVar("compacter_caller")
"""Caller of the attempt that is being prepared."""


class RouterSummarizer:
    """Summarizer that calls a model group of the proxy.

    Args:
        group: The model group; ``None`` for the group of the call.
    """

    def __init__(self, group: str | None = None) -> None:
        self.group = group

    @property
    def window(self) -> int | None:
        """Smallest window of the group's deployments, in tokens; ``None`` if unknown, or if no
        group is given.
        """
        from litellm.proxy import proxy_server

        router: Any = proxy_server.llm_router
        listed = router.get_model_list(model_name=self.group) if self.group else None
        windows = (
            _window(deployment, deployment["litellm_params"].get("model"))
            for deployment in listed or ()
        )
        return min(filter(None, windows), default=None)

    async def __call__(self, messages: Sequence[Mapping[str, str]], *, max_tokens: int) -> object:
        """Return the completion. Raises the router's exceptions, and the proxy's if the key may not
        use the group.
        """
        from litellm.proxy import proxy_server

        router: Any = proxy_server.llm_router
        caller = CALLER.get()
        group = self.group or caller.group
        if group != caller.group:
            await _check_access(group, caller.auth, router)
        metadata = _account(caller.metadata)
        tags = [MARK]
        reply: object = await router.acompletion(
            model=group,
            messages=[dict(message) for message in messages],
            max_tokens=max_tokens,
            metadata={
                **metadata,
                "tags": tags,
                "spend_logs_metadata": {MARK: "summary", "model_group": caller.group},
            },
        )
        return reply


def learn_windows(state: State, group: str, kwargs: Mapping[str, Any]) -> None:
    """Set the windows of the group and of its summarizer from the config, or from litellm's
    table.
    """
    calibration = state.calibration(group)
    summarizer = state.options.summarizer
    if calibration.window is None:
        calibration.window = _window(kwargs, kwargs.get("model"))
    if calibration.summarizer_window is None and isinstance(summarizer, RouterSummarizer):
        calibration.summarizer_window = summarizer.window


def _window(given: Mapping[str, Any], model: object) -> int | None:
    """Return the window that a deployment or a request states, else that of litellm's table."""
    stated = (given.get("model_info") or {}).get("max_input_tokens")
    return stated if isinstance(stated, int) else window(str(model))


def _account(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Return the metadata by which the caller pays, without the call's budget reservation.

    The proxy reserves a call's largest cost before the call, and returns the rest once, after it.
    If a summary had the reservation too, the proxy would return it twice, and never refuse a spent
    key.
    """
    kept = {
        name: value
        for name, value in metadata.items()
        if name.startswith(_CARRIED) and name != f"{_CARRIED}_{_RESERVATION}"
    }
    auth: Any = kept.get(f"{_CARRIED}_auth")
    if getattr(auth, _RESERVATION, None) is not None:
        kept[f"{_CARRIED}_auth"] = auth.model_copy(update={_RESERVATION: None})
    return kept


async def _check_access(group: str, auth: Any, router: Any) -> None:
    from litellm.proxy import proxy_server
    from litellm.proxy.auth.auth_checks import can_key_call_model

    await can_key_call_model(
        model=group, llm_model_list=proxy_server.llm_model_list, valid_token=auth, llm_router=router
    )
    models: list[str] = list(getattr(auth, "team_models", None) or ())
    if models and "all-proxy-models" not in models and group not in models:
        raise PermissionError(f"the key's team has no access to the model group {group!r}")


# -- at the start of the proxy ---------------------------------------------------------------------

log = logging.getLogger("compacter")

TESTED = ("1.106", "1.108", "1.109")
"""Minor lines of litellm that the plug-in is tested with."""
# Versions that the plug-in does not work with: refused at start, see `docs/gateway.md`.
_OLDEST = (1, 106)
_BROKEN = ((1, 107),)


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


def check_settings(settings: Settings) -> None:
    """Check names and memory once. Raises ``ConfigurationError``."""
    from litellm.proxy import proxy_server

    read: Any = getattr(proxy_server.proxy_config, "get_config_state", None)
    config = read() if callable(read) else None
    if isinstance(config, Mapping):
        check_names(config, settings.groups)
    problem = problem_of(settings.memory, settings.memory_settings.address)
    if problem:
        log.warning("compacter: %s", problem)


def check_names(config: Mapping[str, Any], named: Iterable[tuple[str, str]]) -> None:
    """Check that every model group which the settings name is in the config.

    A config without a list, or with models in a database, has no names to compare.

    Args:
        config: The proxy's config file.
        named: Model groups in the settings, each with its path.

    Raises:
        ConfigurationError: A name is unknown; the message has the nearest one.
    """
    known = {
        str(entry["model_name"])
        for entry in config.get("model_list") or ()
        if isinstance(entry, Mapping) and entry.get("model_name")
    }
    if not known or (config.get("general_settings") or {}).get("store_model_in_db"):
        return
    groups = sorted(
        known | {*((config.get("router_settings") or {}).get("model_group_alias") or {})}
    )
    for path, name in named:
        if not any(fnmatch.fnmatchcase(name, group) for group in groups):
            near = difflib.get_close_matches(name, groups, 1)
            question = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(groups)}"
            raise ConfigurationError(f"{path}: there is no model group {name!r}{question}")
