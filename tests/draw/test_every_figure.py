"""Every named figure draws, at a tiny setting, without a warning, with its axes labelled."""

import io
import json
from pathlib import Path

import msgspec
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.draw.animation import ANIMATIONS
from pathlines.draw.gallery import FIGURES
from pathlines.draw.style import house_style
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.papers import Paper
from pathlines.foundation.setting import fields

TINY = {
    f"{file.parent.name}/{name}": setting
    for file in Path(__file__).parent.glob("*/tiny.json")
    for name, setting in json.loads(file.read_text()).items()
}
"""Settings at which each figure is quickly drawn, beside the other tests of its family."""


def unlabelled(axes: Axes) -> list[str]:
    """The visible axes without a label; a colour bar needs one only."""
    if not axes.axison or not axes.get_visible():
        return []
    if getattr(axes, "_colorbar", None) is not None:
        return [] if axes.get_xlabel() or axes.get_ylabel() else ["colour bar"]
    sides = (("x", axes.xaxis, axes.get_xlabel()), ("y", axes.yaxis, axes.get_ylabel()))
    return [name for name, axis, label in sides if axis.get_visible() and not label]


@pytest.mark.parametrize("name", list(FIGURES))
def test_a_figure_draws_with_labels_and_without_warnings(name):
    figure = FIGURES[name].draw(changes=TINY[name])
    assert isinstance(figure, Figure)
    assert figure.axes
    assert [(axes.get_title(loc="left"), missing) for axes in figure.axes if (missing := unlabelled(axes))] == []
    with house_style():
        figure.savefig(io.BytesIO(), format="svg")


@pytest.mark.parametrize("name", list(FIGURES))
def test_a_figure_says_what_it_shows_and_from_where(name):
    entry = FIGURES[name]
    assert isinstance(entry.paper, Paper)
    assert len(entry.caption) > 80
    assert entry.caption.endswith(".")
    assert type(entry.full) is type(entry.quick)


@pytest.mark.parametrize("entry", [*map(FIGURES.__getitem__, FIGURES), *(ANIMATIONS[n].picture for n in ANIMATIONS)])
def test_a_setting_is_within_its_own_bounds_and_says_what_it_means(entry):
    assert all(f.meaning for f in fields(type(entry.quick)))
    for setting in (entry.quick, entry.full):
        assert msgspec.convert(msgspec.to_builtins(setting), type(setting)) == setting


def test_changes_are_checked_against_the_record():
    with pytest.raises(ArgumentError, match=r"Setting `betas` of Figure .* must be an integer ≥ 1"):
        FIGURES["clustering/phase-diagram"].draw(changes={"betas": 0})


def test_every_tiny_setting_belongs_to_a_figure():
    assert set(TINY) == set(FIGURES)


def test_unlabelled_axes_are_found():
    figure = Figure()
    axes = figure.subplots()
    axes.set_xlabel("t")
    assert unlabelled(axes) == ["y"]
