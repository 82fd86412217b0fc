"""A6: a vector field that is an average of neurons, followed by running a few of them one after another."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from scipy.special import ndtri

from pathlines.foundation.errors import (
    ArgumentError,
    a_function,
    finite_array,
    finite_number,
    positive_integer,
    require,
)
from pathlines.transport.estimator import FlowEstimator, checked_goal, reported
from pathlines.transport.euclid.schedule import EuclideanSchedule
from pathlines.transport.schedule import check_count

MOST = 1 << 16
PROBES = 500


class MaureyFlow(FlowEstimator):
    """The flow of v(x) = E[w (a·x + b)₊] for a time T by M neurons, each run for T/M.

    Drawn independently they err by M^{-1/2}, with a constant of second moments only and no curse of dimension
    (arXiv:2602.08606). In the order of a low-discrepancy sequence they err by about 1/M in one parameter [observed,
    not proved]. You will see shears only when w ⟂ a: log-determinants are then zero. Good values: M = 1024, order
    "golden". Cost O(M) to build.

    Args:
        neurons: from uniform numbers (M, q) in the unit cube to (w, a, b), of shapes (M, d), (M, d), (M,).
        parameters: q, how many uniform numbers a neuron takes. The more, the richer the field.
        horizon: T. The longer, the further points go.
        order: "golden" (a Kronecker sequence) or "random".
        pieces: M; 1024 if neither it nor ``error`` is given. The more, the smaller the error.
        error: root mean square change of the map, on N(0, I), when M doubles; M grows until it is met. The smaller, the
            more pieces.
        seed: of the random order.
    """

    def __init__(
        self,
        neurons: Callable[[np.ndarray], Any],
        parameters: int = 1,
        horizon: float = 1.0,
        order: str = "golden",
        pieces: int | None = None,
        error: float | None = None,
        seed: int = 0,
    ) -> None:
        self.neurons = neurons
        self.parameters = parameters
        self.horizon = horizon
        self.order = order
        self.pieces = pieces
        self.error = error
        self.seed = seed

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Draw the neurons; X is ignored."""
        began = time.perf_counter()
        pieces, error = checked_goal(self.pieces, self.error, 1)
        count = pieces or (64 if error is not None else 1024)
        flow = self._drawn(count)
        probes = np.random.default_rng(0).standard_normal((PROBES, flow.d))
        change = None
        while error is not None:
            finer = self._drawn(2 * count)
            gap = finer.forward(probes)[0] - flow.forward(probes)[0]
            change = float(np.sqrt(np.mean(np.sum(gap**2, axis=1))))
            flow, count = finer, 2 * count
            if change <= error:
                break
            if count >= MOST:
                raise ArgumentError(
                    f"Argument `error` = {error:g} was not met by {count} pieces (changed by {change:.3g})."
                )
        self.schedule_, self.n_features_in_ = flow, flow.d
        said = "" if change is None else f", map changed by {change:.3g} when M doubled"
        self.report_ = reported(flow, time.perf_counter() - began, f"{self.order} order{said}")
        return self

    def transform(self, X: Any) -> np.ndarray:
        """The flow map for the time T."""
        return self._fitted().forward(self._data(X))[0]

    def inverse_transform(self, Z: Any) -> np.ndarray:
        """Its exact inverse."""
        return self._fitted().backward(self._data(Z))[0]

    def _drawn(self, count: int) -> EuclideanSchedule:
        q = positive_integer("parameters", self.parameters)
        check_count(count)
        require(self.order in ("golden", "random"), "order", "be 'golden' or 'random'", self.order)
        horizon = finite_number("horizon", self.horizon, 0.0, open_low=True)
        if self.order == "golden":
            u = kronecker(count, q)
        else:
            u = np.random.default_rng(positive_integer("seed", self.seed, 0)).random((count, q))
        try:
            w, a, b = a_function("neurons", self.neurons)(u)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"Argument `neurons` must send (M, q) numbers to (w, a, b), but: {error}.") from None
        w = finite_array("w of the neurons", w, (count, "d"))
        return EuclideanSchedule(w, a, b, np.full(count, horizon / count))


def kronecker(count: int, q: int) -> np.ndarray:
    """frac(k α), α_i = g^{-i}, g the positive root of g^{q+1} = g + 1: golden angles for q = 1."""
    g = 2.0
    for _ in range(60):
        g = (1 + g) ** (1 / (q + 1))
    alpha = g ** -np.arange(1.0, q + 1)
    return np.mod((np.arange(count)[:, None] + 0.5) * alpha, 1.0)


def rotation_neurons(d: int) -> Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Neurons of v(x) = Jx = E[2d Ja (a·x)₊], a uniform on the sphere, J the rotation of coordinates (1,2), (3,4), …

    In the plane one uniform number is the angle of a; in d > 2, d of them are normal quantiles of its direction.
    """
    if positive_integer("d", d, 2) % 2:
        raise ArgumentError(f"Argument `d` must be even, but is {d}.")
    turn = np.kron(np.eye(d // 2), np.array([[0.0, -1.0], [1.0, 0.0]]))

    def neurons(u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        if d == 2:
            a = np.column_stack([np.cos(2 * np.pi * u[:, 0]), np.sin(2 * np.pi * u[:, 0])])
        else:
            z = ndtri(np.clip(u, 1e-15, 1 - 1e-15))
            a = z / np.linalg.norm(z, axis=1, keepdims=True)
        return 2 * d * a @ turn.T, a, np.zeros(len(u))

    return neurons
