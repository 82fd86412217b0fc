"""Wide shallow models: what width does, escape from a critical measure, fluctuations (arXiv:2605.10775; derived)."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.draw.gallery import picture
from pathlines.draw.style import COLOURS, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.followups import WIDE_SHALLOW
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow, layers
from pathlines.limit.followups.wide_training import flow_losses, loss_fluctuation
from pathlines.model.followups.wide_shallow import WideShallow
from pathlines.numerics.teachers import head_teacher, tanh_teacher


class Widths(Setting):
    """Students of small teachers."""

    widths: Annotated[of.Counts, means("widths of the students", "m")] = (1, 2, 4, 8, 16)
    starts: of.Starts = 6
    inputs: Annotated[of.Count, means("inputs", "N")] = 40
    steps: Annotated[of.Count, means("steps of gradient descent")] = 1500
    shares: Annotated[tuple[of.Share, ...], means("masses of the probes", "ε")] = (1.0, 0.3, 0.1, 0.0)
    until: of.Until = 100.0
    crowd: Annotated[of.Count, means("students whose early losses are compared")] = 100
    seed: of.Seed = 1


@picture(
    "followups/wide-shallow",
    WIDE_SHALLOW,
    "Gradient descent of wide shallow models. Left: final loss over that of answering zero, for students of three tanh "
    "neurons and of two attention heads, one mark for each Gaussian start, lines through the medians: narrow students "
    "get stuck, wide ones do not. Middle: an atom at a critical point that is not optimal, beside a mass ε of Gaussian "
    "neurons: the loss over its start, by the engine and by SciPy with gradients by hand (dashed); without probes "
    "nothing moves. Right: the standard deviation of an early loss over starts, and the law of influences "
    "C/√m (dashed).",
    quick=Widths(),
)
def wide_shallow(s: Widths) -> Figure:
    """Width, escape, fluctuations."""
    figure, ((first, middle, last),) = new_figure(1, 3, width=3.5, height=3.0)
    data = {"tanh": tanh_teacher(s.inputs, seed=s.seed), "heads": head_teacher(s.inputs, seed=s.seed)}
    for k, (kind, step) in enumerate((("tanh", 0.25), ("heads", 0.05))):
        _by_width(first, s, data[kind], kind, step, COLOURS[k])
    first.set(xlabel="width $m$", ylabel="final loss over that of zero", title="width", xscale="log", yscale="log")
    first.legend()
    _escapes(middle, s, data["tanh"])
    _fluctuations(last, s, data["tanh"])
    return figure


def _last(model: WideShallow, start: Any, step: float, steps: int) -> float:
    run = layers(model, start, depth=steps, step=step, every=steps, record="training_loss")
    return float(run["training_loss"].values[-1])


def _by_width(axes: Axes, s: Widths, data: Any, kind: str, step: float, colour: str) -> None:
    model, rng, middle = WideShallow(data[0], data[1], kind), np.random.default_rng(s.seed), []
    zero = 0.5 * np.mean(np.sum(data[1] ** 2, axis=1))
    for m in s.widths:
        found = [_last(model, rng.standard_normal((m, model.width)), step, s.steps) / zero for _ in range(s.starts)]
        axes.plot([m] * len(found), found, "o", ms=2.5, color=colour, alpha=0.5)
        middle.append(np.median(found))
    axes.plot(s.widths, middle, color=colour, label={"tanh": "tanh neurons", "heads": "attention heads"}[kind])


def _escapes(axes: Axes, s: Widths, data: Any) -> None:
    rows, times = np.zeros((65, 5)), np.linspace(0, s.until, 60)
    rows[1:, 2:] = np.random.default_rng(s.seed).standard_normal((64, 3))
    for k, share in enumerate(s.shares):
        masses = np.array([1 - share, *np.full(64, share / 64)])
        run = flow(WideShallow(data[0], data[1], multiplicities=masses), rows, times=times, record="training_loss")
        losses, theory = run["training_loss"].values, flow_losses(data[0], data[1], rows, times, masses, 1e-7)
        axes.semilogy(times, losses / losses[0], color=COLOURS[k], label=f"ε = {share:g}")
        theory_line(axes, times, theory / theory[0], None)
    axes.set(xlabel="mean-field time $t$", ylabel="$L/L_0$", title="escape")
    axes.legend(ncols=2, loc="upper right", bbox_to_anchor=(1, 0.93))


def _fluctuations(axes: Axes, s: Widths, data: Any) -> None:
    model, rng, widths = (
        WideShallow(data[0], data[1]),
        np.random.default_rng((s.seed, 1)),
        np.array([m for m in s.widths if m > 3]),
    )
    spread = [
        np.std([_last(model, rng.standard_normal((m, 5)), 0.6, 3) for _ in range(s.crowd)], ddof=1) for m in widths
    ]
    error = spread / np.sqrt(2 * s.crowd)
    axes.errorbar(widths, spread, 2 * error, fmt="o", ms=3, color=COLOURS[0], label="over starts")
    constant = loss_fluctuation(data[0], data[1], rng.standard_normal((4000, 5)), 0.6, 3)
    theory_line(axes, widths, constant / np.sqrt(widths), "$C/\\sqrt{m}$")
    axes.set(xlabel="width $m$", ylabel="deviation of the loss", title="fluctuations", xscale="log", yscale="log")
    axes.set_xticks(widths, [f"{m}" for m in widths], minor=False)
    axes.set_xticks([], minor=True)
    axes.legend()
