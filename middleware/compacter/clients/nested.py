"""Vendors' methods that take options in one argument: ``config``, ``inferenceConfig`` or a body."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compacter.call.arguments import Args, Arguments, Binding, Options


@dataclass(frozen=True, slots=True)
class Nested(Binding):
    """Reads the arguments of a function that takes some options inside one argument, a dict, such
    as ``config`` of Google's SDK.
    """

    vendors: bool = True
    place: str = ""
    """Name of the argument that has the options."""

    def members(self, kwargs: Options) -> dict[str, Any]:
        """Return the options inside that dict."""
        return {**(kwargs.get(self.place) or {})}

    def options(self, kwargs: Options) -> Options:
        """Return the arguments and the options in the mapping as one dict."""
        return {**kwargs, **self.members(kwargs)}

    def keep(self, args: Args, kwargs: Options, *, native: bool) -> Arguments:
        """Return the arguments that a request for a summary keeps, including the options inside
        that dict.
        """
        args, kept = Binding.keep(self, args, kwargs, native=native)
        members = self.members(kwargs).items()
        kept[self.place] = {
            name: value for name, value in members if self.keeps(name, value, native=native)
        }
        return args, kept
