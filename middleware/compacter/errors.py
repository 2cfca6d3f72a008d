"""Exceptions of compacter, checks of numbers, texts and functions that raise one, and notes on
other exceptions.

CompacterError
 |-- ConfigurationError        an option or argument is invalid (also a ValueError)
 |    `-- FunctionError        a function that was passed as an option failed
 |         `-- UnknownFieldError   a hook has read a field that an event does not have
 |-- SummarizerNeededError     the wrapped method parses, so it makes no summary
 |-- CompactionError           there is no summary, and no fallback (``fallback=None``)
 `-- InvalidHistoryError       a tool call or result lacks its partner (also a ValueError)

When a call is given up, the provider's own last exception is raised, never one of these.
"""

from __future__ import annotations

import contextlib
import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Never, TypeVar

if TYPE_CHECKING:
    from pydantic import ValidationError

T = TypeVar("T")


class CompacterError(Exception):
    """Base class of compacter's exceptions."""


class ConfigurationError(CompacterError, ValueError):
    """An option or argument is invalid; the message names it and the remedy."""


class FunctionError(ConfigurationError):
    """A function that was passed as an option raised an exception, which is ``__cause__``, or its
    result is unusable.

    The message names the option, and contains no text of messages.
    """


class UnknownFieldError(FunctionError, AttributeError):
    """A hook has read a field that an event does not have; the message lists the fields."""


class SummarizerNeededError(CompacterError):
    """A wrapped method only parses its replies, so it cannot be asked for a summary."""


class CompactionError(CompacterError):
    """There is no summary, and no fallback; ``__cause__`` is the reason."""


class SpendingError(CompactionError):
    """The conversation has spent what the option ``spending`` allows; the call was not made."""


class InvalidHistoryError(CompacterError, ValueError):
    """A history has a tool call without its result or a result without its call, or a snapshot
    cannot be read.

    Args:
        message: Description of the fault.
        call_id: Id of the call or result that lacks its partner; its name in Gemini's format.
        index: Position of its message in the list, or -1.
    """

    def __init__(self, message: str, *, call_id: str = "", index: int = -1) -> None:
        super().__init__(message)
        self.call_id = call_id
        """Id of the call or result that lacks its partner."""
        self.index = index
        """Position of the message in the list."""


def whole_number(name: str, value: object, *, least: int, of: str) -> int:
    """Return ``value`` if it is a whole number of at least ``least``, else raise
    ``ConfigurationError``.

    Args:
        name: Name of the argument.
        value: Its value; a bool is refused.
        least: Smallest number allowed.
        of: Unit of the number, such as ``"tokens"``.
    """
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ConfigurationError(
            f"{name} takes a whole number of {of} of at least {least}, not {value!r}"
        )
    return value


def check_text(name: str, value: object, of: str) -> None:
    """Raise ``ConfigurationError`` if ``value`` is neither ``None`` nor a text that is not blank.

    Args:
        name: Name of the argument.
        value: Its value.
        of: Values that it accepts, such as ``"a model's name"``.
    """
    if value is not None and not (isinstance(value, str) and value.strip()):
        raise ConfigurationError(f"{name} takes {of}, not {value!r}")


# Least number of tokens for an option that also accepts a share of the window: a smaller number is
# probably a share in per cent.
_LEAST_TOKENS = 100


def check_size(value: Any) -> Any:  # noqa: ANN401 - of an option
    """Check a size that may be written in two ways, and return it: a ``float`` is a share of the
    window, and an ``int`` is a number of tokens. A value that is neither a number nor a text is
    returned unchanged, for other checks to judge. Raises ``ValueError`` for a text, and for a
    number that can be neither a share nor a number of tokens.
    """
    if value is None or callable(value):
        return value
    if isinstance(value, float) and value > 1 and value.is_integer():
        value = int(value)
    is_share = isinstance(value, float) and 0 < value <= 1
    if is_share or (isinstance(value, int) and value >= _LEAST_TOKENS):
        return value
    guess = ""
    if isinstance(value, int) and value > 0:
        guess = f"; did you mean {value / 100 if value > 1 else 1.0}?"
    raise ValueError(
        "takes a share of the window such as 0.8, or a whole number of at least "
        f"{_LEAST_TOKENS} tokens{guess}"
    )


def seconds(name: str, value: object) -> float:
    """Return ``value`` if it is a number above 0, else raise ``ConfigurationError`` with the
    option's name.
    """
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float))
        or not 0 < value < float("inf")
    ):
        raise ConfigurationError(f"{name} takes a number of seconds above 0, not {value!r}")
    return float(value)


def add_note(error: BaseException, note: str) -> None:
    """Add a note to the exception of a wrapped function, unless its class prevents that."""
    with contextlib.suppress(Exception):
        error.add_note(note)


