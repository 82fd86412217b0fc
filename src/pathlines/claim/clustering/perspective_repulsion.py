"""V = -I: tokens repel, and spread into minimisers of the interaction energy.

A mathematical perspective on Transformers (arXiv:2312.10794) recalls Cohn and Kumar's theorem: a sharp configuration
(m distinct inner products, and a spherical (2m-1)-design) minimises E_β for every β. With m = 1 these are the antipodal
pair and the regular simplex.
"""

from __future__ import annotations

from itertools import product
from typing import Annotated

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute, at_least, exactly, relative
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import Run, flow
from pathlines.model import MODELS
from pathlines.observable.energy import energy
from pathlines.observable.pairs import overlaps


class Repulsion(Setting):
    """Repelling tokens."""

    kinds: of.Kinds = ("sa", "usa")
    sizes: of.Clouds = ((4, 3),)
    beta: of.Beta = 1.0
    seed: of.Seed = 15
    until: of.Until = 400.0
    records: of.Records = 41
    rtol: of.Rtol = 1e-10


class Sharp(Setting):
    """Repelling tokens, whose overlaps are counted."""

    sizes: of.Clouds = ((4, 3),)
    beta: of.Beta = 1.0
    seed: of.Seed = 15
    until: of.Until = 400.0
    records: of.Records = 41
    rtol: of.Rtol = 1e-10
    gap: Annotated[of.Positive, means("overlaps this near are one")] = 0.001


def _repel(kind: str, n: int, d: int, s: Repulsion | Sharp) -> Run:
    """V = -I from i.i.d. uniform tokens; geometric times, since the end is approached slowly."""
    times = np.concatenate([[0.0], np.geomspace(s.until * 1e-3, s.until, s.records - 1)])
    tokens = Sphere(d).uniform(jax.random.key(s.seed), n)
    model = MODELS[kind].build(s.beta, -1.0)
    return flow(model, tokens, times=times, record=(overlaps, energy), rtol=s.rtol, method="dop853", form="tokens")


def _pair_values(run: Run) -> np.ndarray:
    """g_ij, i < j, at each time, sorted."""
    g = run["overlaps"].values
    return np.sort(g[:, *np.triu_indices(g.shape[1], 1)], axis=1)


# --- CL-27: where repulsion ends


def simulate_spread(s: Repulsion) -> Evidence:
    """All overlaps at the last time, for each kind and size."""
    ends, curves, runs = [], [], []
    for kind, (n, d) in product(s.kinds, s.sizes):
        run = _repel(kind, n, d, s)
        pairs = _pair_values(run)
        ends.append(pairs[-1])
        curves += [Curve(f"{kind.upper()} n={n} d={d}, {w}", run.time[1:], v[1:]) for w, v in _extremes(pairs)]
        runs.append(run)
    moving = any(_still_moving(run) for run in runs)
    advice = {"overlaps": f"until={4 * s.until:g} or more: the overlaps still move"} if moving else {}
    return Evidence({"overlaps": np.concatenate(ends)}, curves=tuple(curves), runs=tuple(runs), undecided=advice)


REST = 1e-8


def _still_moving(run: Run) -> bool:
    """Whether overlaps move by a tenth of what is allowed between the last two records."""
    g = run["overlaps"].values
    return run.outcome != "completed" or bool(np.abs(g[-1] - g[-2]).max() > 0.1 * REST)


def _extremes(pairs: np.ndarray) -> list[tuple[str, np.ndarray]]:
    return [("smallest", pairs[:, 0]), ("largest", pairs[:, -1])]


def _optimal_overlaps(n: int, d: int) -> np.ndarray | None:
    """Sorted overlaps of the known optimum: the simplex for n ≤ d + 1, the cross-polytope for n = 2d; else unknown."""
    count = n * (n - 1) // 2
    if n <= d + 1:
        return np.full(count, -1 / (n - 1))
    if n == 2 * d:
        return np.sort(np.r_[np.full(d, -1.0), np.zeros(count - d)])
    return None


def predict_spread(s: Repulsion) -> Evidence:
    """Simplex or cross-polytope."""
    known = [_optimal_overlaps(n, d) for _, (n, d) in product(s.kinds, s.sizes)]
    ends = None if any(k is None for k in known) else np.concatenate([k for k in known if k is not None])
    levels = sorted({round(float(v), 12) for k in known if k is not None for v in k})
    span = [s.until * 1e-3, s.until]
    return Evidence({"overlaps": ends}, curves=tuple(Curve(f"{v:.4g}", span, [v, v]) for v in levels))


