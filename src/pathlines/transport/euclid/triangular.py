"""A2: triangular (Knothe–Rosenblatt) transport by stack – rearrange – unstack, with conditional sampling."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from scipy.special import ndtr, ndtri

from pathlines.foundation.errors import ArgumentError, finite_array, positive_integer
from pathlines.transport.estimator import (
    ESTIMATED,
    FlowEstimator,
    check_covariance,
    checked_goal,
    checked_samples,
    reported,
)
from pathlines.transport.euclid.increasing import increasing_schedule
from pathlines.transport.euclid.knots import spread_knots
from pathlines.transport.euclid.neighbours import EstimatedKL, entropy_of, missed
from pathlines.transport.euclid.quantile import LineLaw, log_slope, quantile_map
from pathlines.transport.euclid.sampled import far_from_one, sample_parts
from pathlines.transport.euclid.schedule import EuclideanSchedule
from pathlines.transport.euclid.stack import CellMap, conditional_schedule, dyadic
from pathlines.transport.schedule import checked_size

REACH_FIRST, REACH = 5.0, 4.5
"""z_c of the first coordinate and of conditionals; beyond, maps are linear."""
WIDTH_OF_BINS = 1.3
"""Bins are quantiles of N(0, 1.3²): wider than the law, so that cells of the tails are not too long."""
CERTIFYING = 100_000
MOST = 100_000
"""Pieces that an error target may take."""
SIZES = ((8, 6), (12, 16), (16, 32), (24, 48))
SMOOTHINGS = ((0.6, 0.8), (0.4, 0.8), (0.4, 0.5), (1.0, 1.0))
"""(Knots, bins) and widths of the smoothing (along, across) that held-out likelihood chooses from."""


class TriangularFlow(FlowEstimator):
    """N(0, I) to a law in R^d, coordinate after coordinate: x_j moves conditionally on the bins of x_1 … x_{j-1}.

    KL ~ P^{-2/d}, TV ~ P^{-1/d} [derived]; P·KL stays bounded in d = 2. The flow is block triangular, so it samples
    conditionally on the first coordinates, which stay exactly as given. Bins multiply with the dimension: d ≤ 3 in
    practice, ``RidgeFlow`` beyond. Good values: bins = 16, knots = 16 (352 pieces with 32 knots for x_1: KL 0.01 for
    a mixture of three Gaussians). Cost O(P log P) to build, O(n log P) for each run of pieces. Constructive
    conditional normalizing flows, arXiv:2602.08606.

    Args:
        bins: bins of each conditioning coordinate; chosen (with ``knots``) if not given. The more, the finer the
            conditioning and the fewer samples in each.
        knots: knots in each cell; the first coordinate has twice as many, and at least 8. The more, the finer each
            conditional law.
        pieces: largest number of pieces. The more, the finer the grid may be.
        error: largest KL(target‖flow), met by its estimate plus two standard errors: from draws of a known density, or
            from held-out samples. A fit that misses it is refused. The smaller, the more pieces.
    """

    parts_: tuple[EuclideanSchedule, ...]

    def __init__(
        self, bins: int | None = None, knots: int | None = None, pieces: int | None = None, error: float | None = None
    ) -> None:
        self.bins = bins
        self.knots = knots
        self.pieces = pieces
        self.error = error

    def fit_density(self, target: Any) -> Self:
        """Fit a known law: ``target.d``, ``target.line(given)`` (conditional laws), ``log_prob`` and ``sample``.

        ``pl.transport.GaussianMixture`` is one. KL is estimated on 10⁵ exact draws of the target, with its error.
        """
        began = time.perf_counter()
        pieces, error = checked_goal(self.pieces, self.error, 8)
        for name in ("d", "line", "marginal", "log_prob", "sample"):
            if not hasattr(target, name):
                raise ArgumentError(f"Argument `target` must be a law like GaussianMixture, but has no `{name}`.")
        draws = target.sample(CERTIFYING, 12345)
        known = target.log_prob(draws)
        bins, knots = self._sizes(target.d, pieces)[-1] if error is None else (8, 8)
        while True:
            parts = density_parts(target, bins, knots, max(8, 2 * knots))
            gaps = known - _joined(parts).log_prob(draws)
            _check_mass(np.exp(-gaps))
            gaps = gaps + np.expm1(-gaps)  # whose mean is KL too, since q/p has mean one, with less noise
            kl, spread = float(gaps.mean()), float(gaps.std() / np.sqrt(len(gaps)))
            if error is None or kl + 2 * spread <= error:
                return self._kept(parts, began, f"{CERTIFYING} draws of the target", kl=kl, kl_error=spread)
            bins = knots = int(np.ceil(1.05 * bins * np.sqrt((kl + 2 * spread) / error)))
            if _count(target.d, bins, knots) > MOST:
                raise ArgumentError(f"Argument `error` = {error:g} needs more than {MOST} pieces (KL is {kl:.3g}).")

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit samples (n, d): conditional laws are smoothed in each cell; sizes are chosen on every fifth sample."""
        began = time.perf_counter()
        pieces, error = checked_goal(self.pieces, self.error, 8)
        data = checked_samples(X)
        check_covariance(data)
        choose = _Choice(data)
        budget = None if pieces is None else pieces - (3 * data.shape[1] if far_from_one(data) else 0)
        sizes = self._sizes(data.shape[1], budget, len(data))
        if error is None:
            found = choose.best(choose.likeliest(sizes))
        else:
            for size in sorted(sizes, key=lambda s: _count(data.shape[1], *s)):
                found = choose.best(size)
                if found.bound <= error:
                    break
            else:
                raise missed(error, found, len(data), "give more samples, or fit a density")
        errors = {"kl": found.kl, "kl_error": found.error, "held_out": choose.scores[choose.chosen]}
        return self._kept(sample_parts(data, *choose.chosen), began, ESTIMATED, **errors)

    def sample(self, n: int, seed: int = 0, given: Any = None) -> np.ndarray:
        """n draws; with ``given`` (the first coordinates) they are drawn conditionally, and those stay exactly."""
        self._fitted()
        if given is None:
            return super().sample(n, seed)
        first = self._given(given)
        rng = np.random.default_rng(positive_integer("seed", seed, 0))
        x = rng.standard_normal((checked_size(n, self.n_features_in_), self.n_features_in_))
        x[:, : len(first)] = first
        for part in self.parts_[len(first) :]:
            x = part.forward(x)[0]
        return x

    def log_prob(self, X: Any, given: Any = None) -> np.ndarray:
        """Log-density at the rows of X; with ``given``, that of the other coordinates conditionally on the first."""
        if given is None:
            return super().log_prob(X)
        self._fitted()
        first, rest = self._given(given), checked_samples(X, least=1)
        y = np.column_stack([np.broadcast_to(first, (len(rest), len(first))), rest])
        if y.shape[1] != self.n_features_in_:
            raise ArgumentError(f"`given` and `X` must have {self.n_features_in_} columns, not {y.shape[1]}.")
        total = np.zeros(len(y))
        for part in reversed(self.parts_[len(first) :]):
            y, logs = part.backward(y)
            total += logs
        z = y[:, len(first) :]
        return total - 0.5 * np.sum(z**2, axis=1) - 0.5 * z.shape[1] * np.log(2 * np.pi)

    def _given(self, given: Any) -> np.ndarray:
        first = np.atleast_1d(finite_array("given", given)).astype(float)
        if first.ndim != 1 or not 0 < len(first) < self.n_features_in_:
            raise ArgumentError(f"Argument `given` must be the first 1 to {self.n_features_in_ - 1} coordinates.")
        return first

    def _kept(self, parts: Sequence[EuclideanSchedule], began: float, method: str, **errors: Any) -> Self:
        self.parts_, self.schedule_ = tuple(parts), _joined(parts)
        self.n_features_in_ = self.schedule_.d
        self.report_ = reported(self.schedule_, time.perf_counter() - began, method, **errors)
        return self

    def _sizes(self, d: int, pieces: int | None, samples: int | None = None) -> list[tuple[int, int]]:
        """(bins, knots) to choose from, in the order of their pieces."""
        if samples is not None:
            tried = [(b, k) for k, b in SIZES if 4 * b ** (d - 1) * k <= samples]
            tried = tried or [(SIZES[0][1] if d <= 3 else 2, SIZES[0][0])]
        else:
            tried = [(m, m) for m in (2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)]
        if self.bins is not None:
            tried = [(positive_integer("bins", self.bins), k) for _, k in tried]
        if self.knots is not None:
            tried = [(b, positive_integer("knots", self.knots, 2)) for b, _ in tried]
        if min(_count(d, *t) for t in tried) > MOST:
            raise ArgumentError(f"Bins multiply: d = {d} would take more than {MOST} pieces; RidgeFlow takes any d.")
        if pieces is None:
            given = self.bins is not None and self.knots is not None
            return tried if samples is not None or given else [t for t in tried if 16 in t][:1]
        few = [t for t in tried if _count(d, *t) <= pieces]
        if not few:
            least = min(_count(d, *t) for t in tried)
            raise ArgumentError(f"Argument `pieces` must be at least {least} in d = {d}, but is {pieces}.")
        return few


