"""One cloud over depth: its ellipses, eigenvalues and θ (A Unified Perspective, arXiv:2501.18322)."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import numpy as np
from matplotlib.figure import Figure

from pathlines.draw.figures.gaussian.cloud_drawing import ellipse
from pathlines.draw.gallery import picture
from pathlines.draw.style import COLOURS, HEAT, MUTED, THEORY, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import UNIFIED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.integrate.gaussian_fate import Fate, fates
from pathlines.integrate.run import Run
from pathlines.limit.gaussian.context import CRITICAL
from pathlines.limit.gaussian.matrices import factor
from pathlines.model.gaussian.closure import GaussianClosure, gaussian_closure, sigma_points
from pathlines.model.gaussian.examples import EXAMPLES

_BLOW_UP = EXAMPLES["blow-up"]


def cloud_run(model: GaussianClosure, covariance: Any, fate: Fate, frames: int) -> Run:
    """A run to where its fate shows: just short of T*, or until little happens."""
    if fate.blow_up_time is not None:
        times = fate.blow_up_time * (1 - np.geomspace(1.0, 1e-3, frames))
    else:
        speed = abs(2 * float(np.linalg.norm(np.asarray(model.value), axis=(1, 2)).sum())) * float(np.trace(covariance))
        times = np.concatenate([[0.0], np.geomspace(1e-2, 30.0, frames - 1) * min(10.0, 3 / max(speed, 1e-3))])
    record = ("covariance", "covariance_eigenvalues", "theta")
    return flow(model, sigma_points(np.zeros(len(covariance)), covariance), times=times, record=record,
                method="rodas5p", rtol=1e-8)  # fmt: skip


class Cloud(Setting):
    """Weights and start of a Gaussian cloud."""

    kind: of.ClosureKind = "softmax"
    value: of.ValueMatrix = _BLOW_UP.value
    query: Annotated[of.Matrix, means("queries", "Q")] = _BLOW_UP.query
    key: Annotated[of.Matrix, means("keys", "K")] = _BLOW_UP.key
    covariance: of.Covariance = _BLOW_UP.start
    scale: Annotated[float, means("factor of the scores ⟨Qx, Ky⟩")] = _BLOW_UP.scale
    eps: of.Epsilon = 1.0
    prefactor: Annotated[Literal["1/eps", "1"], means("factor of the Sinkhorn field")] = "1/eps"
    frames: of.Records = 60
    ellipses: of.Ellipses = 9


@picture(
    "gaussian/fate",
    UNIFIED,
    "A centred Gaussian cloud over depth. Left: its one-sigma ellipses, from light (start) to dark, drawn in the first "
    "two coordinates and scaled to unit trace. Middle: eigenvalues of its covariance. Right: the strength of attention "
    "θ = |Σ^½AΣ^½|; above the dashed line 1/√2 a finite context follows this picture more slowly than n^{-1/2}.",
    quick=Cloud(),
)
def fate_over_depth(s: Cloud) -> Figure:
    """Ellipses, eigenvalues, θ."""
    options = {"eps": s.eps, "prefactor": s.prefactor} if s.kind == "sinkhorn" else {}
    matrices = (np.asarray(m, float) for m in (s.value, s.query, s.key))
    model = gaussian_closure(s.kind, *matrices, scale=s.scale, **options)
    (fate,) = fates(model, factor("covariance", s.covariance))
    run = cloud_run(model, s.covariance, fate, s.frames)
    figure, ((left, middle, right),) = new_figure(1, 3, width=3.1, height=2.9)
    chosen = np.unique(np.linspace(0, len(run.time) - 1, s.ellipses).round().astype(int))
    for k in chosen:
        cov = run["covariance"].values[k]
        left.add_patch(ellipse(cov[:2, :2] / np.trace(cov), ec=HEAT(0.25 + 0.75 * k / chosen[-1]), lw=1.4))
    left.set(
        aspect="equal", xlim=(-1.1, 1.1), ylim=(-1.1, 1.1), xlabel="$x_1$", ylabel="$x_2$", title="shape over depth"
    )
    values = np.maximum(run["covariance_eigenvalues"].values, 1e-300)
    for k in range(values.shape[1]):
        middle.plot(run.time, values[:, k], color=COLOURS[k % len(COLOURS)], label=rf"$\lambda_{k + 1}$")
    middle.set(
        yscale="log", xlabel="depth-time $t$", ylabel=r"eigenvalues of $\Sigma$", title=f"{fate.kind}, rank {fate.rank}"
    )
    right.plot(run.time, run["theta"].values, color=COLOURS[0])
    right.axhline(CRITICAL, color=THEORY, ls=(0, (4, 2.2)), lw=1.2)
    right.set(yscale="log", xlabel="depth-time $t$", ylabel=r"$\theta$", title="strength of attention")
    if fate.blow_up_time is not None:
        for axes in (middle, right):
            axes.axvline(fate.blow_up_time, color=COLOURS[1], lw=1.0)
            axes.annotate("$T^*$", (fate.blow_up_time, 0.55), xycoords=("data", "axes fraction"), color=COLOURS[1],
                          ha="right", xytext=(-3, 0), textcoords="offset points")  # fmt: skip
    else:
        for axes in (middle, right):
            axes.set_xscale("symlog", linthresh=max(float(run.time[1]), 1e-6))
    middle.legend(loc="best")
    for axes in (middle, right):
        axes.grid(True, which="minor", axis="y", color=MUTED, alpha=0.1)
    return figure
