"""V = I, K = -Q: three kinds of attention with one limit, and what a threshold makes of its rank.

A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322, draws histograms of the number of
eigenvalues above 0.1; limit, rate and law of that number are derived here.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import share_and_error
from pathlines.claim.gaussian.reference_set import factor_of, softmax_clouds
from pathlines.claim.tolerance import absolute, relative, standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import UNIFIED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.integrate.gaussian_fate import Fate, fates
from pathlines.limit.gaussian.opposed import KINDS, opposed_covariance
from pathlines.limit.gaussian.orthogonal import rank_counts
from pathlines.limit.gaussian.softmax import scaled_eigenvalues
from pathlines.model.gaussian.closure import GaussianClosure, SoftmaxGaussian, sigma_points
from pathlines.model.gaussian.normalised import L2Gaussian, SinkhornGaussian

# --- C18


class CommonLimit(Setting):
    """One cloud under three attentions."""

    d: of.Dimension = 3
    seed: of.Seed = 4
    eps: of.Epsilon = 0.7
    times: of.Times = (100.0, 1000.0)


def _start(s: CommonLimit) -> tuple[np.ndarray, np.ndarray]:
    """(Q, Σ_0) of the seed."""
    rng = np.random.default_rng(s.seed)
    G = rng.standard_normal((s.d, s.d))
    return rng.standard_normal((s.d // 2, s.d)), G @ G.T / s.d + 0.2 * np.eye(s.d)


def _models(s: CommonLimit, Q: np.ndarray) -> dict[str, GaussianClosure]:
    identity = np.eye(s.d)
    return {
        "softmax": SoftmaxGaussian(identity, Q, -Q),
        "l2": L2Gaussian(identity, Q, -Q),
        "sinkhorn": SinkhornGaussian(identity, Q, -Q, eps=s.eps),
    }


def simulate_limit(s: CommonLimit) -> Evidence:
    """The limits of the three kinds by extrapolation in 1/t, and t|Σ(t) - Σ_∞|."""
    Q, cov = _start(s)
    start, last = sigma_points(np.zeros(s.d), cov), s.times[-1]
    grid = np.union1d(np.geomspace(1.0, 0.9 * last, 11), [*s.times, 2 * last])
    limits, distances, curves, runs = [], [], [], []
    for name, model in _models(s, Q).items():
        run = flow(model, start, times=grid, record="covariance", method="dop853", rtol=1e-10, atol=1e-13)
        covs = run["covariance"].values
        limit = 2 * covs[-1] - covs[np.searchsorted(grid, last)]
        far = grid * np.linalg.norm(covs - limit, axis=(1, 2))
        limits.append(limit.ravel())
        distances += far[np.searchsorted(grid, s.times)].tolist()
        curves.append(Curve(name, grid[:-1], far[:-1]))
        runs.append(run)
    values = {"limit": np.concatenate(limits), "scaled_distance": distances}
    return Evidence(values, curves=tuple(curves), runs=tuple(runs))


def predict_limit(s: CommonLimit) -> Evidence:
    """The limit, and t|Σ(t) - Σ_∞| with Σ_∞ extrapolated in the same way, in closed form at every t.

    What extrapolation leaves of the limit, (ln t)/t² for l2, is the difference of the two, and decides nothing where it
    is above the tolerance.
    """
    Q, cov = _start(s)
    last, grid = s.times[-1], np.geomspace(1.0, s.times[-1], 60)
    limit = opposed_covariance("softmax", np.inf, Q, cov)
    distances, curves, remainder = [], [], 0.0
    for kind in KINDS:
        at = partial(opposed_covariance, kind, Q=Q, start=cov, eps=s.eps)
        reached = 2 * at(2 * last) - at(last)
        far = [t * float(np.linalg.norm(at(t) - reached)) for t in (*s.times, *grid)]
        distances += far[: len(s.times)]
        curves.append(Curve(f"{kind}, closed form", grid, far[len(s.times) :]))
        remainder = max(remainder, float(np.abs(reached - limit).max()))
    needed = 1.2 * last * np.sqrt(remainder / EXTRAPOLATED)
    advice = (
        f"extrapolation from t = {last:g} leaves {remainder:.1e} of the limit: a last time of {needed:.0f} would do"
    )
    return Evidence(
        {"limit": np.tile(limit.ravel(), len(KINDS)), "scaled_distance": distances},
        curves=tuple(curves),
        undecided={"limit": advice} if remainder > EXTRAPOLATED else {},
    )


EXTRAPOLATED = 1e-4

claim(
    "gaussian/C18",
    UNIFIED,
    "softmax, l2 and Sinkhorn attention share one limit (derived)",
    "For V = I and K = −Q all three converge to U(UᵀΣ₀⁻¹U)⁻¹Uᵀ, U = ker Q, and t|Σ(t) − Σ∞| tends to a constant: QΣQᵀ "
    "keeps its eigenvectors, and its eigenvalues follow the scalar equations.",
    where="derived; on the limits of covariances",
    models=("gaussian-softmax", "gaussian-l2", "gaussian-sinkhorn"),
    quick=CommonLimit(),
    within={
        "limit": absolute(EXTRAPOLATED, "extrapolation in 1/t, whose remainder is computed and must be below this"),
        "scaled_distance": relative(1e-7, "the flow errs by 1e-10 of Σ, and distances are 1e-3 of it at t = 1000"),
    },
    simulate=simulate_limit,
    predict=predict_limit,
    axes=Axes("depth-time t", "t·|Σ − Σ∞|", x_scale="log", y_scale="log"),
)


# --- C19 and its erratum


SMALLEST = 1e-6
"""Eigenvalues below this share of the largest count as none."""
LATE = 1e8
"""Scale-free time of the count: vanishing eigenvalues have come down to √d cond(Q)²/(2 · 10⁸) of the largest, or so."""
CLOSE = 0.01
"""How close to ``SMALLEST``, in its units, an eigenvalue may be counted otherwise by two programs."""


def random_draws(d: int, draws: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Q Gaussian in R^{⌊d/2⌋×d} and G of Σ_0 = GGᵀ."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((draws, d // 2, d)), rng.standard_normal((draws, d, d))


def random_limits(d: int, draws: int, seed: int) -> list[Fate]:
    """Fates for V = I, K = -Q, followed to s = 10⁸.

    A limit that is e^{-12} of the start is taken for a collapse on the way (three in a thousand for d = 2, where the
    limit is χ² of one degree of freedom); such clouds go on from where they were left, which the scale-free equation
    allows.
    """
    queries, factors = random_draws(d, draws, seed)

    def followed(which: np.ndarray, starts: np.ndarray) -> list[Fate]:
        models = softmax_clouds(np.broadcast_to(np.eye(d), starts.shape), queries[which], -queries[which])
        return fates(models, starts, until=LATE, rtol=1e-8, rank_tolerance=SMALLEST, still=1e-15)

    found = followed(np.arange(draws), factors)
    while len(left := np.array([k for k, f in enumerate(found) if f.kind == "to-zero"], int)):
        for k, fate in zip(left, followed(left, np.stack([factor_of(found[k].covariance) for k in left])), strict=True):
            found[k] = fate
    return found


def _histogram(counts: np.ndarray, most: int) -> np.ndarray:
    return np.bincount(counts, minlength=most + 1)[: most + 1]


class Ranks(Setting):
    """Random limits, whose eigenvalues are counted."""

    d: of.Dimension = 3
    draws: of.Draws = 4000
    threshold: Annotated[of.NonNegative, means("eigenvalues above are counted")] = 0.1
    seed: of.Seed = 5


def simulate_ranks(s: Ranks) -> Evidence:
    """Histograms of the two counts."""
    found = random_limits(s.d, s.draws, s.seed)
    above = np.array([np.sum(np.array(f.eigenvalues) > s.threshold) for f in found])
    rank = np.array([f.rank for f in found])
    most = -(-s.d // 2)
    (seen, error), (true, spread) = (share_and_error(_histogram(x, most), s.draws) for x in (above, rank))
    k = np.arange(most + 1)
    curves = (Curve(f"eigenvalues above {s.threshold:g}", k, seen, error), Curve("rank", k, true))
    values = {"above": seen, "rank": rank.mean(), "ranks": true}
    return Evidence(values, {"above": error, "ranks": spread}, curves=curves)


def predict_ranks(s: Ranks) -> Evidence:
    """The law of eigenvalues of a Wishart matrix of ⌈d/2⌉ degrees of freedom above the threshold.

    The rank is ⌈d/2⌉, but a count at s = 10⁸ finds one more where Q is so ill-conditioned (one draw in a hundred for
    d = 4) that what vanishes is not below 10⁻⁶ yet, and one less where the limit is flatter than that (two in 1000 for
    d = 3): both are counted in the closed form of the same draws at the same s.
    """
    exact = rank_counts(s.d, s.threshold)
    values = scaled_eigenvalues(LATE, *random_draws(s.d, s.draws, s.seed))
    size = values / (SMALLEST * values[:, :1])
    border = np.mean(np.sum(np.abs(size - 1) < CLOSE, axis=1))
    curves = (Curve("Wishart law", np.arange(len(exact)), exact),)
    return Evidence({"above": exact, "rank": np.mean(np.sum(size > 1, axis=1))}, {"rank": border}, curves=curves)


def predict_printed(s: Ranks) -> Evidence:
    """The histogram of the threshold, read as one of ranks."""
    exact = rank_counts(s.d, s.threshold)
    return Evidence({"ranks": exact}, curves=(Curve("as read off", np.arange(len(exact)), exact),))


_AXES = Axes("count", "fraction of draws")

C19 = claim(
    "gaussian/C19",
    UNIFIED,
    "rank of the limit, and what a threshold counts (derived)",
    "For V = I, K = −Q, Q Gaussian in R^{⌊d/2⌋×d} and Σ₀ = GGᵀ the limit has rank ⌈d/2⌉ always; the number of its "
    "eigenvalues above 0.1 is that of a Wishart matrix W_m(m), m = ⌈d/2⌉.",
    where="rank of limiting covariances; exact rank derived",
    models=("gaussian-softmax",),
    quick=Ranks(),
    full=Ranks(draws=30000),
    within={
        "above": standard_errors(5.0, "binomial; the probabilities are exact"),
        "rank": absolute(
            1e-9, "mean over draws, each in closed form at the same s; those within 1 % of the border count", 1.0
        ),
    },
    simulate=simulate_ranks,
    predict=predict_ranks,
    axes=_AXES,
)

C19.printed_as(
    "gaussian/ER-01",
    "rank histograms of the limit, as drawn",
    "The limit of V = I, K = −Q has rank below ⌈d/2⌉ with positive probability: for d = 3 and 4 it is a line in 38 % "
    "of draws, as counting eigenvalues above 0.1 shows.",
    where="rank histograms of the authors' scripts (threshold 0.1)",
    within={"ranks": standard_errors(5.0, "binomial; the printed fractions are exact")},
    predict=predict_printed,
    note="An absolute threshold counts large eigenvalues; the rank is ⌈d/2⌉ in every draw.",
)
