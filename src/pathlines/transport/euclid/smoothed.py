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


def smoothed_map(sample: np.ndarray, knots: int, smoothing: float, tail: float = 20.0) -> LineMap:
    """The map with that many knots, the outer ones at the levels tail/n and 1 - tail/n."""
    n, spread = len(sample), float(sample.std())
    if not spread > 1e-12 * (1 + abs(float(sample.mean()))):
        raise ArgumentError("The samples have a singular covariance: they do not vary along some direction.")
    quartiles = np.subtract(*np.quantile(sample, [0.75, 0.25])) / 1.34
    width = smoothing * 0.9 * min(spread, quartiles if quartiles > 0 else spread) * n**-0.2
    y, cdf = _kernel_cdf(sample, width)
    edge = float(ndtri(min(0.1, tail / n)))
    z = np.linspace(edge, -edge, GRID)
    quantiles = np.interp(ndtr(z), cdf, y)
    logs = np.log(np.maximum(np.gradient(quantiles, z), 1e-12))
    at = spread_knots(z, np.exp(-(z**2) / 2), np.gradient(logs, z), knots, 0.2)
    values = np.interp(at, z, quantiles)
    values = np.maximum.accumulate(values + np.arange(knots) * 1e-12 * spread)
    slopes = np.diff(values) / np.diff(at)
    left = _tail_slope(values[0] - sample[sample < values[0]], -at[0], slopes[0])
    right = _tail_slope(sample[sample > values[-1]] - values[-1], at[-1], slopes[-1])
    return LineMap(at, values, left, right)


def _kernel_cdf(sample: np.ndarray, width: float) -> tuple[np.ndarray, np.ndarray]:
    """A grid and the smoothed distribution function on it, strictly increasing."""
    low, high = sample.min() - REACH * width, sample.max() + REACH * width
    y = np.linspace(low, high, GRID)
    step = y[1] - y[0]
    place = (sample - low) / step
    cell = np.minimum(place.astype(int), GRID - 2)
    part = place - cell
    mass = np.bincount(cell, 1 - part, GRID) + np.bincount(cell + 1, part, GRID)
    half = np.arange(-GRID // 2, GRID // 2 + 1) * step
    kernel = np.diff(ndtr(np.append(half - step / 2, half[-1] + step / 2) / width))
    density = np.maximum(fftconvolve(mass, kernel, mode="same"), 0.0) + 1e-12 * len(sample) / GRID
    cdf = np.cumsum(density) - density / 2
    return y, cdf / density.sum()


def _tail_slope(beyond: np.ndarray, end: float, inner: float) -> float:
    """dy/dz in a tail: the reciprocal of the likeliest dz/dy; the inner slope if fewer than three lie beyond."""
    if len(beyond) < 3:
        return float(inner)
    one, two = beyond.sum(), (beyond**2).sum()
    slope = (-end * one + np.sqrt((end * one) ** 2 + 4 * len(beyond) * two)) / (2 * two)
    return float(1 / slope)
