"""A3: ridge flow, greedy Gaussianization by increasing maps along directions."""

from __future__ import annotations

import time
from typing import Any, Self

import numpy as np

from pathlines.foundation.errors import ArgumentError, positive_integer
from pathlines.transport.estimator import FlowEstimator, checked_goal, checked_samples, reported
from pathlines.transport.euclid.affine import affine_schedule
from pathlines.transport.euclid.increasing import increasing_schedule
from pathlines.transport.euclid.schedule import EuclideanSchedule
from pathlines.transport.euclid.smoothed import LineMap, smoothed_map

CANDIDATES = 24
SMOOTHINGS = (1.0, 1.6)
PATIENCE = 4
"""Layers in a row without a gain on held-out samples after which the flow is complete."""


class RidgeFlow(FlowEstimator):
    """Samples in R^d to N(0, I) by layers, each an increasing piecewise linear map along one direction.

    Whitening (4d - 1 pieces), then layers of K + 2 pieces. A layer whose one-dimensional map is exact gains the
    negentropy of the marginal: KL_before - KL_after = KL(marginal_a‖N(0, 1)) [derived], so the direction with the
    largest gain on held-out samples is taken, until there is none. You will see few layers do most of the work. Good
    values: layers = 40, knots = 16; any d. Cost: candidates × layers × O(n). The pieces are those of arXiv:2412.19366.

    Args:
        layers: largest number of layers. The more, the nearer to the target, and the dearer.
        knots: K of each layer. The more, the finer each layer.
        pieces: largest number of pieces; it overrides ``layers``. The more, the nearer to the target, and the dearer.
        seed: of the directions that are tried.
    """

    def __init__(self, layers: int = 40, knots: int = 16, pieces: int | None = None, seed: int = 0) -> None:
        self.layers = layers
        self.knots = knots
        self.pieces = pieces
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit samples (n, d); every fifth one judges directions, smoothing and the number of layers."""
        began = time.perf_counter()
        data = checked_samples(X)
        d = data.shape[1]
        layers, knots = positive_integer("layers", self.layers, 0), positive_integer("knots", self.knots, 2)
        pieces = checked_goal(self.pieces, None, 4 * d - 1)[0]
        if pieces is not None:
            layers = (pieces - 4 * d + 1) // (knots + 2)
        affine, white = _whitened(data)
        flow, score = _greedy(
            white, min(layers, 10_000), knots, np.random.default_rng(positive_integer("seed", self.seed, 0))
        )
        self.schedule_, self.n_features_in_ = flow.compose(affine), d
        held = score - float(np.log(np.diagonal(np.linalg.cholesky(np.cov(data.T).reshape(d, d)))).sum())
        self.report_ = reported(self.schedule_, time.perf_counter() - began, "held-out likelihood", held_out=held)
        return self


def _whitened(data: np.ndarray) -> tuple[EuclideanSchedule, np.ndarray]:
    """The affine schedule to the data's mean and covariance, and the data moved back."""
    covariance = np.cov(data.T).reshape(data.shape[1], data.shape[1])
    values = np.linalg.eigvalsh(covariance)
    if not values[0] > 1e-12 * max(values[-1], 1e-300):
        raise ArgumentError(
            f"The samples have a singular covariance (eigenvalues from {values[0]:.3g} to {values[-1]:.3g})."
        )
    root = np.linalg.cholesky(covariance)
    return affine_schedule(data.mean(0), root), np.linalg.solve(root, (data - data.mean(0)).T).T


def _greedy(white: np.ndarray, layers: int, knots: int, rng: np.random.Generator) -> tuple[EuclideanSchedule, float]:
    """The layers, from the Gaussian to the whitened data, and the mean log-density of the held-out ones."""
    apart = np.arange(len(white)) % 5 == 0
    d = white.shape[1]
    flow, idle = EuclideanSchedule.empty(d), 0
    score = -0.5 * float(np.mean(np.sum(white[apart] ** 2, axis=1))) - d / 2 * np.log(2 * np.pi)
    for _ in range(layers if d > 1 else min(layers, 1)):
        ways = rng.standard_normal((CANDIDATES, d))
        ways /= np.linalg.norm(ways, axis=1, keepdims=True)
        gain, way, smoothing = max((_gain(white @ w, apart, knots, s), tuple(w), s) for w in ways for s in SMOOTHINGS)
        if gain <= 0:
            idle += 1
            if idle == PATIENCE:
                break
            continue
        idle, score = 0, score + gain
        direction = np.array(way)
        layer = increasing_schedule(*smoothed_map(white @ direction, knots, smoothing), direction)
        white = layer.backward(white)[0]
        flow = layer.compose(flow)
    return flow, score


def _gain(values: np.ndarray, apart: np.ndarray, knots: int, smoothing: float) -> float:
    """What the layer along a direction adds to the mean log-density of held-out samples."""
    line = smoothed_map(values[~apart], knots, smoothing)
    z, logs = _back(line, values[apart])
    return float(np.mean(logs - z**2 / 2 + values[apart] ** 2 / 2))


def _back(line: LineMap, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """z and log dz/dy of an increasing map."""
    slopes = np.concatenate([[line.left], np.diff(line.values) / np.diff(line.knots), [line.right]])
    j = np.searchsorted(line.values, y, side="right")
    anchor = np.maximum(j - 1, 0)
    return line.knots[anchor] + (y - line.values[anchor]) / slopes[j], -np.log(slopes[j])