def _check_mass(ratios: np.ndarray) -> None:
    """q/p has mean one under p, unless the density is not that of the draws or does not integrate to one."""
    mean, error = float(ratios.mean()), float(ratios.std() / np.sqrt(len(ratios)))
    if abs(mean - 1) > 0.1 + 5 * error:
        raise ArgumentError(
            f"Argument `target` must have a `log_prob` that is normalised and that of its `sample`, but the mean of "
            f"flow/target on its draws is {mean:.3g} instead of 1."
        )


class _Choice:
    """Sizes and smoothings of flows to samples, judged on every fifth one."""

    def __init__(self, data: np.ndarray) -> None:
        self.kept, self.apart = data[np.arange(len(data)) % 5 != 0], data[::5]
        self.scores: dict[tuple[int, int, float, float], float] = {}
        self.chosen: tuple[int, int, float, float] = (0, 0, 0.0, 0.0)

    def likeliest(self, sizes: list[tuple[int, int]]) -> tuple[int, int]:
        """The size with the highest held-out likelihood at the first smoothing."""
        return max(sizes, key=lambda size: self._tried(*size, *SMOOTHINGS[0]))

    def best(self, size: tuple[int, int]) -> EstimatedKL:
        """Choose the smoothing of that size (and keep the best choice so far); its KL on the held-out samples."""
        for smoothing in SMOOTHINGS:
            self._tried(*size, *smoothing)
        self.chosen = max(self.scores, key=lambda c: self.scores[c])
        return entropy_of(_joined(sample_parts(self.kept, *self.chosen)).backward(self.apart)[0])

    def _tried(self, *choice: Any) -> float:
        if choice not in self.scores:
            flow = _joined(sample_parts(self.kept, *choice))
            self.scores[choice] = float(flow.log_prob(self.apart).mean())
        return self.scores[choice]


