"""The decorator ``compacted``: a function with a ``Compacter`` of its own."""

from __future__ import annotations

from functools import partial
from typing import Any, Protocol, TypeVar, Unpack, overload

from compacter.compacter import Compacter
from compacter.options import CompacterOptions

F = TypeVar("F")


class _Decorator(Protocol):
    def __call__(self, function: F, /) -> F: ...


@overload
def compacted(function: F, /) -> F: ...
@overload
def compacted(
    *,
    messages_param: str | None = None,
    wire_format: str | None = None,
    **options: Unpack[CompacterOptions],
) -> _Decorator: ...
def compacted(
    function: Any = None,
    /,
    *,
    messages_param: str | None = None,
    wire_format: str | None = None,
    **options: Any,
) -> Any:
    """Decorate a function with a ``Compacter`` of its own: ``@compacted`` or
    ``@compacted(compact_ratio=0.5)``.

    Args:
        function: The function, if the decorator is used without parentheses.
        messages_param: Name of the argument for the messages, as for ``Compacter.wrap``.
        wire_format: Format of the messages, as for ``Compacter.wrap``.
        **options: The options of ``Compacter``, all keyword-only.

    Raises:
        ConfigurationError: An option is unknown or invalid.
    """
    decorate = partial(
        Compacter(**options).wrap, messages_param=messages_param, wire_format=wire_format
    )
    return decorate if function is None else decorate(function)
