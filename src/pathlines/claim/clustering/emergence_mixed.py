"""A leading eigenspace F and the rest G: polytopes in F, freedom in G (arXiv:2305.05465, mixed theorem)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from scipy.linalg import expm

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering.emergence_direct import (
    Cube,
    cube_start,
    direct_rescaled,
    groups,
    left_to_go,
    limit_points,
)
from pathlines.claim.tolerance import absolute, at_most, exactly
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.papers import EMERGENCE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.integrate.observe import positions
from pathlines.limit.clustering.euclidean import ValueClass, classify_value
from pathlines.model.clustering.rescaled import RescaledAttention


def split(kind: ValueClass) -> tuple[np.ndarray, np.ndarray]:
    """Bases of F and G."""
    if kind.F is None or kind.G is None:
        raise ArgumentError(f"Setting `value` must split R^d into F ⊕ G, but does not. {kind.statement}")
    return kind.F, kind.G


def coordinates(kind: ValueClass) -> tuple[np.ndarray, np.ndarray]:
    """Rows that read off the coordinates of a vector along F and along G (oblique if F and G are)."""
    F, G = split(kind)
    rows = np.linalg.inv(np.hstack([F, G]))
    return rows[: F.shape[1]], rows[F.shape[1] :]


def rest_rate(value: np.ndarray, kind: ValueClass) -> np.ndarray:
    """Real parts of the eigenvalues of V on G."""
    _, G = split(kind)
    return np.linalg.eigvals(G.T @ value @ G).real


ARRIVED = 5e-4
"""Distance left in F up to which limits are judged."""


class Mixed(Cube):
    """A value matrix with a leading eigenspace and the rest."""

    d: of.Dimension = 3
    value: of.ValueMatrix = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, -0.5))
    until: of.Until = 12.0
    window: Annotated[of.Positive, means("length of each of two last pieces", unit="depth-time")] = 1.0
    records: of.Records = 49
    rtol: of.Rtol = 1e-11
    merge: of.Merge = 0.05


def simulate_paranormal(s: Mixed) -> Evidence:
    """Clusters of the F-parts at the end, and the late growth of the range of the G-part.

    The range is R e^{|μ|t} plus a constant from leaders at rest, which two successive differences remove.
    """
    value = np.asarray(s.value, float)
    in_F, in_G = coordinates(classify_value(value))
    late = s.until - s.window * np.array([2.0, 1.0, 0.0])
    times = np.union1d(np.linspace(0, s.until, s.records), late)
    run = flow(RescaledAttention(value), cube_start(s), times=times, record=positions, method="dop853", rtol=s.rtol)
    z = run["tokens"].values
    leading, rest = z @ in_F.T, np.linalg.norm(np.ptp(z @ in_G.T, axis=1), axis=-1)
    first, second = np.diff(rest[np.searchsorted(times, late)])
    left = left_to_go(leading, times, float(np.linalg.eigvals(value).real.max()))
    names = ("leading_part", "leading_clusters", "rest_growth")
    return Evidence(
        {
            "leading_part": leading[-1].ravel(),
            "leading_clusters": float(groups(leading[-1], s.merge).max()),
            "rest_growth": np.log(second / first) / s.window,
        },
        curves=(Curve("range of the G-part", times, rest),),
        runs=(run,),
        undecided=dict.fromkeys(names, "a larger until: tokens are on their way") if left > ARRIVED else {},
    )


def predict_paranormal(s: Mixed) -> Evidence:
    """F-parts: points of S, from the direct solution. G-part: a follower leaves its leader like e^{|μ|t}, if μ < 0."""
    value = np.asarray(s.value, float)
    kind = classify_value(value)
    names = ("leading_part", "leading_clusters", "rest_growth")
    if kind.kind not in ("paranormal", "good triple") or np.any(rest_rate(value, kind) >= 0):
        return Evidence(dict.fromkeys(names), source=kind.statement)
    in_F, in_G = coordinates(kind)
    late = direct_rescaled(cube_start(s), [s.until], value)[-1]
    points = limit_points(late @ in_F.T, s.merge)
    rate = float(-rest_rate(value, kind).min())
    times = np.linspace(0, s.until, 50)
    size = np.linalg.norm(np.ptp(late @ in_G.T, axis=0))
    return Evidence(
        {
            "leading_part": points.ravel(),
            "leading_clusters": float(len(np.unique(points, axis=0))),
            "rest_growth": rate,
        },
        curves=(Curve("e^{|μ|t}", times, size * np.exp(rate * (times - s.until))),),
        source="mixed theorem on a direct x-form solution",
    )


claim(
    "clustering/CL-32",
    EMERGENCE,
    "mixed theorem: polytope in F, free in G",
    "For paranormal V (λ > 0 on F, smaller spectral radius on G) and M ≻ 0 the F-parts of the zᵢ converge to finitely "
    "many points of the boundary of a polytope in F or to 0; the G-parts are free, for μ < 0 they spread as e^{|μ|t}.",
    where="§5, theorem on a mix of hyperplanes and polytopes",
    models=("rescaled",),
    quick=Mixed(),
    within={
        "leading_part": absolute(2 * ARRIVED, "twice the distance that followers may have left"),
        "leading_clusters": exactly("a count"),
        "rest_growth": absolute(1e-6, "attention is 0/1 to rounding by then, so the law is nearly exact"),
    },
    simulate=simulate_paranormal,
    predict=predict_paranormal,
    axes=Axes("depth-time t", "range of the G-part", y_scale="log"),
)


class Remainder(Setting):
    """Two tokens, a value matrix and a metric."""

    value: of.ValueMatrix = ((1.0, 0.0), (0.0, 0.0))
    metric: Annotated[of.Matrix, means("root of the metric M = A² of the scores", "A")] = ((1.0, 0.5), (0.5, 1.0))
    start: Annotated[of.Matrix, means("tokens at the start", "x(0)")] = ((1.0, 0.5), (0.4, 1.0))
    until: of.Until = 10.0
    records: of.Records = 41
    rtol: of.Rtol = 1e-11


def _parts(s: Remainder, x: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(scores, their F-part, their cross terms) of grown tokens x: <Ax_i, Ax_j> with x = x_F + x_G."""
    A, kind = np.asarray(s.metric, float), classify_value(np.asarray(s.value, float))
    leading = x @ (split(kind)[0] @ coordinates(kind)[0]).T @ A.T
    rest = x @ A.T - leading
    full = x @ A.T @ (x @ A.T).T
    return full, leading @ leading.T, leading @ rest.T + rest @ leading.T