def faults_of(
    error: ValidationError,
    given: Mapping[str, object],
    takes: Mapping[str, str],
    unknown: Callable[[str], str],
) -> str:
    """Return a text for the user that names each argument which pydantic refused, and says what is
    wrong with it or which values it accepts.

    Args:
        error: Exception of pydantic.
        given: The arguments, by their names.
        takes: Description of the values that each argument accepts, by its name.
        unknown: Function that is called with a name which no argument has, and returns a hint such
            as the nearest name.
    """
    faults: dict[Any, str] = {}
    for problem in error.errors():
        name: Any = problem["loc"][0]
        value = given.get(name)
        # One of our checks may begin with the name too, as it also runs elsewhere.
        fault = str(problem.get("ctx", {}).get("error", "")).removeprefix(f"{name} ")
        if not fault:
            fault = f"takes {takes.get(name) or problem['msg']} (got {value!r})"
        if inspect.iscoroutine(value):
            value.close()
            fault += ": pass the function, without a call of it"
        is_unknown = problem["type"] == "extra_forbidden"
        # The first error of each: a value may fail to be any of several types.
        faults.setdefault(name, unknown(name) if is_unknown else f"{name}: {fault}")
    return "; ".join(faults.values())


@dataclass(frozen=True, slots=True)
class UserFunction:
    """A function that was passed as an option. It raises ``FunctionError`` for the function's
    exceptions and for unusable results.
    """

    option: str
    """Name of the option."""
    function: Callable[..., object]
    read: Callable[[Any], Any]
    """Returns the result in the expected type; raises an exception if it is unusable."""

    def __call__(self, *given: object) -> Any:  # noqa: ANN401 - of the type that ``read`` returns
        """Return the function's result, in the expected type."""
        try:
            result = self.function(*given)
        except Exception as error:
            raise FunctionError(f"{self.option} raised {type(error).__name__}") from error
        try:
            return self.read(result)
        except Exception:  # noqa: BLE001 - any exception says that it is unusable
            if inspect.iscoroutine(result):
                result.close()
            raise FunctionError(
                f"{self.option} returned {type(result).__name__}, which cannot be used"
            ) from None


# -- wrong names and arguments ---------------------------------------------------------------------


def with_hints(kind: type[T]) -> type[T]:
    """Decorate a class. An ``AttributeError`` of its objects then lists the attributes, and a
    ``TypeError`` for wrong arguments shows how the method is called.
    """
    for name, member in [*vars(kind).items()]:
        of_class = isinstance(member, classmethod)
        method = member.__func__ if of_class else member
        if inspect.isfunction(method) and (name == "__init__" or not name.startswith("_")):
            checked = _with_signature(kind, name, method, of_class=of_class)
            setattr(kind, name, classmethod(checked) if of_class else checked)
    if not hasattr(kind, "__getattr__"):
        setattr(kind, "__getattr__", _lacks)  # noqa: B010 - type checkers know the attributes
    return kind


def _with_signature(
    kind: type[Any], name: str, method: Callable[..., Any], *, of_class: bool
) -> Callable[..., Any]:
    """Return the method with errors for wrong arguments that show its signature."""

    @functools.wraps(method)
    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the method
        fault = f"{name} is a method of an object, not of its class"
        if of_class or (args and isinstance(args[0], kind)):
            try:
                return method(*args, **kwargs)
            except TypeError as error:
                # Raised in the method, it has nothing to do with the arguments of this call.
                if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                    raise
                fault = str(error)
        raise TypeError(f"{fault}; call it as {_shown(kind, name, method, of_class=of_class)}")

    if not inspect.iscoroutinefunction(method):
        return call

    @functools.wraps(method)
    async def awaited(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the method
        return await call(*args, **kwargs)

    return awaited


def _shown(kind: type[Any], name: str, method: Callable[..., Any], *, of_class: bool) -> str:
    """Return how a method is called, such as ``History(...).pin(index, *, pinned=True)``."""
    shown: str = getattr(kind, "_shown_as", kind.__name__)
    made = name == "__init__"
    signature = inspect.signature(kind if made else method)
    parameters = [each.replace(annotation=each.empty) for each in signature.parameters.values()]
    taken = inspect.Signature(parameters if made else parameters[1:])
    if made:
        return f"{shown}{taken}"
    return f"{shown}{'' if of_class else '(...)'}.{name}{taken}"


def _lacks(self: object, name: str) -> Never:
    kind = type(self).__name__
    if name.startswith("_"):  # Python and libraries look for these.
        raise AttributeError(f"{kind!r} object has no attribute {name!r}")
    names = [each for each in dir(self) if not each.startswith("_")]
    meant = difflib.get_close_matches(name, names, 1, 0.75)
    helps = f"did you mean {meant[0]}?" if meant else f"it has {', '.join(names)}"
    raise AttributeError(f"{kind} has no {name!r}; {helps}")
