"""The figure of a claim: theory dashed over simulation, or how far each number is from its tolerance."""

from __future__ import annotations

import io
import re
from textwrap import fill
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

from pathlines.claim.base import Axes
from pathlines.claim.evaluate import Check, Line, Outcome
from pathlines.draw.style import COLOURS, GRID, INK, MUTED, THEORY, house_style, new_figure, theory_line

MANY = 7
LEGIBLE = 12
TALL = 36
"""Letters that fit beside a panel."""
BESIDE = 4
"""Curves above this number have their legend beside the panel."""


def claim_figure(outcome: Outcome, axes: Axes) -> Figure:
    """One panel for each panel name of the curves; without curves, the deviations."""
    with house_style():
        if not outcome.lines:
            return _deviations(outcome.checks)
        panels = list(dict.fromkeys(line.panel for line in outcome.lines))
        columns = min(len(panels), 3)
        width = 3.5 if columns > 1 else 6.2 if len(outcome.lines) > BESIDE else 4.6
        figure, grid = new_figure(-(-len(panels) // columns), columns, width=width, height=2.9)
        for place, panel in zip(grid.flat, panels):
            _panel(place, [line for line in outcome.lines if line.panel == panel], axes, panel)
        for place in list(grid.flat)[len(panels) :]:
            place.remove()
    return figure


def _panel(place: Any, lines: list[Line], axes: Axes, title: str) -> None:
    simulated = [line for line in lines if line.role == "simulation"]
    predicted = [line for line in lines if line.role == "theory"]
    crowded = len(simulated) > LEGIBLE
    for number, line in enumerate(simulated):
        label = line.label if not crowded else f"{line.label}, and {len(simulated) - 1} more" if number == 0 else None
        _simulation(place, line, COLOURS[number % len(COLOURS)], label)
    said = {line.label for line in simulated}
    for line in predicted:
        label = "theory" if len(predicted) > MANY or line.label in said else line.label
        style = {"marker": "x", "ls": "none", "ms": 5} if len(line.x) == 1 else {}
        theory_line(place, *_shown(line.x, line.y, axes), label, **style)
    place.set_xscale(axes.x_scale)
    place.set_yscale(axes.y_scale)
    for axis, scale in ((place.xaxis, axes.x_scale), (place.yaxis, axes.y_scale)):
        if scale == "log":
            _spread_ticks(axis)
    place.set_xlabel(axes.x)
    place.set_ylabel(fill(axes.y, TALL))
    if title:
        place.set_title(title)
    once: dict[str, Any] = {}
    for handle, label in zip(*place.get_legend_handles_labels()):
        once.setdefault(label, handle)
    if once:
        outside = len(once) > BESIDE
        where = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if outside else {"loc": "best"}
        place.legend(list(once.values()), list(once), fontsize=7, **where)


def _spread_ticks(axis: Any) -> None:
    """Labels at 1, 2, 5 of each decade where an axis shows hardly more than one: all nine would run into each other."""
    low, high = axis.get_view_interval()
    if high < 30 * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axis.set_minor_formatter(NullFormatter())


def _shown(x: list[float], y: list[float], axes: Axes) -> tuple[np.ndarray, np.ndarray]:
    """Points that a logarithmic axis can show."""
    u, v = np.asarray(x, float), np.asarray(y, float)
    keep = np.isfinite(u) & np.isfinite(v)
    keep &= (u > 0) | (axes.x_scale != "log")
    keep &= (v > 0) | (axes.y_scale != "log")
    return u[keep], v[keep]


def _simulation(place: Any, line: Line, colour: str, label: str | None) -> None:
    x, y = np.asarray(line.x, float), np.asarray(line.y, float)
    few = len(x) <= 12
    place.plot(x, y, color=colour, label=label, marker="o" if few else None, ms=4, lw=1.0 if few else 1.7, alpha=0.9)
    if line.error is not None:
        error = np.asarray(line.error, float)
        if few:
            place.errorbar(x, y, 2 * error, fmt="none", ecolor=colour, elinewidth=1)
        else:
            place.fill_between(x, y - 2 * error, y + 2 * error, color=colour, alpha=0.2, lw=0)


def _deviations(checks: list[Check]) -> Figure:
    """Each compared number as a dot at error/tolerance; left of one agrees."""
    names, ratios = [], []
    for check in checks:
        if check.error is None:
            continue
        error, allowed = np.ravel(check.error).astype(float), np.ravel(check.tolerance).astype(float)
        ratio = np.abs(error) / np.where(allowed > 0, allowed, 1.0)
        names += [check.quantity + (f" {i + 1}" if len(ratio) > 1 else "") for i in range(len(ratio))]
        ratios += list(np.clip(ratio, 1e-6, 1e6))
    names, ratios = names[:24], ratios[:24]
    figure, grid = new_figure(1, 1, width=4.6, height=0.9 + 0.17 * max(1, len(names)))
    place = grid[0][0]
    place.axvspan(1e-7, 1, color=GRID, alpha=0.45, lw=0)
    place.axvline(1, color=THEORY, ls=(0, (4, 2.2)), lw=1.2)
    place.scatter(
        ratios, range(len(names)), s=22, color=[COLOURS[0] if r <= 1 else COLOURS[1] for r in ratios], zorder=3
    )
    place.set_xscale("log")
    place.set_xlim(3e-7, max(10.0, 3 * max(ratios, default=1.0)))
    place.set_yticks(range(len(names)), names, color=INK)
    place.set_ylim(len(names) - 0.5, -0.5)
    place.set_xlabel("error over tolerance (agrees left of the dashed line)")
    place.tick_params(colors=MUTED)
    return figure


def inline_svg(figure: Figure) -> str:
    """The figure as SVG for a page: inks follow the page's colours in light and dark."""
    buffer = io.StringIO()
    with house_style():
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    for ink, variable in ((INK, "--ink"), (THEORY, "--ink"), (MUTED, "--muted"), (GRID, "--grid")):
        text = re.sub(re.escape(ink), f"var({variable})", text, flags=re.IGNORECASE)
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    return _unique_ids(text)


def _unique_ids(text: str) -> str:
    """Several figures on one page must not share element ids."""
    tag = f"f{abs(hash(text)) % 10**9}"
    text = re.sub(r'\bid="([^"]+)"', rf'id="{tag}\1"', text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{tag}\1"', text)
    return re.sub(r"url\(#([^)]+)\)", rf"url(#{tag}\1)", text)