def simulate_remainder(s: Remainder) -> Evidence:
    """Growth exponents of what is left of the scores after e^{2λt}<Af_i, Af_j>, with and without the cross terms."""
    value, A = np.asarray(s.value, float), np.asarray(s.metric, float)
    times = np.linspace(0, s.until, s.records)
    model = RescaledAttention(value, query=A, key=A)
    run = flow(model, np.asarray(s.start, float), times=times, record=positions, method="dop853", rtol=s.rtol)
    sizes = []
    for z, t in zip(run["tokens"].values, run.time, strict=True):
        full, leading, cross = _parts(s, z @ expm(t * value).T)
        sizes.append([np.abs(full - leading).max(), np.abs(full - leading - cross).max()])
    left, bare = np.array(sizes).T
    late = run.time >= s.until / 2
    exponent = lambda y: float(np.polyfit(run.time[late], np.log(y[late]), 1)[0])  # noqa: E731
    in_F, _ = coordinates(classify_value(value))
    parts = run["tokens"].values[-1] @ in_F[0]
    return Evidence(
        {
            "remainder_exponent": exponent(left),
            "without_cross_exponent": exponent(bare),
            "distance": np.abs(parts - np.where(parts > 0, parts.max(), parts.min())).max(),
        },
        curves=(
            Curve("scores − e^{2λt}⟨Af, Af⟩", run.time, left),
            Curve("the same − cross terms", run.time, bare),
        ),
        runs=(run,),
        undecided=_early(s),
    )


