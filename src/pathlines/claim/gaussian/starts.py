"""One model, many starts: limits on two lines, or convergence beside blow-up (arXiv:2501.18322, figures)."""

from __future__ import annotations

from typing import Annotated, Any

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.fitting import Mistake
from pathlines.claim.gaussian.reference_set import angle
from pathlines.claim.tolerance import absolute, exactly, standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import UNIFIED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.gaussian_fate import Fate, fates
from pathlines.limit.gaussian.moments import head, scaled_end
from pathlines.limit.gaussian.softmax import isotropic_angles, profile_error, rank_one_profiles
from pathlines.model.gaussian.closure import SoftmaxGaussian
from pathlines.model.gaussian.examples import EXAMPLES, disc_of_covariances

KINDS = ("converged", "blow-up", "to-zero")
TWO_LINES, BOTH = EXAMPLES["two-lines"], EXAMPLES["both"]


def _rows(matrix: Any) -> of.Matrix:
    return tuple(tuple(row) for row in np.asarray(matrix).tolist())


class Disc(Setting):
    """Covariances on a disc under one head."""

    V: of.ValueMatrix = _rows(TWO_LINES.value)
    A: of.QueryKey = _rows(TWO_LINES.score)
    side: Annotated[of.Count, means("starts along the diameter of the disc")] = 10
    rtol: of.Rtol = 1e-8


def _found(s: Disc) -> list[Fate]:
    factors = np.linalg.cholesky(disc_of_covariances(s.side, 1.0))
    return fates(SoftmaxGaussian(s.V, s.A), factors, rtol=s.rtol)


def _spread(directions: list[Any], targets: Any) -> tuple[float, list[int]]:
    """(largest distance of a direction from the nearest target in degrees, how many go to each of up to two)."""
    angles = np.array([angle(u) for u in directions])
    if len(angles) == 0 or len(targets) == 0:
        return (0.0 if len(angles) == 0 else 180.0), [0, 0]
    away = np.abs((angles[:, None] - np.asarray(targets) + 90) % 180 - 90)
    return float(away.min(axis=1).max()), np.bincount(away.argmin(axis=1), minlength=2).tolist()


def _blow_up_angles(s: Disc) -> list[float]:
    return [angle(u) for _, u in rank_one_profiles(s.V, s.A)]


def simulate(s: Disc) -> Evidence:
    """Classes, directions and ranks of all starts."""
    found = _found(s)
    ends = {k: [f.direction for f in found if f.kind == k] for k in KINDS}
    away, counts = _spread(ends["converged"], isotropic_angles(s.A))
    away_blow, _ = _spread(ends["blow-up"], _blow_up_angles(s))
    kinds = [len(ends[k]) for k in KINDS]
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


def predict(s: Disc) -> Evidence:
    """Directions uᵀAu = 0 for limits, the extremal eigenvector of V for blow-ups; classes and counts by SciPy."""
    lines = isotropic_angles(s.A)
    found = [scaled_end([head(s.V, s.A)], start) for start in disc_of_covariances(s.side, 1.0)]
    exploded, vanished = sum(g > 20 for g, _ in found), sum(g < -12 for g, _ in found)
    staying = [u for growth, u in found if -12 <= growth <= 20]
    values = {
        "away_from_lines": 0.0,
        "away_from_profile": 0.0 if not exploded or _blow_up_angles(s) else None,
        "largest_rank": 1.0,
        "undecided": 0.0,
        "on_each_line": _spread(staying, lines)[1],
        "kinds": [len(staying), exploded, vanished],
    }
    curves = tuple(Curve(f"uᵀAu = 0 at {x:.4f}°", [0, len(found) - 1], [x, x]) for x in lines)
    shares = [profile_error(s.V, v) for v, _ in rank_one_profiles(s.V, s.A)]
    error = max(0.01, np.degrees(max(shares, default=0.0)))
    return Evidence(values, {"away_from_profile": error}, curves=curves, source="closed form; counts by SciPy")


_WITHIN = {
    "away_from_lines": absolute(1e-4, "degrees; the scale-free speed is below 1e-10 where a run stops"),
    "largest_rank": exactly("of the limits"),
    "undecided": exactly("starts of any other class"),
    "on_each_line": exactly("starts per line; the grid is fixed"),
    "kinds": exactly("classes"),
}
_PROFILE = standard_errors(5.0, "0.05°, or five times the share e^(-25|v-v'|/2|v|) of the next eigenvector")
_AXES = Axes("starts, sorted", "direction of the leading axis (degrees)")

claim(
    "gaussian/C22",
    UNIFIED,
    "two lines: every start converges to one of two directions",
    "In the figure with two lines every covariance of the disc converges to rank one along one of the two directions "
    "with uᵀAu = 0: of 60 starts 33 at 172.4014° and 27 at 121.8560°.",
    where="figure of convergence to two lines",
    models=("gaussian-softmax",),
    quick=Disc(),
    within=_WITHIN,
    simulate=simulate,
    predict=predict,
    axes=_AXES,
)

claim(
    "gaussian/C23",
    UNIFIED,
    "both: convergence or blow-up, as the start decides",
    "With another V, 56 of the same 60 starts converge to the line at 172.4014° and 4 blow up along 78.653°, the "
    "eigenvector of the negative eigenvalue of V.",
    where="figure of convergence or blow-up, as the start decides",
    models=("gaussian-softmax",),
    quick=Disc(V=_rows(BOTH.value)),
    within={**_WITHIN, "away_from_profile": _PROFILE},
    simulate=simulate,
    predict=predict,
    axes=_AXES,
    mistakes=(
        Mistake(
            "SoftmaxGaussian",
            "V off by {:g} beside its diagonal",
            lambda right, size: lambda V, A: right(np.asarray(V) + size * np.array([[0, 1], [1, 0]]), A),
            (1e-3, 0.01),
        ),
        Mistake(
            "drift",
            "a drift {:.0%} too large",
            lambda right, size: lambda *a: jax.tree.map(lambda v: (1 + size) * v, right(*a)),
            (0.1, 0.5),
        ),
    ),
)
