"""The increasing map from N(0, 1) to a smoothed sample on the line.

The law is the Gaussian kernel estimate of the sample, F_h = F_n * N(0, h²), h a multiple of Silverman's 0.9 min(σ,
IQR/1.34) n^{-1/5}, by linear binning and one FFT: O(n + G log G). Between its outer knots it is interpolated; tail
slopes maximise the likelihood of the points beyond: m = (-YS₁ + √(Y²S₁² + 4kS₂))/(2S₂) for k exceedances with sums
S₁, S₂ of first and second powers beyond a knot at |z| = Y [derived].
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.signal import fftconvolve
from scipy.special import ndtr, ndtri

from pathlines.foundation.errors import ArgumentError
from pathlines.transport.euclid.knots import spread_knots

GRID = 1024
REACH = 5.0
"""Bandwidths beyond the sample that the grid covers."""


class LineMap(NamedTuple):
    """Knots in the Gaussian coordinate, their values, and the slopes beyond."""

    knots: np.ndarray
    values: np.ndarray
    left: float
    right: float


def smoothed_map(
    sample: np.ndarray, knots: int, smoothing: float, tail: float = 20.0, weights: np.ndarray | None = None
) -> LineMap:
    """The map with that many knots, the outer ones at the levels tail/n and 1 - tail/n.

    With ``weights`` n is the number of equally weighted points that would know as much, (Σw)²/Σw².
    """
    w = np.ones(len(sample)) if weights is None else weights
    n = float(w.sum() ** 2 / (w @ w))
    mean = float(w @ sample / w.sum())
    spread = float(np.sqrt(w @ (sample - mean) ** 2 / w.sum()))
    if not spread > 1e-12 * (1 + abs(mean)):
        raise ArgumentError("The samples have a singular covariance: they do not vary along some direction.")
    y, cdf = _kernel_cdf(sample, w, smoothing * 0.9 * min(spread, _quartiles(sample, w) or spread) * n**-0.2)
    edge = float(ndtri(min(0.1, tail / n)))
    z = np.linspace(edge, -edge, GRID)
    quantiles = np.interp(ndtr(z), cdf, y)
    logs = np.log(np.maximum(np.gradient(quantiles, z), 1e-12))
    at = spread_knots(z, np.exp(-(z**2) / 2), np.gradient(logs, z), knots, 0.2)
    values = np.interp(at, z, quantiles)
    values = np.maximum.accumulate(values + np.arange(knots) * 1e-12 * spread)
    slopes = np.diff(values) / np.diff(at)
    low, high = sample < values[0], sample > values[-1]
    left = _tail_slope(values[0] - sample[low], w[low], -at[0], slopes[0])
    right = _tail_slope(sample[high] - values[-1], w[high], at[-1], slopes[-1])
    return LineMap(at, values, left, right)


def _quartiles(sample: np.ndarray, weights: np.ndarray) -> float:
    """(Q₃ - Q₁)/1.34, a standard deviation that outliers do not move."""
    order = np.argsort(sample)
    levels = np.cumsum(weights[order])
    low, high = np.interp([0.25 * levels[-1], 0.75 * levels[-1]], levels, sample[order])
    return float(high - low) / 1.34


def _kernel_cdf(sample: np.ndarray, weights: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
    """A grid and the smoothed distribution function on it, strictly increasing."""
    low, high = sample.min() - REACH * width, sample.max() + REACH * width
    y = np.linspace(low, high, GRID)
    step = y[1] - y[0]
    place = (sample - low) / step
    cell = np.minimum(place.astype(int), GRID - 2)
    part = (place - cell) * weights
    mass = np.bincount(cell, weights - part, GRID) + np.bincount(cell + 1, part, GRID)
    half = np.arange(-GRID // 2, GRID // 2 + 1) * step
    kernel = np.diff(ndtr(np.append(half - step / 2, half[-1] + step / 2) / width))
    density = np.maximum(fftconvolve(mass, kernel, mode="same"), 0.0) + 1e-12 * weights.sum() / GRID
    cdf = np.cumsum(density) - density / 2
    return y, cdf / density.sum()


def _tail_slope(beyond: np.ndarray, weights: np.ndarray, end: float, inner: float) -> float:
    """dy/dz in a tail: the reciprocal of the likeliest dz/dy; the inner slope if fewer than three lie beyond."""
    if len(beyond) < 3 or weights.sum() <= 0:
        return float(inner)
    one, two = weights @ beyond, weights @ beyond**2
    slope = (-end * one + np.sqrt((end * one) ** 2 + 4 * weights.sum() * two)) / (2 * two)
    return float(1 / slope)
