"""A3: ridge flow, greedy Gaussianization by increasing maps along directions."""

from __future__ import annotations

import time
from typing import Any, Self

import numpy as np

from pathlines.foundation.errors import ArgumentError, positive_integer
from pathlines.transport.estimator import (
    ESTIMATED,
    FlowEstimator,
    check_covariance,
    checked_goal,
    checked_samples,
    reported,
)
from pathlines.transport.euclid.affine import affine_schedule
from pathlines.transport.euclid.increasing import increasing_schedule
from pathlines.transport.euclid.neighbours import entropy_of, missed
from pathlines.transport.euclid.schedule import EuclideanSchedule
from pathlines.transport.euclid.smoothed import LineMap, smoothed_map

CANDIDATES = 24
SMOOTHINGS = (1.0, 1.6)
MOST_KNOTS = 1000
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
        error: largest KL(target‖flow), estimated from held-out samples with two standard errors; layers are added until
            it is met, and a fit that misses it is refused. The smaller, the more pieces.
        finetune: steps of corrected gradient ascent on the likelihood after the construction (``training.py``; needs
            optax). The more, the nearer to the target, and the dearer: some 10 ms a step for 100 pieces.
        seed: of the directions that are tried.
    """

    def __init__(
        self,
        layers: int = 40,
        knots: int = 16,
        pieces: int | None = None,
        error: float | None = None,
        finetune: int = 0,
        seed: int = 0,
    ) -> None:
        self.layers = layers
        self.knots = knots
        self.pieces = pieces
        self.error = error
        self.finetune = finetune
        self.seed = seed

    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit samples (n, d); every fifth one judges directions, smoothing, the number of layers and the error.

        With ``error`` or ``finetune`` those are not fitted, and KL is estimated from them; otherwise the chosen maps
        see every sample.
        """
        began = time.perf_counter()
        layers, knots = positive_integer("layers", self.layers, 0), positive_integer("knots", self.knots, 2)
        steps, seed = positive_integer("finetune", self.finetune, 0), positive_integer("seed", self.seed, 0)
        if knots > MOST_KNOTS:
            raise ArgumentError(f"Argument `knots` must be at most {MOST_KNOTS}, but is {knots}.")
        data = checked_samples(X)
        n, d = data.shape
        pieces, error = checked_goal(self.pieces, self.error, 4 * d - 1)
        if pieces is not None:
            layers = (pieces - 4 * d + 1) // (knots + 2)
        affine, white = whitened(data)
        apart = np.arange(n) % 5 == 0
        clean = error is not None or steps > 0
        greedy = Greedy(knots, np.random.default_rng(seed), ~apart if clean else np.ones(n, bool), apart)
        flow = greedy.fitted(white, min(layers, 10_000), error)
        if steps and flow.count:
            from pathlines.transport.euclid.training import finetune

            flow = finetune(flow, white, steps)
        found = entropy_of(flow.backward(white[apart])[0]) if clean else None
        if error is not None and found is not None and found.bound > error:
            raise missed(error, found, n, "give more samples, layers or `finetune` steps")
        self.schedule_, self.n_features_in_ = flow.compose(affine), d
        held = float(self.schedule_.log_prob(data[apart]).mean()) if steps else greedy.score + _log_det(affine)
        errors = {} if found is None else {"kl": found.kl, "kl_error": found.error}
        method = "held-out likelihood" if found is None else ESTIMATED
        self.report_ = reported(self.schedule_, time.perf_counter() - began, method, held_out=held, **errors)
        return self


def whitened(data: np.ndarray) -> tuple[EuclideanSchedule, np.ndarray]:
    """The affine schedule to the data's mean and covariance, and the data moved back."""
    root = np.linalg.cholesky(check_covariance(data))
    return affine_schedule(data.mean(0), root), np.linalg.solve(root, (data - data.mean(0)).T).T


def _log_det(affine: EuclideanSchedule) -> float:
    """What an affine schedule adds to the log-density of data, anywhere."""
    return -float(affine.forward(np.ones((1, affine.d)))[1][0])


class Greedy:
    """Layers chosen one after another by what they gain on the rows ``apart``; maps are fitted to ``rows``."""

    def __init__(self, knots: int, rng: np.random.Generator, rows: np.ndarray, apart: np.ndarray) -> None:
        self.knots, self.rng, self.rows, self.apart = knots, rng, rows, apart
        self.score = 0.0

    def fitted(self, white: np.ndarray, layers: int, error: float | None = None) -> EuclideanSchedule:
        """At most that many layers, from the Gaussian to the whitened data; fewer where none gains or ``error`` is met.

        ``score`` is then the mean log-density of the held-out rows.
        """
        d = white.shape[1]
        flow, idle = EuclideanSchedule.empty(d), 0
        self.score = -0.5 * float(np.mean(np.sum(white[self.apart] ** 2, axis=1))) - d / 2 * np.log(2 * np.pi)
        for _ in range(layers if d > 1 else min(layers, 1)):
            if error is not None and entropy_of(white[self.apart]).bound <= error:
                break
            gain, direction, smoothing = self._best(white)
            if gain <= 0:
                idle += 1
                if idle == PATIENCE:
                    break
                continue
            idle, self.score = 0, self.score + gain
            line = smoothed_map(white[self.rows] @ direction, self.knots, smoothing)
            layer = increasing_schedule(*line, direction)
            white, flow = layer.backward(white)[0], layer.compose(flow)
        return flow

    def _best(self, white: np.ndarray) -> tuple[float, np.ndarray, float]:
        ways = self.rng.standard_normal((CANDIDATES, white.shape[1]))
        ways /= np.linalg.norm(ways, axis=1, keepdims=True)
        tried = [(_gain(white @ w, self.apart, self.knots, s), k, s) for k, w in enumerate(ways) for s in SMOOTHINGS]
        gain, k, smoothing = max(tried)
        return gain, ways[k], smoothing


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
