"""The times of a bench: problems down the page and milliseconds across, or milliseconds over the number of tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, GRID, INK, MUTED, house_style
from pathlines.sweep.bench.machine import Machine
from pathlines.sweep.bench.measure import Result
from pathlines.sweep.bench.report import Report

SAME = {
    "native series": "native",
    "portable series": "portable",
    "PyTorch bmm": "PyTorch eager",
    "flow DOP853": "automatic, DOP853",
}
"""One mark for one idea: the legend of all panels names each once."""

MARKS: dict[str, dict[str, Any]] = {
    "automatic": {"marker": "D", "color": COLOURS[0], "ms": 6.5, "zorder": 6},
    "automatic, DOP853": {"marker": "D", "color": COLOURS[0], "mfc": "white"},
    "native": {"marker": "o", "color": COLOURS[5]},
    "native dense": {"marker": "o", "color": COLOURS[5], "mfc": "white"},
    "portable": {"marker": "s", "color": COLOURS[2]},
    "NumPy": {"marker": "v", "color": COLOURS[7]},
    "PyTorch eager": {"marker": "<", "color": COLOURS[1], "mfc": "white"},
    "PyTorch SDPA": {"marker": "<", "color": COLOURS[1]},
    "KeOps": {"marker": "P", "color": COLOURS[3]},
    "FINUFFT": {"marker": "X", "color": COLOURS[4]},
    "SciPy RK45": {"marker": "^", "color": COLOURS[6]},
    "SciPy DOP853": {"marker": "^", "color": COLOURS[6], "mfc": "white"},
    "torchdiffeq": {"marker": "h", "color": COLOURS[1]},
    "diffrax": {"marker": "h", "color": COLOURS[3]},
    "exponentials alone": {"marker": "|", "color": INK, "ms": 11, "mew": 1.4},
}
"""Every method has a shape of its own besides its ink, for print and for colour blindness; ours are blue and green."""

ROW, MARGIN, WIDTH = 0.27, 0.75, 5.4
LIMITED = 1000
"""Fewer tokens are limited by the cost of a call, not by their exponentials."""

Panel = tuple[str, list[Result], Callable[[Axes, list[Result], Machine | None], None]]


def plain_ticks(axis: Axis) -> None:
    """0.2, 0.5, 1, 2 where the axis spans less than two decades, powers of ten beyond; nothing else is named."""
    low, high = sorted(axis.get_view_interval())
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if high < 100 * low else (1.0,)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}" if 1e-3 <= value <= 1e4 else f"{value:.0e}"))
    axis.set_minor_formatter(NullFormatter())


def bench_figure(report: Report) -> Figure:
    """Drifts, series and small systems; a grey bar joins our choice to the best peer."""
    panels = _panels(report.results)
    columns = 2 if len(panels) > 1 else 1
    lines = [panels[i : i + columns] for i in range(0, len(panels), columns)]
    heights = [max(_rows(p) for p in line) * ROW + MARGIN for line in lines]
    with house_style():
        figure = Figure(figsize=(WIDTH * columns, sum(heights) + 1.0), layout="constrained")
        grid = list(figure.subplots(len(lines), columns, squeeze=False, height_ratios=heights).flat)
        for axes in grid[len(panels) :]:
            axes.remove()
        for axes, (title, results, draw) in zip(grid, panels, strict=False):
            draw(axes, results, report.machine)
            axes.set_title(title)
        legend_below(figure, grid[: len(panels)], columns=4 * columns)
        name = report.machine.processor if report.machine else ""
        figure.suptitle(f"{report.date}   {name}".rstrip(), fontsize=8, color=MUTED, x=0.01, ha="left")
    return figure


def _panels(results: tuple[Result, ...]) -> list[Panel]:
    """Precisions side by side, then circle and sphere side by side."""
    found: list[Panel] = []
    for title, groups in (
        ("one drift, general (Q, K, V)", ("drift",)),
        ("small systems", ("steps", "solve", "ensemble")),
    ):
        for dtype in ("float32", "float64"):
            rows = [r for r in results if r.group in groups and r.dtype == dtype]
            found.append((f"{title}, {dtype}", rows, _problems))
    for space in ("circle", "sphere"):
        found.append((f"one drift on the {space}, Q = K = V = I", [r for r in results if r.group == space], _sizes))
    return [panel for panel in found if panel[1]]


def _rows(panel: Panel) -> int:
    return 8 if panel[2] is _sizes else max(2, len(panel[1]))


def _style(method: str) -> dict[str, Any]:
    name = SAME.get(method, method)
    mark = MARKS.get(name, {"marker": ".", "color": INK})
    return {"ls": "", "ms": 5.5, "mew": 1.1, "zorder": 4, "label": name, **mark}


def _problems(axes: Axes, results: list[Result], machine: Machine | None) -> None:
    """One line a problem."""
    for place, result in enumerate(results):
        peer, chosen = result.best(ours=False), result.seconds("automatic")
        if peer is not None and chosen is not None:
            axes.plot([1e3 * chosen, 1e3 * peer.seconds], [place, place], color=GRID, lw=4, zorder=1)
        for t in result.timings:
            axes.plot(1e3 * t.seconds, place, **_style(t.method))
        if machine is not None and result.group == "drift" and result.n >= LIMITED:
            axes.plot(result.n**2 / machine.exponentials[result.dtype] / 1e6, place, **_style("exponentials alone"))
    axes.set(xscale="log", xlabel="milliseconds (median)", ylim=(len(results) - 0.4, -0.6))
    plain_ticks(axes.xaxis)
    axes.set_yticks(range(len(results)), [_label(r) for r in results])
    axes.tick_params(axis="y", length=0)
    axes.grid(False, axis="y")


def _label(result: Result) -> str:
    """The case without its precision; the group only where a panel has several."""
    group, _, rest = result.case.removesuffix(f"/{result.dtype}").partition("/")
    words = rest.replace("=", " = ").replace(",", ", ")
    prefix = {"drift": "", "steps": "100 steps, ", "solve": "solve, ", "ensemble": "ensemble, "}[group]
    return prefix + words


def _sizes(axes: Axes, results: list[Result], machine: Machine | None) -> None:
    """One line a method over the number of tokens."""
    for method in dict.fromkeys(t.method for r in results for t in r.timings):
        points = [(r.n, 1e3 * s) for r in results if (s := r.seconds(method)) is not None]
        axes.plot(*zip(*points, strict=True), **{**_style(method), "ls": "-", "lw": 1.2})
    axes.set(xscale="log", yscale="log", xlabel="number of tokens $n$", ylabel="milliseconds (median)")
    plain_ticks(axes.yaxis)
