"""Equiangular starts: particles against the scalar equation, and the closed form t(ρ) against quadrature.

From <x_i,x_j> = ρ0 for all i ≠ j the overlap stays common (A mathematical perspective on Transformers,
arXiv:2312.10794): ρ' = 2(1-ρ)(1+(n-1)ρ)/(e^{β(1-ρ)}+n-1) for SA, ρ' = (2/n) e^{βρ} (1-ρ)(1+(n-1)ρ) for USA.
"""

from __future__ import annotations

from itertools import product
from typing import Annotated, Any

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute, relative
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.limit.clustering.equiangular import deficit_at, phase_curve, time_to_deficit
from pathlines.model import MODELS
from pathlines.observable.pairs import deficits

# --- CL-05: particles on a simplex


Shares = Annotated[tuple[of.Share, ...], means("starts, as shares of the way from the lowest overlap to 1")]


class ClosedForm(Setting):
    """Pairs of overlaps between which the time is known."""

    kinds: of.Kinds = ("sa", "usa")
    sizes: of.Sizes = (2, 5, 32)
    betas: of.Betas = (0.0, 0.1, 0.5, 1.0, 2.0, 4.0, 6.0, 9.0)
    shares: Shares = (0.1, 0.5, 0.01)
    deficits: Annotated[tuple[of.Positive, ...], means("ends", "1 − ρ")] = (0.5, 0.001, 1e-6)
    nodes: Annotated[of.Count, means("Gauss nodes per panel")] = 20
    panels: Annotated[of.Count, means("panels of the quadrature")] = 48


class Equiangular(Setting):
    """Particles from one common overlap."""

    sizes: of.Sizes = (8,)
    betas: of.Betas = (0.0, 1.0, 4.0)
    kinds: of.Kinds = ("sa",)
    overlap: of.Overlap = 0.0
    extra: Annotated[of.Whole, means("dimensions beyond n")] = 3
    times: of.Times = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 4.0)
    rtol: of.Rtol = 1e-13


def _cases(s: ClosedForm | Equiangular) -> list[tuple[str, int, float]]:
    return list(product(s.kinds, s.sizes, s.betas))


def _case_label(kind: str, n: int, beta: float) -> str:
    return f"{kind.upper()} n={n} β={beta:g}"


def _clock(kind: str, beta: float, times: Any) -> np.ndarray:
    """USA is e^β times faster at the end, so that its times are given in units of e^{-β}."""
    return np.asarray(times, float) * (np.exp(-beta) if kind == "usa" else 1.0)


def simulate_particles(s: Equiangular) -> Evidence:
    """n tokens in d = n + 3 coordinates, none of the symmetry used."""
    spreads, means, curves, runs = [], [], [], []
    upper = {n: np.triu_indices(n, 1) for n in s.sizes}
    for kind, n, beta in _cases(s):
        start = Sphere(n + s.extra).simplex(n, s.overlap)
        model, times = MODELS[kind].build(beta), _clock(kind, beta, s.times)
        run = flow(model, start, times=times, record=deficits, method="dop853", rtol=s.rtol, form="tokens")
        pairs = run["deficits"].values[:, *upper[n]]
        spreads.append(float(np.max(np.ptp(pairs, axis=1))))
        means.append(pairs.mean(axis=1))
        curves.append(Curve(_case_label(kind, n, beta), s.times, 1 - means[-1]))
        runs.append(run)
    return Evidence({"spread": spreads, "deficit": np.concatenate(means)}, curves=tuple(curves), runs=tuple(runs))


def predict_particles(s: Equiangular) -> Evidence:
    """The closed form t(ρ), inverted."""
    fine = np.linspace(0.0, max(s.times), 200)
    common, curves = [], []
    for kind, n, beta in _cases(s):
        common.append(deficit_at(_clock(kind, beta, s.times), n, beta, kind, s.overlap))
        curve = 1 - deficit_at(_clock(kind, beta, fine), n, beta, kind, s.overlap)
        curves.append(Curve(_case_label(kind, n, beta), fine, curve))
    return Evidence({"spread": np.zeros(len(common)), "deficit": np.concatenate(common)}, curves=tuple(curves))


claim(
    "clustering/CL-05",
    PERSPECTIVE,
    "equiangular reduction",
    "Tokens that start with one common overlap ρ₀ keep one common overlap, and it obeys the scalar equation of SA "
    "(of USA) solved by t(ρ).",
    where="§6, reduction to one overlap γ_β(t) in the theorem on high dimension (Theorem 6.9)",
    models=("sa", "usa"),
    quick=Equiangular(),
    full=Equiangular(sizes=(8, 32), kinds=("sa", "usa")),
    within={
        "spread": absolute(2e-14, "rounding of sums over n tokens"),
        "deficit": relative(2e-11, "a hundred times the solver tolerance 1e-13: at late times 1−ρ ~ e^{−2t}"),
    },
    simulate=simulate_particles,
    predict=predict_particles,
    axes=Axes("depth-time t (USA: e^β t)", "overlap ρ"),
    note="Times of USA are in units of e^{−β}, its late clock.",
)


