"""Triangular and ridge flows: rate in the plane, chain rule, conditional sampling, gain of a layer.

Constructive conditional normalizing flows, arXiv:2602.08606; the constructions and their laws are derived.
"""

from __future__ import annotations

from functools import cache
from typing import Annotated

import numpy as np
from msgspec import Meta
from scipy.special import ndtr, ndtri

from pathlines.claim.base import Evidence, claim
from pathlines.claim.fitting import too_large
from pathlines.claim.tolerance import absolute, at_most, exactly, relative
from pathlines.claim.transport.vocabulary import Draws
from pathlines.claim.transport.wrong_pieces import misdirected
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.transport import CONDITIONAL_FLOWS
from pathlines.foundation.setting import Setting, means
from pathlines.transport.euclid.increasing import increasing_schedule
from pathlines.transport.euclid.smoothed import LineMap, smoothed_map
from pathlines.transport.euclid.triangular import WIDTH_OF_BINS, density_parts
from pathlines.transport.targets import GaussianMixture

PLANE = GaussianMixture(
    [0.35, 0.35, 0.3],
    [[-1.5, 0], [1.2, 1], [0.5, -1.8]],
    [[[0.5, 0.2], [0.2, 0.4]], [[0.4, -0.15], [-0.15, 0.3]], [[0.6, 0], [0, 0.2]]],
)
"""Target B."""
TABLE = {(16, 8, 12): 4.59e-2, (32, 16, 16): 1.38e-2, (64, 32, 32): 3.53e-3, (96, 64, 64): 9.1e-4}
ERRORS = {(16, 8, 12): 3e-4, (32, 16, 16): 2e-4, (64, 32, 32): 8e-5, (96, 64, 64): 4e-5}
"""KL of another implementation with 10⁶ draws, and its standard errors."""

Size = tuple[Annotated[int, Meta(ge=4)], Annotated[int, Meta(ge=2)], Annotated[int, Meta(ge=3)]]


class Sizes(Setting):
    """Flows to target B."""

    sizes: Annotated[tuple[Size, ...], means("knots of x₁, bins, knots in each bin", "K₁, n, K₂")] = (
        (16, 8, 12),
        (32, 16, 16),
    )
    width: Annotated[of.Positive, means("bins are quantiles of N(0, width²)")] = 1.6
    draws: Draws = 100_000
    seed: of.Seed = 0


@cache
def _entropies(s: Sizes) -> list[tuple[int, np.ndarray, np.ndarray]]:
    """Pieces, and for every draw the log-ratios of the first coordinate and of the second given the first."""
    y = PLANE.sample(s.draws, abs(s.seed) + 17)
    joint, first = PLANE.log_prob(y), PLANE.line().logpdf(y[:, 0])
    found = []
    for k, bins, knots in s.sizes:
        one, two = density_parts(PLANE, bins, knots, k, s.width)
        middle, logs = two.backward(y)
        marginal = one.log_prob(middle) + middle[:, 1] ** 2 / 2 + 0.5 * np.log(2 * np.pi)
        conditional = logs - middle[:, 1] ** 2 / 2 - 0.5 * np.log(2 * np.pi)
        found.append((one.count + two.count, first - marginal, joint - first - conditional))
    return found


def simulate_rate(s: Sizes) -> Evidence:
    """P·KL; log-ratios g are averaged as g + e^{-g} - 1, which has the same mean and less noise."""
    values, errors = [], []
    for pieces, one, two in _entropies(s):
        gap = one + two
        gap = gap + np.expm1(-gap)
        values.append(pieces * gap.mean())
        errors.append(pieces * gap.std() / np.sqrt(len(gap)))
    return Evidence({"P·KL": values, "pieces": [p for p, _, _ in _entropies(s)]}, {"P·KL": errors})


def _count(size: Size) -> int:
    first, bins, knots = size
    return first + 2 + 4 * (bins - 1) + bins * knots + 2


def predict_rate(s: Sizes) -> Evidence:
    """Another implementation with 10⁶ draws, at the sizes it was run with; bounded while P grows."""
    pieces = [_count(z) for z in s.sizes]
    inside = all(z in TABLE for z in s.sizes) and s.width == 1.6
    found = [_count(z) * TABLE[z] for z in s.sizes] if inside else None
    errors = {"P·KL": [_count(z) * ERRORS[z] for z in s.sizes]} if inside else {}
    return Evidence({"P·KL": found, "pieces": pieces}, errors, source="reference value")