EXPONENTS = 0.02
"""What is allowed for transients of exponents."""


def _early(s: Remainder) -> dict[str, str]:
    """The fit begins at until/2, where transients are still of the order e^{-λt}/2."""
    leading = _exponents(s)[0]
    needed = -2 * np.log(EXPONENTS) / leading
    names = ("remainder_exponent", "without_cross_exponent", "distance")
    return dict.fromkeys(names, f"until={needed:.3g} or more") if s.until < needed else {}


def _exponents(s: Remainder) -> tuple[float, float, bool]:
    """(λ, growth of the G-parts of x, whether A couples F and G)."""
    value, A = np.asarray(s.value, float), np.asarray(s.metric, float)
    kind = classify_value(value, A.T @ A)
    F, G = split(kind)
    rest = max(0.0, float(rest_rate(value, kind).max()))
    return float(np.real(kind.leading)), rest, bool(np.abs(F.T @ A.T @ A @ G).max() > 1e-12)


def predict_printed(s: Remainder) -> Evidence:
    """No cross terms: the remainder is a product of two G-parts."""
    _, rest, _ = _exponents(s)
    return Evidence({"remainder_exponent": 2 * rest}, source="remainder bound as printed")


def predict_remainder(s: Remainder) -> Evidence:
    """Cross terms <Ax_F, Ax_G> grow like e^{(λ+μ)t} unless A respects F ⊕ G; the theorem survives, since λ + μ < 2λ."""
    leading, rest, coupled = _exponents(s)
    exponent = leading + rest if coupled else 2 * rest
    times = np.linspace(s.until / 2, s.until, 2)
    return Evidence(
        {"remainder_exponent": exponent, "without_cross_exponent": 2 * rest, "distance": 0.0},
        curves=(Curve(f"e^{{{exponent:g}t}}", times, np.exp(exponent * times)),),
    )


ER_03B = claim(
    "clustering/ER-03b",
    EMERGENCE,
    "remainder of the scores with its cross terms (derived)",
    "The remainder of the scores beyond e^{2λt}⟨Afᵢ, Afⱼ⟩ contains ⟨Ax_F, Ax_G⟩ and grows like e^{(λ+μ)t}; without "
    "these cross terms it grows like e^{2μt}. Since λ + μ < 2λ, F-parts of one sign still meet at the largest of them.",
    where="derived; on the proof of the theorem of §5",
    models=("rescaled",),
    quick=Remainder(),
    within={
        "remainder_exponent": absolute(EXPONENTS, "transients e^{-λt} in the window of the fit"),
        "without_cross_exponent": absolute(EXPONENTS, "transients e^{-λt} in the window of the fit"),
        "distance": at_most("approach like e^{-λT}", slack=1e-3),
    },
    simulate=simulate_remainder,
    predict=predict_remainder,
    axes=Axes("depth-time t", "remainder of the scores", y_scale="log"),
)

ER_03B.printed_as(
    "clustering/ER-03",
    "remainder bound in the proof of the mixed theorem",
    "For every M = A² ≻ 0 the scores differ from e^{2λt}⟨Afᵢ, Afⱼ⟩, f the F-part of z, by a remainder that grows no "
    "faster than e^{2μt}, μ the spectral radius of V on G.",
    where="proof of the theorem of §5, bound on the remainder",
    within={"remainder_exponent": at_most("a tenth of the gap λ − μ between the two exponents", slack=0.1)},
    predict=predict_printed,
    note="The bound holds when A maps F and G to orthogonal spaces; here V = diag(1, 0) and A = [[1, ½], [½, 1]].",
)