claim(
    "clustering/CL-27",
    PERSPECTIVE,
    "repulsive flow, V = −I",
    "With V=−I, n ≤ d+1 tokens spread into the regular simplex (all overlaps −1/(n−1)) and 2d tokens into the "
    "cross-polytope (overlaps −1 and 0), for SA and USA alike.",
    where="§9.1, V = −I: repulsion and sharp configurations",
    models=("sa", "usa"),
    quick=Repulsion(),
    full=Repulsion(sizes=((4, 3), (5, 4), (6, 3))),
    within={
        "overlaps": absolute(
            REST, "a hundred times the solver tolerance; inconclusive while overlaps still move by a tenth of it"
        )
    },
    simulate=simulate_spread,
    predict=predict_spread,
    axes=Axes("depth-time t", "smallest and largest overlap", x_scale="log"),
)


# --- ER-02: the number of distinct inner products of a sharp configuration


def _distinct(values: np.ndarray, gap: float) -> int:
    """Groups of sorted values separated by more than ``gap``."""
    return 1 + int(np.sum(np.diff(np.sort(values)) > gap))


def simulate_minimiser(s: Sharp) -> Evidence:
    """Distinct overlaps and energy of what the repulsive flow converges to."""
    runs = [_repel("usa", n, d, s) for n, d in s.sizes]
    pairs = [_pair_values(run) for run in runs]
    values = {
        "distinct_overlaps": [_distinct(p[-1], s.gap) for p in pairs],
        "energy": [float(run["energy"].values[-1]) for run in runs],
    }
    curves = tuple(
        Curve(f"n={n} d={d}", r.time[1:], r["energy"].values[1:]) for (n, d), r in zip(s.sizes, runs, strict=True)
    )
    moving = any(_still_moving(run) for run in runs)
    advice = dict.fromkeys(values, f"until={4 * s.until:g} or more: the tokens still move") if moving else {}
    return Evidence(values, curves=curves, runs=tuple(runs), undecided=advice)


def _least_energy(n: int, d: int, beta: float) -> float | None:
    """The minimum of E_β over n ≤ d + 1 tokens, by convexity.

    |Σ x_i|² ≥ 0 bounds the mean off-diagonal overlap by -1/(n-1), and Jensen's inequality does the rest:
    n² 2β E ≥ n e^β + n(n-1) e^{-β/(n-1)}, with equality for the simplex only.
    """
    if n > d + 1:
        return None
    return float((np.exp(beta) + (n - 1) * np.exp(-beta / (n - 1))) / (2 * beta * n))


def _predict_minimiser(s: Sharp, least: int) -> Evidence:
    lowest = [_least_energy(n, d, s.beta) for n, d in s.sizes]
    values = {
        "distinct_overlaps": np.full(len(s.sizes), float(least)),
        "energy": None if None in lowest else np.array(lowest),
    }
    span = [s.until * 1e-3, s.until]
    curves = [Curve(f"convexity bound, n={n}", span, [e, e]) for (n, _), e in zip(s.sizes, lowest) if e is not None]
    return Evidence(values, curves=tuple(curves))


def predict_printed_dichotomy(s: Sharp) -> Evidence:
    """m > 1."""
    return _predict_minimiser(s, 2)


def predict_dichotomy(s: Sharp) -> Evidence:
    """m = 1, the simplex."""
    return _predict_minimiser(s, 1)


_LEAST = relative(1e-12, "energy is quadratic in the distance left")
_ENERGY_AXES = Axes("depth-time t", "E_β", x_scale="log")

ER_02B = claim(
    "clustering/ER-02b",
    PERSPECTIVE,
    "Cohn–Kumar theorem with m ≥ 1",
    "Sharp configurations have m ≥ 1 distinct inner products: for n ≤ d+1 the repulsive flow reaches the simplex, m "
    "= 1, whose energy (e^β+(n−1)e^{−β/(n−1)})/(2βn) is the minimum.",
    where="§9.1, dichotomy of Cohn and Kumar, corrected",
    models=("usa",),
    quick=Sharp(),
    full=Sharp(sizes=((2, 3), (4, 3), (5, 4))),
    within={"distinct_overlaps": exactly("a count"), "energy": _LEAST},
    simulate=simulate_minimiser,
    predict=predict_dichotomy,
    axes=_ENERGY_AXES,
)

ER_02B.printed_as(
    "clustering/ER-02",
    "Cohn–Kumar theorem as printed (m > 1)",
    "Sharp configurations, the minimisers of the repulsive energy for every β, have m > 1 distinct inner products.",
    where="§9.1, dichotomy of Cohn and Kumar as printed",
    within={"distinct_overlaps": at_least("a count"), "energy": _LEAST},
    predict=predict_printed_dichotomy,
    note="The antipodal pair and the regular simplex minimise E_β (convexity) and have m = 1.",
)
