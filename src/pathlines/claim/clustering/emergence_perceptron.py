"""Open: the perceptron variant in R^d (arXiv:2305.05465, discussion of feed-forward layers).

    z_i' = W σ( V Σ_j P_ij (z_j − z_i) ),   V = I,  W ≻ 0

No theorem is known to us. The natural question: do tokens still converge to finitely many leaders, as without Wσ?
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering.emergence_direct import cube_start, softmax
from pathlines.claim.tolerance import absolute, at_most
from pathlines.foundation.papers import EMERGENCE
from pathlines.integrate import Run, flow
from pathlines.integrate.observe import positions
from pathlines.model import Perceptron, RescaledAttention
from pathlines.observable.analysis import hull_shrink

SHOWN = 6


def runs_of(s: Any) -> list[Run]:
    """One run a seed, before scores lose their digits."""
    model = RescaledAttention(
        np.eye(s.d), perceptron=Perceptron(np.diag(s.outer), np.eye(s.d), activation=s.activation)
    )
    times = np.linspace(0, s.until, s.records)
    return [flow(model, cube_start(s, seed), times=times, record=positions, rtol=s.rtol) for seed in s.seeds]


def _to_leader(z: np.ndarray) -> float:
    """max_i |z_i − z_l(i)|, l(i) = argmax_j <z_i, z_j>: zero when every token is where its leader is."""
    return float(np.linalg.norm(z - z[np.argmax(z @ z.T, axis=1)], axis=1).max())


def _late_rate(times: np.ndarray, distance: np.ndarray) -> float:
    """Exponential rate between the last two records; NaN once the distance is lost in rounding."""
    if distance[-1] < 1e-13:
        return float("nan")
    return float(np.log(distance[-2] / distance[-1]) / (times[-1] - times[-2]))


def _pull(z: np.ndarray, t: float) -> np.ndarray:
    """Σ_j P_ij z_j − z_i."""
    return softmax(np.exp(2 * t) * z @ z.T) @ z - z


def simulate(s: Any) -> Evidence:
    """Distance to the leader, growth of the hull, decrease of coordinates and the remaining upward pull."""
    runs = runs_of(s)
    paths = [run["tokens"].values for run in runs]
    farthest = [np.array([_to_leader(z) for z in path]) for path in paths]
    completed = all(run.outcome == "completed" for run in runs)
    return Evidence(
        {
            "distance": np.array([f[-1] for f in farthest]) if completed else np.full(len(runs), np.nan),
            "rate": np.array([_late_rate(run.time, f) for run, f in zip(runs, farthest, strict=True)]),
            "decrease": np.array([-np.diff(z, axis=0).min() for z in paths]),
            "upward_pull": np.array([_pull(z[-1], run.time[-1]).max() for z, run in zip(paths, runs, strict=True)]),
            "hull_growth": np.array([hull_shrink(z) for z in paths]),
        },
        curves=tuple(
            Curve(f"seed {seed}", run.time, np.maximum(f, 1e-17))
            for seed, run, f in zip(s.seeds[:SHOWN], runs, farthest, strict=False)
        ),
        runs=tuple(runs),
    )


def predict(s: Any) -> Evidence:
    """Everything settles: at leaders, or (ReLU) wherever nothing pulls upward."""
    zero = np.zeros(len(s.seeds))
    names = ("distance", "decrease", "upward_pull", "hull_growth")
    rate = np.full(len(s.seeds), float(min(s.outer)))
    return Evidence({**dict.fromkeys(names, zero), "rate": rate}, source="conjectured statement")


SETTING = {
    "activation": "tanh",
    "outer": [1.0, 1.0],
    "n": 20,
    "d": 2,
    "low": -5.0,
    "high": 5.0,
    "seeds": [0, 1, 2, 3, 4],
    "until": 13.0,
    "records": 27,
    "rtol": 1e-9,
}
AXES = Axes("depth-time t", "largest distance of a token to its leader", y_scale="log")
RELU = {**SETTING, "activation": "relu"}

claim(
    "clustering/OP-01",
    EMERGENCE,
    "perceptron variant, tanh (open)",
    "With V = I, W = I and σ = tanh every token still converges to one of finitely many leaders, like e^{−t}.",
    models=("rescaled",),
    quick=SETTING,
    full={"seeds": list(range(40))},
    within={
        "distance": at_most("one hundredth of the box; the rate says that it goes on", slack=0.05),
        "rate": absolute(1e-2, "tanh is the identity near 0, so the smallest entry of W decides"),
    },
    simulate=simulate,
    predict=predict,
    axes=AXES,
    note="Measured, not proved. The hull is not monotone (see OP-01b), so the proof for V = I does not carry over.",
)

claim(
    "clustering/OP-01b",
    EMERGENCE,
    "perceptron variant, tanh: the hull (open)",
    "With V = I, W = I and σ = tanh the convex hull of z still never grows.",
    models=("rescaled",),
    quick=SETTING,
    within={"hull_growth": at_most("solver tolerance", slack=1e-6)},
    simulate=simulate,
    predict=predict,
    expected="refuted",
    corrected_by="clustering/OP-01",
    axes=AXES,
    note="Only the bounding box shrinks: tanh acts by coordinates and bends straight paths.",
)

claim(
    "clustering/OP-01c",
    EMERGENCE,
    "perceptron variant, ReLU (open)",
    "With V = I, W = I and σ = ReLU every token still converges to one of finitely many leaders.",
    models=("rescaled",),
    quick=RELU,
    within={"distance": at_most("one hundredth of the box", slack=0.05)},
    simulate=simulate,
    predict=predict,
    expected="refuted",
    corrected_by="clustering/OP-01d",
    axes=AXES,
)

claim(
    "clustering/OP-01d",
    EMERGENCE,
    "perceptron variant, ReLU: what converges (derived)",
    "With V = I, diagonal W > 0 and σ = ReLU no coordinate ever decreases, so every token converges; it stops when "
    "nothing pulls it upward any more, in general far from any leader.",
    models=("rescaled",),
    quick=RELU,
    within={
        "decrease": at_most("ReLU ≥ 0 and rounding", slack=1e-12),
        "upward_pull": at_most("approach like e^{-wT} × (size), w the smallest entry of W", slack=1e-2),
    },
    simulate=simulate,
    predict=predict,
    axes=AXES,
)
