"""Open: the perceptron variant in R^d (arXiv:2305.05465, discussion of feed-forward layers).

    z_i' = W σ( V Σ_j P_ij (z_j − z_i) ),   V = I,  W ≻ 0

No theorem is known to us. The natural question: do tokens still converge to finitely many leaders, as without Wσ?
"""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering.emergence_direct import Cube, cube_start, softmax
from pathlines.claim.tolerance import absolute, at_most
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers import EMERGENCE
from pathlines.foundation.setting import means
from pathlines.integrate import Run, flow
from pathlines.integrate.observe import positions
from pathlines.model.clustering.rescaled import RescaledAttention
from pathlines.model.parts.perceptron import Perceptron
from pathlines.observable.analysis import hull_shrink

SHOWN = 6


class PerceptronVariant(Cube):
    """A perceptron after attention, in several starts."""

    activation: of.Activation = "tanh"
    outer: Annotated[of.Vector, means("diagonal of the outer weights, all positive", "W")] = (1.0, 1.0)
    starts: of.Starts = 5
    until: of.Until = 13.0
    window: Annotated[of.Positive, means("length of each of two last pieces", unit="depth-time")] = 0.5
    records: of.Records = 27
    rtol: of.Rtol = 1e-9
    method: Annotated[str, means("Runge-Kutta method of the engine")] = "rk45"


def runs_of(s: PerceptronVariant) -> list[Run]:
    """Independent starts, before scores lose their digits; a method with positive weights where velocities are ≥ 0."""
    require(2 * s.window < s.until, "window", f"be less than half of until = {s.until:g}", s.window)
    require(len(s.outer) == s.d and min(s.outer) > 0, "outer", f"hold {s.d} positive numbers", s.outer)
    model = RescaledAttention(
        np.eye(s.d), perceptron=Perceptron(np.diag(s.outer), np.eye(s.d), activation=s.activation)
    )
    options: dict[str, Any] = {"times": _times(s), "record": positions, "rtol": s.rtol, "method": s.method}
    return [flow(model, cube_start(s, 1000 * s.seed + k), **options) for k in range(s.starts)]


def _times(s: PerceptronVariant) -> np.ndarray:
    """Up to ``until``, and the three times that late rates are read from."""
    return np.union1d(np.linspace(0, s.until, s.records), s.until - s.window * np.array([2.0, 1.0]))


def _late(s: PerceptronVariant, values: np.ndarray) -> np.ndarray:
    """Rates of decay across the last two windows; NaN once the values are lost in rounding."""
    logs = np.log(np.maximum(values[np.searchsorted(_times(s), s.until - s.window * np.arange(2, -1, -1))], 1e-300))
    return -np.diff(logs) / s.window if values[-1] > 1e-13 else np.full(2, np.nan)


def _to_leader(z: np.ndarray) -> float:
    """max_i |z_i − z_l(i)|, l(i) = argmax_j <z_i, z_j>: zero when every token is where its leader is."""
    return float(np.linalg.norm(z - z[np.argmax(z @ z.T, axis=1)], axis=1).max())


def _upward_pull(z: np.ndarray, t: float) -> float:
    """The largest coordinate of Σ_j P_ij z_j − z_i."""
    return float((softmax(np.exp(2 * t) * z @ z.T) @ z - z).max())


def _follower_rates(s: PerceptronVariant, path: np.ndarray) -> np.ndarray:
    """Decay rates over w_k of the coordinates k of z_l − z_i that pull upward, across the last window.

    For tokens i that listen to one leader l alone, and leaders that listen to themselves alone: these are at rest.
    """
    at = np.searchsorted(_times(s), [s.until - s.window, s.until])
    P = [softmax(np.exp(2 * t) * z @ z.T) for t, z in zip(_times(s)[at], path[at], strict=True)]
    leader = P[1].argmax(axis=1)
    alone = np.minimum(*(p[np.arange(len(p)), leader] for p in P)) > 1 - 1e-12
    follows = alone & alone[leader] & (leader[leader] == leader) & (leader != np.arange(len(leader)))
    before, after = (z[leader[follows]] - z[follows] for z in path[at])
    rate = np.log(np.where(after > 1e4 * s.rtol, before / after, np.nan)) / s.window / np.asarray(s.outer)
    return rate[np.isfinite(rate)]


