"""One leading eigenvalue: at most three parallel hyperplanes (arXiv:2305.05465, hyperplane theorem)."""

from __future__ import annotations

from typing import Annotated

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering.emergence_direct import Cube, cube_start, direct_rescaled, groups
from pathlines.claim.fitting import Mistake
from pathlines.claim.tolerance import absolute, at_most
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import EMERGENCE
from pathlines.foundation.setting import means
from pathlines.integrate import flow
from pathlines.limit.clustering.euclidean import classify_value
from pathlines.model.clustering.rescaled import RescaledAttention
from pathlines.observable.euclidean import dist_hyperplanes, leading_coordinate

SHOWN = 6
CLOSE = 3e-3
"""Specified distance from a hyperplane at T = 8."""


def left_eigenvector(value: np.ndarray) -> np.ndarray:
    """φ₁* with φ₁*(φ₁) = 1 for the unit φ₁ whose largest entry is positive, by NumPy alone."""
    eigenvalues, right = np.linalg.eig(value)
    first = int(np.argmax(eigenvalues.real))
    left = np.linalg.inv(right)[first].real
    unit = right[:, first].real
    return left * np.linalg.norm(unit) * np.sign(unit[np.argmax(np.abs(unit))])


class GoodTriple(Cube):
    """One value matrix with a simple leading eigenvalue."""

    value: of.ValueMatrix = ((0.64709742, 0.81911926), (0.61210449, 0.63263484))
    until: of.Until = 8.0
    records: of.Records = 33
    rtol: of.Rtol = 1e-11
    merge: Annotated[of.Positive, means("levels this near are one hyperplane")] = 0.05


def simulate(s: GoodTriple) -> Evidence:
    """Distance of every φ₁*(z_i) to the nearest of the lowest value, zero and the highest value."""
    value = np.asarray(s.value, float)
    dual = tuple(left_eigenvector(value).tolist())
    near, coordinate = dist_hyperplanes.at(dual=dual), leading_coordinate.at(dual=dual)
    times = np.linspace(0, s.until, s.records)
    run = flow(
        RescaledAttention(value), cube_start(s), times=times, record=(near, coordinate), method="dop853", rtol=s.rtol
    )
    levels = run[coordinate.name].values
    distance = run[near.name].values.max(axis=1)
    shown = np.argsort(levels[0])[np.linspace(0, s.n - 1, min(s.n, SHOWN)).astype(int)]
    return Evidence(
        {
            "distance": distance[-1],
            "hyperplanes": float(groups(levels[-1][:, None], s.merge).max()),
            "extremes": np.array([levels[-1].min(), levels[-1].max()]),
        },
        curves=tuple(Curve(f"token {i}", times, levels[:, i]) for i in shown),
        runs=(run,),
        undecided=_on_its_way(s, run.time, distance),
    )


def _on_its_way(s: GoodTriple, times: np.ndarray, distance: np.ndarray) -> dict[str, str]:
    """A token may leave 0 late, and approaches its hyperplane like e^{−λ₁t}: what to change while it does."""
    value = np.asarray(s.value, float)
    if distance[-1] <= CLOSE or abs(np.log(distance[-1] / distance[-2])) < 0.05 * (times[-1] - times[-2]):
        return {}
    needed = times[-1] + np.log(distance[-1] / CLOSE) / np.linalg.eigvals(value).real.max()
    return dict.fromkeys(("distance", "hyperplanes"), f"until={needed:.3g} or more: a token is still on its way")


def predict(s: GoodTriple) -> Evidence:
    """At most three values; the extreme ones from the direct solution, as e^{−λ₁t} φ₁*(x) would have them."""
    value = np.asarray(s.value, float)
    kind = classify_value(value)
    if kind.left is None or kind.kind != "good triple":
        return Evidence(dict.fromkeys(("distance", "hyperplanes", "extremes")), source=kind.statement)
    levels = direct_rescaled(cube_start(s), [s.until], value)[-1] @ kind.left
    ends = np.array([levels.min(), levels.max()])
    times = np.array([0.0, s.until])
    return Evidence(
        {"distance": 0.0, "hyperplanes": 3.0, "extremes": ends},
        curves=tuple(Curve(f"hyperplane {c:.4g}", times, np.full(2, c)) for c in (ends[0], 0.0, ends[1])),
        source="hyperplane theorem; extremes from a direct x-form solution",
    )


claim(
    "clustering/CL-30",
    EMERGENCE,
    "convergence to at most three hyperplanes",
    "If (Q, K, V) is a good triple, each φ₁*(zᵢ) converges to a, 0 or b, where a and b are the limits of the smallest "
    "and the largest φ₁*(zⱼ): the tokens gather on at most three parallel hyperplanes.",
    where="§4, theorem on at most three hyperplanes (good triples)",
    models=("rescaled",),
    quick=GoodTriple(),
    within={
        "distance": at_most("specified bound at T = 8", slack=CLOSE),
        "hyperplanes": at_most("a count"),
        "extremes": absolute(1e-6, "two solvers at 1e-11, and φ₁*(x) grown by e^{λ₁T} ≈ 5e4"),
    },
    simulate=simulate,
    predict=predict,
    axes=Axes("depth-time t", "leading coordinate φ₁*(z)"),
    mistakes=(
        Mistake(
            "RescaledAttention",
            "{:.0%} of V replaced by the identity",
            lambda right, size: lambda value: right((1 - size) * value + size * np.eye(len(value))),
            (0.9, 1.0),
        ),
    ),
)
