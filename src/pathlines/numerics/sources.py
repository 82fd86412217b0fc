"""Where sequences of tokens come from: a hidden state that moves, and tokens that look at it."""

from __future__ import annotations

from typing import Any

import numpy as np

from pathlines.foundation.errors import ArgumentError, finite_array, positive_integer, require

ROUNDING = 1e-9
"""How far probabilities may be from adding up, and matrices from being symmetric, relative to their size."""


class StateSpace:
    """Linear Gaussian tokens: X_{t+1} = Aᵀ X_t + B_t, Z_{t+1} = Hᵀ X_t + W_{t+1}, cov B = Q, cov W = R, X_0 ~ N(m, Σ).

    Args:
        transition: A, of shape (d, d).
        readout: H, of shape (d, p): a token has p components.
        moves: Q, of shape (d, d), symmetric with eigenvalues ≥ 0.
        noise: R, of shape (p, p), symmetric with eigenvalues > 0.
        spread: Σ, covariance of the first state, eigenvalues ≥ 0; the identity if not given.
        mean: m, mean of the first state, of shape (d,); zero if not given.
    """

    def __init__(
        self, transition: Any, readout: Any, moves: Any, noise: Any, spread: Any = None, mean: Any = None
    ) -> None:
        self.transition = finite_array("transition", transition, ("d", "d")).astype(float)
        d = positive_integer("d", len(self.transition))
        self.readout = finite_array("readout", readout, (d, "p")).astype(float)
        p = self.readout.shape[1]
        require(p > 0, "readout", "have at least one column", readout)
        self.moves = semidefinite("moves", moves, d)
        self.noise = semidefinite("noise", noise, p, positive=True)
        self.spread = semidefinite("spread", np.eye(d) if spread is None else spread, d)
        self.mean = finite_array("mean", np.zeros(d) if mean is None else mean, (d,)).astype(float)

    def checked(self, tokens: Any) -> np.ndarray:
        """Tokens as an array (T, p)."""
        return finite_array("tokens", tokens, ("T", self.readout.shape[1])).astype(float)


class HiddenMarkov:
    """Tokens 0..m of a hidden chain: X_0 ~ μ on D states, X_{t+1} ~ A(X_t, ·), Z_{t+1} ~ C(X_t, ·).

    Args:
        kernel: A, of shape (D, D), rows are probabilities.
        emission: C, of shape (D, m+1) with m ≥ 1, rows are probabilities.
        start: μ, of shape (D,); uniform if not given.
    """

    def __init__(self, kernel: Any, emission: Any, start: Any = None) -> None:
        self.kernel = probabilities("kernel", finite_array("kernel", kernel, ("D", "D")))
        states = positive_integer("D", len(self.kernel))
        self.emission = probabilities("emission", finite_array("emission", emission, (states, "m+1")))
        require(self.emission.shape[1] >= 2, "emission", "have at least two columns", emission)
        even = np.full(states, 1 / states)
        self.start = probabilities("start", finite_array("start", even if start is None else start, (states,)))

    def checked(self, tokens: Any) -> np.ndarray:
        """Tokens as integers, one dimension."""
        found = finite_array("tokens", tokens, ("T",))
        fine = bool(np.all((found == np.rint(found)) & (found >= 0) & (found < self.emission.shape[1])))
        require(fine, "tokens", f"hold whole numbers from 0 to {self.emission.shape[1] - 1}", tokens)
        return found.astype(int)


Source = StateSpace | HiddenMarkov


def semidefinite(name: str, value: Any, size: int, positive: bool = False) -> np.ndarray:
    """A symmetric matrix with eigenvalues ≥ 0, or > 0."""
    matrix = finite_array(name, value, (size, size)).astype(float)
    scale = np.abs(matrix).max()
    require(np.abs(matrix - matrix.T).max() <= ROUNDING * scale, name, "be symmetric", value)
    least = float(np.linalg.eigvalsh(matrix)[0])
    if not (least > 0 if positive else least >= -ROUNDING * scale):
        sign = "> 0" if positive else "≥ 0"
        raise ArgumentError(f"Argument `{name}` must have eigenvalues {sign}, but one is {least:.4g}.")
    return 0.5 * (matrix + matrix.T)


def probabilities(name: str, array: np.ndarray) -> np.ndarray:
    """Rows that are at least 0 and add up to 1."""
    rows = array.astype(float)
    require(bool(np.all(rows >= 0)), name, "have entries ≥ 0", array)
    sums = rows.sum(axis=-1)
    worst = max(np.ravel(sums).tolist(), key=lambda total: abs(total - 1), default=1.0)
    if not abs(worst - 1) <= ROUNDING:
        raise ArgumentError(f"Argument `{name}` must have rows that add up to 1, but one adds up to {worst:.12g}.")
    return rows / sums[..., None]