def _slack(s: PerceptronVariant) -> float:
    """One hundredth of the box."""
    return 0.005 * (s.high - s.low)


class Paths:
    """Runs that came to their end, and what is read off them."""

    def __init__(self, s: PerceptronVariant) -> None:
        self.runs = runs_of(s)
        self.done = [run for run in self.runs if run.outcome == "completed"]
        self.z = [run["tokens"].values for run in self.done]
        self.farthest = [np.array([_to_leader(z) for z in path]) for path in self.z]
        self.pull = [
            np.array([_upward_pull(z, t) for z, t in zip(path, run.time, strict=True)])
            for path, run in zip(self.z, self.done, strict=True)
        ]
        stalled = len(self.runs) - len(self.done)
        self.stalled = f"{stalled} of {len(self.runs)} runs stalled: a smaller until or box" if stalled else ""

    def curves(self) -> tuple[Curve, ...]:
        """Distance to the leader in the first runs."""
        pairs = list(zip(self.done, self.farthest, strict=True))[:SHOWN]
        return tuple(Curve(f"start {k}", run.time, np.maximum(f, 1e-17)) for k, (run, f) in enumerate(pairs))


def simulate_tanh(s: PerceptronVariant) -> Evidence:
    """Distance to the leader at the end with its late rate, and growth of the hull."""
    paths = Paths(s)
    distance = np.array([f[-1] for f in paths.farthest])
    rates = np.array([_late(s, f) for f in paths.farthest]).reshape(-1, 2)
    undecided = dict.fromkeys(("distance", "rate"), paths.stalled) if paths.stalled else {}
    if distance.max(initial=0.0) > _slack(s):
        more = np.log(distance.max() / _slack(s)) / min(s.outer)
        undecided["distance"] = f"until={s.until + more:.3g} or more, if tokens go on like e^{{-wt}}"
    if np.any(np.abs(np.diff(rates, axis=1)) > SETTLED):
        undecided["rate"] = "a larger until: the rate still changes"
    values = {"distance": distance, "rate": rates[:, -1], "hull_growth": np.array([hull_shrink(z) for z in paths.z])}
    return Evidence(values, curves=paths.curves(), runs=tuple(paths.runs), undecided=undecided)


def simulate_relu(s: PerceptronVariant) -> Evidence:
    """How far from its leader a token will stay, decrease of coordinates, upward pulls that are left, and their rates.

    A coordinate has at most its pull left to go (it fades like e^{−wt}), a leader no more than another token.
    """
    paths = Paths(s)
    left = [2 * np.sqrt(s.d) * pull[-1] for pull in paths.pull]
    distance = max((f[-1] - rest for f, rest in zip(paths.farthest, left, strict=True)), default=0.0)
    pulls = np.array([pull[-1] for pull in paths.pull])
    rates = np.concatenate([_follower_rates(s, path) for path in paths.z])
    undecided = dict.fromkeys(RELU_NAMES, paths.stalled) if paths.stalled else {}
    if distance > _slack(s):
        undecided.pop("distance", None)
    elif max(left, default=0.0) > _slack(s):
        undecided["distance"] = "a larger until: tokens still move"
    if np.any(pulls > _pull_bound(s)) and np.all([_late(s, p)[-1] > 0.25 * min(s.outer) for p in paths.pull]):
        undecided["upward_pull"] = "a larger until: pulls still fade"
    values = {
        "distance": distance,
        "decrease": np.array([-np.diff(z, axis=0).min() for z in paths.z]),
        "upward_pull": pulls,
        "follower_rate": np.array([rates.min(), rates.max()]) if rates.size else np.full(2, np.nan),
    }
    return Evidence(values, curves=paths.curves(), runs=tuple(paths.runs), undecided=undecided)