claim(
    "transport/R09",
    CONDITIONAL_FLOWS,
    "KL falls like 1/P in the plane",
    "Stack – rearrange – unstack with n bins and K₂ knots has 4(n−1) + nK₂ + K₁ + 4 pieces, and P·KL stays bounded as "
    "P grows (KL ~ P^{−2/d}): 6.6, 4.9, 4.3, 4.0 for target B.",
    where="derived; the ε^{−d} cost of general maps is the paper's",
    models=(),
    quick=Sizes(),
    full=Sizes(sizes=((16, 8, 12), (32, 16, 16), (64, 32, 32), (96, 64, 64)), draws=1_000_000),
    within={
        "P·KL": relative(0.01, "two to three digits of the reference, and four standard errors", errors=4.0),
        "pieces": exactly("a count"),
    },
    simulate=simulate_rate,
    predict=predict_rate,
)


def simulate_chain_rule(s: Sizes) -> Evidence:
    """Joint log-ratio by the whole schedule, less the two parts."""
    y = PLANE.sample(s.draws, abs(s.seed) + 17)
    gaps = []
    for (k, bins, knots), (_, one, two) in zip(s.sizes, _entropies(s)):
        first, second = density_parts(PLANE, bins, knots, k, s.width)
        whole = PLANE.log_prob(y) - first.compose(second).log_prob(y)
        gaps.append(float(np.mean(whole) - np.mean(one) - np.mean(two)))
    return Evidence({"joint − marginal − conditional": gaps, "marginal KL is less": _shares(s)})


def _shares(s: Sizes) -> list[float]:
    return [float(np.mean(one) < np.mean(two)) for _, one, two in _entropies(s)]


def predict_chain_rule(s: Sizes) -> Evidence:
    """KL_joint = KL_marginal + E KL_conditional."""
    return Evidence(
        {"joint − marginal − conditional": np.zeros(len(s.sizes)), "marginal KL is less": [1.0] * len(s.sizes)}
    )


claim(
    "transport/R10",
    CONDITIONAL_FLOWS,
    "chain rule",
    "KL_joint = KL_marginal + E KL_conditional of a triangular flow, on the same sample; bins cost more than knots.",
    where="derived; the chain rule of relative entropy",
    models=(),
    quick=Sizes(draws=20_000),
    full=Sizes(sizes=((64, 32, 32),), draws=100_000),
    within={
        "joint − marginal − conditional": absolute(1e-9, "rounding of ramps of slope 10⁷ to 10⁸"),
        "marginal KL is less": exactly("yes or no"),
    },
    simulate=simulate_chain_rule,
    predict=predict_chain_rule,
    mistakes=(too_large("_entropies", "log-ratios of both coordinates {:.0%} too large"),),
)


class Conditionals(Setting):
    """Draws given the first coordinate."""

    given: Annotated[of.Vector, means("first coordinate", "x")] = (-1.5, 0.0, 1.0)
    bins: Annotated[Annotated[int, Meta(ge=2)], means("bins of the first coordinate", "n")] = 32
    knots: Annotated[Annotated[int, Meta(ge=3)], means("knots in each bin", "K₂")] = 32
    n: Draws = 20_000
    seed: of.Seed = 0


def simulate_conditional(s: Conditionals) -> Evidence:
    """Pushes (x, z) by the pieces of the second coordinate; quartiles and the distance to the exact law."""
    part = density_parts(PLANE, s.bins, s.knots, 2 * s.knots)[1]
    rng = np.random.default_rng([4, abs(s.seed)])
    changes, distances = [], []
    for x in s.given:
        drawn = part.forward(np.column_stack([np.full(s.n, x), rng.standard_normal(s.n)]))[0]
        changes.append(float(np.abs(drawn[:, 0] - x).max()))
        levels = PLANE.line([x]).cdf(np.sort(drawn[:, 1]))
        distances.append(float(np.abs(levels - (np.arange(s.n) + 0.5) / s.n).max()))
    return Evidence({"change of x": changes, "Kolmogorov distance": distances})


