"""One model, many starts: limits on two lines, or convergence beside blow-up (arXiv:2501.18322, figures)."""

from __future__ import annotations

from typing import Any

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim, known
from pathlines.claim.gaussian.reference_set import angle
from pathlines.claim.tolerance import absolute, exactly
from pathlines.foundation.papers import UNIFIED
from pathlines.integrate.fate import Fate, fates
from pathlines.limit.gaussian.softmax import isotropic_angles, rank_one_profiles
from pathlines.model.gaussian_closure import SoftmaxGaussian
from pathlines.model.gaussian_examples import EXAMPLES, disc_of_covariances

TWO_LINES, BOTH = EXAMPLES["two-lines"], EXAMPLES["both"]
A = TWO_LINES.score.tolist()


def _found(s: Any) -> list[Fate]:
    factors = np.linalg.cholesky(disc_of_covariances(s.side, 1.0))
    return fates(SoftmaxGaussian(s.V, s.A), factors, rtol=s.rtol)


def _spread(found: list[Fate], kind: str, targets: Any) -> tuple[float, list[int]]:
    """(largest distance of a direction from the nearest target in degrees, how many starts go to each)."""
    angles = np.array([angle(f.direction) for f in found if f.kind == kind])
    if len(angles) == 0 or len(targets) == 0:
        return (0.0 if len(angles) == 0 else 180.0), [0] * len(targets)
    away = np.abs((angles[:, None] - np.asarray(targets) + 90) % 180 - 90)
    return float(away.min(axis=1).max()), np.bincount(away.argmin(axis=1), minlength=len(targets)).tolist()


def simulate(s: Any) -> Evidence:
    """Classes, directions and ranks of all starts."""
    found = _found(s)
    lines = isotropic_angles(s.A)
    blow = [angle(u) for _, u in rank_one_profiles(s.V, s.A)]
    away, counts = _spread(found, "converged", lines)
    away_blow, _ = _spread(found, "blow-up", blow)
    kinds = [sum(f.kind == k for f in found) for k in ("converged", "blow-up")]
    values = {
        "away_from_lines": away,
        "away_from_profile": away_blow,
        "largest_rank": max((f.rank for f in found if f.kind == "converged"), default=1),
        "undecided": len(found) - sum(kinds),
        "on_each_line": counts,
        "kinds": kinds,
    }
    order = np.argsort([angle(f.direction) for f in found])
    curves = (Curve("final direction", np.arange(len(found)), [angle(found[k].direction) for k in order]),)
    return Evidence(values, curves=curves)


def predict(s: Any) -> Evidence:
    """Directions uᵀAu = 0 for limits, the extremal eigenvector of V for blow-ups; counts where they were measured."""
    setting = {"side": 10, "A": A}
    two = known({"on_each_line": [27, 33], "kinds": [60, 0]}, s, setting | {"V": TWO_LINES.value}).values
    both = known({"on_each_line": [0, 56], "kinds": [56, 4]}, s, setting | {"V": BOTH.value}).values
    counts = {name: two[name] or both[name] for name in two}
    values = {"away_from_lines": 0.0, "away_from_profile": 0.0, "largest_rank": 1.0, "undecided": 0.0}
    size = len(disc_of_covariances(s.side, 1.0))
    curves = tuple(Curve(f"uᵀAu = 0 at {x:.4f}°", [0, size - 1], [x, x]) for x in isotropic_angles(s.A))
    return Evidence(values | counts, curves=curves, source="closed form; counts are reference values")


_WITHIN = {
    "away_from_lines": absolute(1e-4, "degrees; the scale-free speed is below 1e-10 where a run stops"),
    "away_from_profile": absolute(0.05, "degrees; the second axis is e^-25 to a power below one"),
    "largest_rank": exactly("of the limits"),
    "undecided": exactly("starts of any other class"),
}
_AXES = Axes("starts, sorted", "direction of the leading axis (degrees)")

claim(
    "gaussian/C22",
    UNIFIED,
    "two lines: every start converges to one of two directions",
    "In the figure with two lines every covariance of the disc converges to rank one along one of the two directions "
    "with uᵀAu = 0: of 60 starts 33 at 172.4014° and 27 at 121.8560°.",
    models=("gaussian-softmax",),
    quick={"V": TWO_LINES.value, "A": A, "side": 10, "rtol": 1e-8},
    within=_WITHIN | {"on_each_line": exactly("starts a line; the grid is fixed"), "kinds": exactly("classes")},
    simulate=simulate,
    predict=predict,
    axes=_AXES,
    note="At other settings the counts are not known and the verdict is inconclusive; directions and ranks still hold.",
)

claim(
    "gaussian/C23",
    UNIFIED,
    "both: convergence or blow-up, as the start decides",
    "With another V, 56 of the same 60 starts converge to the line at 172.4014° and 4 blow up along 78.653°, the "
    "eigenvector of the negative eigenvalue of V.",
    models=("gaussian-softmax",),
    quick={"V": BOTH.value, "A": A, "side": 10, "rtol": 1e-8},
    within=_WITHIN | {"on_each_line": exactly("starts a line; the grid is fixed"), "kinds": exactly("classes")},
    simulate=simulate,
    predict=predict,
    axes=_AXES,
)
