"""The house style: quiet axes, colour-blind safe inks, vector output."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import matplotlib as mpl
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

from pathlines.foundation.files import write_whole

INK = "#1f2328"
MUTED = "#6e7781"
GRID = "#d8dee4"
COLOURS = ("#0b62a8", "#d1495b", "#2a9d6f", "#e09f3e", "#7a4fa3", "#3aa6b9", "#8c5a3c", "#59636e")
"""Distinguishable under the common colour-vision deficiencies and in print; blue and red first."""

THEORY = "#111111"

HEAT = LinearSegmentedColormap.from_list(
    "pathlines", ["#f7fafc", "#c5dced", "#7db3d6", "#2f7fb8", "#0b4f8a", "#062b52"]
)
"""Sequential, monotone in lightness."""

_STYLE: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9,
    "axes.labelcolor": INK,
    "axes.edgecolor": MUTED,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(color=COLOURS),
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "lines.linewidth": 1.6,
    "lines.solid_capstyle": "round",
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.bbox": "tight",
    "savefig.dpi": 200,
    "svg.fonttype": "path",
    "svg.hashsalt": "pathlines",
    "pdf.fonttype": 42,
}


@contextmanager
def house_style() -> Iterator[None]:
    """Draw inside this context; global Matplotlib settings are left as they were."""
    with mpl.rc_context(_STYLE):
        yield


def save_figure(figure: Figure, path: Path | str) -> None:
    """Write a figure in the house style (fonts, bounding box and resolution are decided when saving)."""
    write_whole(path, figure_bytes(figure, Path(path).suffix))


def figure_bytes(figure: Figure, suffix: str) -> bytes:
    """The file of a figure in the house style, in memory."""
    drawn = io.BytesIO()
    with house_style():
        figure.savefig(drawn, format=suffix.removeprefix(".") or None)
    return drawn.getvalue()


def new_figure(
    rows: int = 1, columns: int = 1, width: float = 3.4, height: float = 2.6, **kwargs: Any
) -> tuple[Any, ...]:
    """A figure of rows × columns panels (inches per panel) and its axes as a list of rows."""
    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **kwargs)


def theory_line(axes: Axes, x: Any, y: Any, label: str | None = "theory", **kwargs: Any) -> None:
    """Theory is always dashed and dark, over the simulation."""
    axes.plot(x, y, **{"color": THEORY, "ls": (0, (4, 2.2)), "lw": 1.3, "zorder": 5, "label": label, **kwargs})


def band(axes: Axes, x: Any, y: Any, error: Any, colour: str, label: str | None = None, multiple: float = 2.0) -> None:
    """A line with a ± ``multiple`` standard-error band."""
    axes.plot(x, y, color=colour, label=label)
    axes.fill_between(x, y - multiple * error, y + multiple * error, color=colour, alpha=0.22, lw=0)