def predict_conditional(s: Conditionals) -> Evidence:
    """Kolmogorov's quantile at 10⁻⁶, the distance of the laws at x and at its bin's representative, and the knots'.

    Between knots of spacing h the map is off by h²|L'|/8 in the Gaussian coordinate: 4/K² for h = 9/K and |L'| ≤ 1, and
    more of them stand where |L'| is larger.
    """
    y = np.linspace(-6, 6, 2001)
    cuts = WIDTH_OF_BINS * ndtri(np.arange(1, s.bins) / s.bins)
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    means_of_bins = np.diff(-np.exp(-(ends**2) / 2)) / np.sqrt(2 * np.pi) / np.diff(ndtr(ends))
    grid = np.linspace(-8, 8, 200_001)
    edges, middles = (np.interp(ndtr(z), PLANE.line().cdf(grid), grid) for z in (cuts, means_of_bins))
    bounds = []
    for x in s.given:
        near = middles[np.searchsorted(edges, x)]
        apart = np.abs(PLANE.line([x]).cdf(y) - PLANE.line([near]).cdf(y)).max()
        bounds.append(np.sqrt(np.log(2e6) / 2 / s.n) + apart + 4 / s.knots**2)
    return Evidence({"change of x": np.zeros(len(s.given)), "Kolmogorov distance": bounds})


claim(
    "transport/R11",
    CONDITIONAL_FLOWS,
    "conditional sampling",
    "Pushing (x, z), z ~ N(0,1), through the pieces of y alone samples y given x, and leaves x exactly as it is.",
    where="derived; conditional flows are the paper's subject",
    models=(),
    quick=Conditionals(),
    full=Conditionals(given=(-2.0, -1.5, -0.5, 0.0, 0.5, 1.0, 2.0), bins=64, knots=64, n=200_000),
    within={
        "change of x": exactly("no piece of y moves x"),
        "Kolmogorov distance": at_most("sampling at a level of 10⁻⁶, the width of the bin, the knots"),
    },
    simulate=simulate_conditional,
    predict=predict_conditional,
    mistakes=(misdirected("density_parts"),),
)


class Layer(Setting):
    """One layer of a ridge flow."""

    angle: Annotated[float, means("direction of the layer", unit="radians")] = 0.6
    knots: Annotated[Annotated[int, Meta(ge=3)], means("knots", "K")] = 16
    n: Draws = 5000
    seed: of.Seed = 0


def _layer(s: Layer) -> tuple[np.ndarray, np.ndarray, LineMap]:
    data = PLANE.sample(s.n, abs(s.seed) + 5)
    way = np.array([np.cos(s.angle), np.sin(s.angle)])
    return data, way, smoothed_map(data @ way, s.knots, 1.0)


def simulate_gain(s: Layer) -> Evidence:
    """Mean log-density of the sample with the layer, less that without."""
    data, way, line = _layer(s)
    layer = increasing_schedule(*line, way)
    without = -0.5 * np.sum(data**2, axis=1) - np.log(2 * np.pi)
    return Evidence({"gain": float(np.mean(layer.log_prob(data) - without))})


def predict_gain(s: Layer) -> Evidence:
    """The same on the line alone: mean of log dz/dy - z²/2 + y²/2, z by linear interpolation."""
    data, way, (knots, values, left, right) = _layer(s)
    y = data @ way
    z = np.interp(y, values, knots)
    z = z + np.minimum(y - values[0], 0) / left + np.maximum(y - values[-1], 0) / right
    slopes = np.append(np.append(left, np.diff(values) / np.diff(knots)), right)
    cell = np.sum(y[:, None] >= values, axis=1)
    return Evidence({"gain": float(np.mean(-np.log(slopes[cell]) - z**2 / 2 + y**2 / 2))}, source="one dimension")


claim(
    "transport/R12",
    CONDITIONAL_FLOWS,
    "gain of a layer",
    "A layer along a adds to the mean log-density what it adds in one dimension: KL_before − KL_after is the "
    "negentropy of the marginal when its map is exact.",
    where="derived",
    models=(),
    quick=Layer(),
    within={"gain": absolute(1e-11, "rounding of a mean of numbers of order ten")},
    simulate=simulate_gain,
    predict=predict_gain,
)
