"""Named figures of the papers: one function each."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
from matplotlib.figure import Figure

from pathlines.draw.style import house_style
from pathlines.foundation.papers import Paper
from pathlines.foundation.registry import Registry
from pathlines.foundation.setting import changed_setting


class Picture(msgspec.Struct, frozen=True):
    """A figure that can be drawn again by anyone: setting in, Matplotlib figure out."""

    name: str
    paper: Paper
    caption: str
    quick: dict[str, Any]
    full: dict[str, Any]
    make: Callable[[Any], Figure]

    def setting(self, size: str = "quick", changes: dict[str, Any] | None = None) -> dict[str, Any]:
        """The setting of that size with some entries changed."""
        return changed_setting(
            f"Figure `{self.name}`", {**self.quick, **(self.full if size == "full" else {})}, changes
        )

    def draw(self, size: str = "quick", changes: dict[str, Any] | None = None) -> Figure:
        """Compute and draw."""
        with house_style():
            return self.make(SimpleNamespace(**self.setting(size, changes)))


FIGURES: Registry[Picture] = Registry("figure", "pathlines.draw.figures")


def picture(
    name: str, paper: Paper, caption: str, *, quick: dict[str, Any], full: dict[str, Any] | None = None
) -> Callable[[Callable[[Any], Figure]], Picture]:
    """Register a function from a setting to a figure."""

    def wrap(make: Callable[[Any], Figure]) -> Picture:
        return FIGURES.register(name, Picture(name, paper, caption, quick, full or {}, make))

    return wrap