RELU_NAMES = ("distance", "decrease", "upward_pull", "follower_rate")


def _pull_bound(s: PerceptronVariant) -> float:
    """One twentieth of the box."""
    return float(0.05 * (s.high - s.low))


def predict(s: PerceptronVariant) -> Evidence:
    """Everything settles: at leaders, or (ReLU) wherever nothing pulls upward."""
    bounds = {"distance": _slack(s), "decrease": 0.0, "hull_growth": 0.0}
    rates = {"rate": float(min(s.outer)), "follower_rate": 1.0}
    return Evidence({**bounds, **rates, "upward_pull": _pull_bound(s)}, source="conjectured statement")


STIFF = (
    "Tokens can come to rest between two leaders, where attention is divided by e^{2t}-steep scores: beyond "
    "e^{2t}·(box)² ≈ 10⁶ an explicit method stalls, and a run that stalls decides nothing."
)
SETTLED = 1e-3
"""A late rate is read off when it changes by less than this between the last two windows."""
AXES = Axes("depth-time t", "largest distance of a token to its leader", y_scale="log")

claim(
    "clustering/OP-01",
    EMERGENCE,
    "perceptron variant, tanh (open)",
    "With V = I, W = I and σ = tanh every token still converges to one of finitely many leaders, like e^{−t}.",
    where="variant with a perceptron: no theorem in the paper",
    models=("rescaled",),
    quick=PerceptronVariant(),
    full=PerceptronVariant(starts=40),
    within={
        "distance": at_most("one hundredth of the box; the rate says that it goes on"),
        "rate": absolute(
            2 * SETTLED, "tanh is the identity near 0, so the smallest entry of W decides; settled to this"
        ),
    },
    simulate=simulate_tanh,
    predict=predict,
    axes=AXES,
    note="Measured, not proved. The hull is not monotone (see OP-01b), so the proof for V = I does not carry over.",
)

claim(
    "clustering/OP-01b",
    EMERGENCE,
    "perceptron variant, tanh: the hull (open)",
    "With V = I, W = I and σ = tanh the convex hull of z still never grows.",
    where="variant with a perceptron: no theorem in the paper",
    models=("rescaled",),
    quick=PerceptronVariant(),
    within={"hull_growth": at_most("solver tolerance", slack=1e-6)},
    simulate=simulate_tanh,
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
    where="variant with a perceptron: no theorem in the paper",
    models=("rescaled",),
    quick=PerceptronVariant(low=-1.0, high=1.0, activation="relu", until=7.0, rtol=1e-8, method="rk23"),
    within={"distance": at_most("one hundredth of the box, for the token that will stay farthest from its leader")},
    simulate=simulate_relu,
    predict=predict,
    expected="refuted",
    corrected_by="clustering/OP-01d",
    axes=AXES,
    note=STIFF,
)

claim(
    "clustering/OP-01d",
    EMERGENCE,
    "perceptron variant, ReLU: what converges (derived)",
    "With V = I, diagonal W > 0 and σ = ReLU no coordinate ever decreases, so every token converges; it stops when "
    "nothing pulls it upward any more, in general far from any leader. Below a leader at rest coordinate k is "
    "approached like e^{−w_k t}.",
    where="derived; variant with a perceptron, no theorem in the paper",
    models=("rescaled",),
    quick=PerceptronVariant(low=-1.0, high=1.0, activation="relu", until=7.0, rtol=1e-8, method="rk23"),
    within={
        "decrease": at_most("velocities are ≥ 0 and so are the weights of the method"),
        "upward_pull": at_most(
            "one twentieth of the box; pulls fade at the rate below unless a token changes its leader"
        ),
        "follower_rate": absolute(
            1e-3, "slowest and fastest, over w_k, of distances above 10⁴ × the solver tolerance; a few times that"
        ),
    },
    simulate=simulate_relu,
    predict=predict,
    axes=AXES,
    note=STIFF,
)
