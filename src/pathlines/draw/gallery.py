"""Named figures of the papers: one function each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Generic

import msgspec
from matplotlib.figure import Figure

from pathlines.draw.style import house_style
from pathlines.foundation.errors import of_kind
from pathlines.foundation.papers import Paper
from pathlines.foundation.registry import Registry
from pathlines.foundation.setting import S, Setting, changed


class Picture(msgspec.Struct, Generic[S], frozen=True):
    """A figure that can be drawn again by anyone: setting in, Matplotlib figure out.

    ``quick`` and ``full`` are two settings of one record.
    """

    name: str
    paper: Paper
    caption: str
    quick: S
    full: S
    make: Callable[[S], Figure]

    def __post_init__(self) -> None:
        for name, size in (("quick", self.quick), ("full", self.full)):
            of_kind(name, size, Setting, f"a record of settings (of figure `{self.name}`)")

    def setting(self, size: str = "quick", changes: Mapping[str, Any] | None = None) -> S:
        """The setting of that size with some fields changed; unknown names and what is not allowed are errors."""
        return changed(f"Figure `{self.name}`", self.full if size == "full" else self.quick, changes)

    def draw(self, size: str = "quick", changes: Mapping[str, Any] | None = None) -> Figure:
        """Compute and draw."""
        with house_style():
            return self.make(self.setting(size, changes))


FIGURES: Registry[Picture[Any]] = Registry("figure", "pathlines.draw.figures")


def picture(
    name: str, paper: Paper, caption: str, *, quick: S, full: S | None = None
) -> Callable[[Callable[[S], Figure]], Picture[S]]:
    """Register a function from a setting to a figure; without ``full`` it has one size."""

    def wrap(make: Callable[[S], Figure]) -> Picture[S]:
        return FIGURES.register(name, Picture(name, paper, caption, quick, quick if full is None else full, make))

    return wrap