def _count(d: int, bins: int, knots: int) -> int:
    """Pieces of a flow of that size."""
    later = sum(4 * j * (bins - 1) + bins**j * knots + 2 for j in range(1, d))
    return max(8, 2 * knots) + 2 + later


def _joined(parts: Sequence[EuclideanSchedule]) -> EuclideanSchedule:
    flow = parts[0]
    for part in parts[1:]:
        flow = flow.compose(part)
    return flow


def density_parts(
    target: Any, bins: int, knots: int, first: int, width: float = WIDTH_OF_BINS
) -> list[EuclideanSchedule]:
    """One schedule for each coordinate of a known law.

    Bins of coordinate r are quantiles of N(0, width²) pushed by the map of its representatives' law; the law of a
    cell is the conditional one at its representatives, the images of the mean of z in each bin.
    """
    d, edges, middles = target.d, list[np.ndarray](), list[np.ndarray]()
    cuts = width * ndtri(np.arange(1, bins) / bins)
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    density = np.exp(-(ends**2) / 2) / np.sqrt(2 * np.pi)
    means = (density[:-1] - density[1:]) / np.diff(ndtr(ends))
    parts = []
    for j in range(d):
        marginal = target.marginal(j)
        if j == 0:
            at, values, tails = _cell(marginal, first, REACH_FIRST)
            parts.append(increasing_schedule(at, values, tails[0], tails[1], np.eye(d)[0]))
        else:
            parts.append(conditional_schedule(d, edges, _conditional(target, middles, knots)))
        edges.append(dyadic(quantile_map(marginal, cuts)))
        middles.append(quantile_map(marginal, means))
    return parts


def _conditional(target: Any, middles: Sequence[np.ndarray], knots: int) -> CellMap:
    """The map of a cell: its law at the representatives."""
    known = tuple(middles)

    def cell_map(cell: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        return _cell(target.line([known[r][c] for r, c in enumerate(cell)]), knots, REACH)[:2]

    return cell_map


def _cell(law: LineLaw, knots: int, reach: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Knots, values and tail slopes of a law, from a grid of 801 points."""
    z = np.linspace(-reach, reach, 801)
    y = quantile_map(law, z)
    slope = np.gradient(log_slope(law, z, y), z)
    wanted = np.cbrt(np.exp(-(z**2) / 2) * slope**2)
    floor = 0.05 * wanted.mean() / wanted.max() if wanted.max() > 0 else 1.0
    at = spread_knots(z, np.exp(-(z**2) / 2), slope, knots, floor)
    values = quantile_map(law, at)
    return at, values, np.exp(log_slope(law, at[[0, -1]], values[[0, -1]]))
