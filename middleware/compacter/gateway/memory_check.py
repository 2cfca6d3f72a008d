"""Whether a gateway's memory answers, asked once at start: a warning then is worth more than one a
call at night.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from compacter.errors import ConfigurationError
from compacter.memory import Memory

# Key of a record that is never there.
_NO_KEY = "compacter-start"
_NEEDS_PASSWORD = ("AuthenticationError", "NoPermissionError")
_PASSWORD_TEXTS = ("NOAUTH", "WRONGPASS", "invalid password", "Authentication required")


def problem_of(memory: Memory | None, address: str) -> str | None:
    """Return a sentence if the memory does not answer; ``None`` if it does.

    Args:
        memory: The memory; ``None`` for none.
        address: Where it is, as in the settings; the sentence leaves its password out.

    Raises:
        ConfigurationError: The server refuses for want of a password, which time does not mend.
    """
    if memory is None:
        return None
    try:
        memory.find((_NO_KEY,))
    except Exception as error:  # noqa: BLE001 - a memory may raise anything
        place = without_password(address)
        said = " ".join(_chain(error))
        if any(word in said for word in (*_NEEDS_PASSWORD, *_PASSWORD_TEXTS)):
            raise ConfigurationError(
                f"memory: the server at {place} refuses the password, or wants one: "
                "redis://:PASSWORD@HOST:PORT/DB"
            ) from None
        return (
            f"the memory at {place} does not answer ({type(error).__name__}); until it does, "
            "each process remembers nothing, and summaries are made twice"
        )
    return None


def _chain(error: BaseException | None) -> list[str]:
    texts = []
    while error is not None:
        texts.append(f"{type(error).__name__}: {error}")
        error = error.__cause__ or error.__context__
    return texts


def without_password(address: str) -> str:
    """Return an address without user and password."""
    parts = urlsplit(address)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
