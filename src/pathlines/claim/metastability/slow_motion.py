"""Energy next to the slow manifold (Dynamic metastability in the self-attention model, arXiv:2410.06833)."""

from __future__ import annotations

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.metastability.cap_theorem import Caps, cap_angles
from pathlines.claim.metastability.slow_phase import attention_model, circle_tokens
from pathlines.claim.tolerance import absolute, at_least
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import METASTABILITY
from pathlines.integrate import flow
from pathlines.limit.metastability.slow_laws import contraction_rate
from pathlines.observable.energy import energy_fraction

MOVED = 1e-3
"""Change of a rate by the motion of clusters, β²T e^{-βw}, that the tolerance has room for."""


class SlowManifold(Caps):
    """Tokens in caps, next to the slow manifold."""

    until: of.Until = 12.0


def simulate_gap(s: SlowManifold) -> Evidence:
    """E(V) − E(U): energy of the clusters at their centres of mass minus energy of the particles."""
    angles, home = cap_angles(s)
    times = np.linspace(0, s.until, 21)
    decay, lowest, highest, curves, runs = [], [], [], [], []
    for kind in s.kinds:
        run = flow(attention_model(kind, s.beta), circle_tokens(angles), times=times,
                   record=("tokens", energy_fraction), rtol=1e-11, method="dop853", form="tokens")  # fmt: skip
        gap = _collapsed_energy(run["tokens"].values, home, s.beta) - run["energy_fraction"].values
        late = len(times) // 2
        decay.append(np.log(gap[late] / gap[-1]) / (times[-1] - times[late]))
        lowest.append(float(gap.min()))
        highest.append(float((-gap).min()))
        curves.append(Curve(kind.upper(), times, gap))
        runs.append(run)
    return Evidence({"excess": lowest, "printed": highest, "decay": decay}, curves=tuple(curves), runs=tuple(runs))


def _collapsed_energy(tokens: np.ndarray, home: np.ndarray, beta: float) -> np.ndarray:
    """E of the tokens with every cap at its mean direction."""
    means = np.stack([tokens[:, home == q].mean(axis=1) for q in range(home.max() + 1)], axis=1)
    means /= np.linalg.norm(means, axis=-1, keepdims=True)
    places = means[:, home]
    cosines = np.einsum("tid,tjd->tij", places, places)
    return np.exp(beta * (cosines - 1)).mean(axis=(1, 2))


def predict_gap(s: SlowManifold) -> Evidence:
    """Never negative, and it decays at twice the slowest contraction rate while the clusters hardly move."""
    count = len(s.centres)
    turn = np.subtract.outer(s.centres, s.centres)[~np.eye(count, dtype=bool)]
    # what the motion of others changes in a rate by the end
    drift = s.beta**2 * s.until * float(np.exp(s.beta * (np.cos(turn) - 1)).max(initial=0.0))
    rates = [
        2 * min(contraction_rate(s.centres, np.full(count, 1 / count), q, s.beta, kind) for q in range(count))
        for kind in s.kinds
    ]
    moving = {"decay": "the clusters move: raise `beta` or move `centres` apart"} if drift > MOVED else {}
    return Evidence({"excess": 0.0, "printed": 0.0, "decay": rates}, undecided=moving)


_GAP_AXES = Axes("depth-time t", "E(V) − E(U)", y_scale="log")
ER_08B = claim(
    "metastability/ER-08b",
    METASTABILITY,
    "slow motion: sign of the energy difference (derived)",
    "E(V) − E(U) is positive and decays at twice the contraction rate inside clusters, 2m under USA and 2 under SA.",
    where="§3.1, slow motion (Otto and Reznikoff), sign corrected",
    models=("sa", "usa"),
    quick=SlowManifold(),
    within={
        "excess": at_least("rounding of E", slack=1e-13),
        "decay": absolute(5e-3, "β·spread² of nonlinearity in the second half of the run"),
    },
    simulate=simulate_gap,
    predict=predict_gap,
    axes=_GAP_AXES,
)

ER_08B.printed_as(
    "metastability/ER-08",
    "slow motion: sign of the energy difference, as printed",
    "Along the flow U next to the slow manifold, with V its point there, the quantity that is positive and decays is "
    "E(U) − E(V).",
    where="§3.1, slow motion (Otto and Reznikoff), sign as printed",
    within={"printed": at_least("rounding of E", slack=1e-13)},
    predict=predict_gap,
    note="The flow climbs: the slow manifold lies above.",
)