# --- CL-06: the closed form


def _grid(s: ClosedForm) -> list[tuple[str, int, float, float, float]]:
    """(kind, n, β, ρ0, δ) with ρ0 given as a share of the way from the simplex -1/(n-1) to one."""
    require(min(s.sizes) >= 2, "sizes", "be at least 2 (one token has no overlap)", s.sizes)
    starts = {n: [-1 / (n - 1) + share * n / (n - 1) for share in s.shares] for n in s.sizes}
    return [(k, n, b, r, y) for k, n, b in _cases(s) for r in starts[n] for y in s.deficits if y < 1 - r]


def _rate(kind: str, n: int, beta: float, y: np.ndarray, w: np.ndarray) -> np.ndarray:
    """ρ' of the paper's scalar equation, in y = 1-ρ and w = ρ+1/(n-1)."""
    if kind == "usa":
        return 2 / n * np.exp(beta * (1 - y)) * y * (n - 1) * w
    return 2 * y * (n - 1) * w / (np.exp(beta * y) + n - 1)


def _time_by_quadrature(kind: str, n: int, beta: float, overlap: float, deficit: float, s: ClosedForm) -> float:
    """∫ dρ/ρ' in v = ln(w/y), dρ = (yw/c) dv: smooth at both ends of the orbit; Gauss-Legendre on equal panels."""
    c = n / (n - 1)
    low, high = (np.log((c - y) / y) for y in (1 - overlap, deficit))
    nodes, weights = np.polynomial.legendre.leggauss(s.nodes)
    edges = np.linspace(low, high, s.panels + 1)
    half = np.diff(edges)[:, None] / 2
    v = edges[:-1, None] + half * (1 + nodes)
    y, w = c / (1 + np.exp(v)), c / (1 + np.exp(-v))
    return float(np.sum(half * weights * y * w / c / _rate(kind, n, beta, y, w)))


def simulate_quadrature(s: ClosedForm) -> Evidence:
    """The time to each deficit by high-order quadrature of the scalar equation (CL-05 ties that to the particles)."""
    grid = _grid(s)
    times = np.array([_time_by_quadrature(*case, s) for case in grid])
    curves = []
    for kind, n in product(s.kinds, s.sizes):
        picked = [(c[2], t) for c, t in zip(grid, times, strict=True) if _on_curve(c, kind, n, s)]
        curves.append(Curve(f"{kind.upper()} n={n}", *np.array(sorted(picked)).T))
    return Evidence({"time": times}, curves=tuple(curves))


def _on_curve(case: tuple[Any, ...], kind: str, n: int, s: ClosedForm) -> bool:
    """The cases drawn: from the first start to the smallest deficit."""
    start = -1 / (n - 1) + s.shares[0] * n / (n - 1)
    return case[0] == kind and case[1] == n and case[3] == start and case[4] == min(s.deficits)


def predict_quadrature(s: ClosedForm) -> Evidence:
    """Exponential integrals."""
    kinds, n, beta, overlap, deficit = (np.array(column) for column in zip(*_grid(s), strict=True))
    times = np.empty(len(kinds))
    for kind in s.kinds:
        mine = kinds == kind
        times[mine] = time_to_deficit(deficit[mine], n[mine], beta[mine], kind, overlap[mine])
    betas = np.linspace(min(s.betas), max(s.betas), 100)
    curves = tuple(
        Curve(
            f"Γ, {kind.upper()} n={n}",
            betas,
            phase_curve(betas, n, min(s.deficits), kind, -1 / (n - 1) + s.shares[0] * n / (n - 1)),
        )
        for kind, n in product(s.kinds, s.sizes)
    )
    return Evidence({"time": times}, curves=curves)


claim(
    "clustering/CL-06",
    PERSPECTIVE,
    "closed form of the equiangular flow (derived)",
    "The time at which the overlap of an equiangular start reaches ρ is, for SA, "
    "(n−1)/(2n)·ln(y₀w/(yw₀)) + {Ei(βy₀)−Ei(βy)+e^{βc}[E₁(βw₀)−E₁(βw)]}/(2n), and for USA "
    "½{e^{−β}[Ei(βy₀)−Ei(βy)]+e^{β/(n−1)}[E₁(βw₀)−E₁(βw)]}, with y=1−ρ, w=ρ+1/(n−1), c=n/(n−1).",
    where="derived; the paper has the differential equation of γ_β (Theorem 6.9), not its solution",
    models=("sa", "usa"),
    quick=ClosedForm(),
    full=ClosedForm(
        sizes=(2, 3, 5, 8, 16, 32, 128), betas=(0.0, 0.01, 0.1, 0.5, 1.0, 2.0, 4.0, 6.0, 9.0, 20.0), panels=96
    ),
    within={"time": relative(1e-12, "what the quadrature converges to")},
    simulate=simulate_quadrature,
    predict=predict_quadrature,
    axes=Axes("β", "time to the smallest deficit", y_scale="log"),
    note="Starts are given by their share of the way from the regular simplex (0) to one point (1).",
)
