"""The potential of a perceptron whose output weights follow its input weights.

    v(x) = Σ_j ω_j φ(a_j·x + b_j),   φ' = 2σ,   ½∇v(x) = Σ_j ω_j σ(a_j·x + b_j) a_j

(Perceptrons and localization of attention's mean-field landscape, arXiv:2601.21366). Primitives φ: relu s₊², linear s²,
tanh 2 ln cosh s, erf 2[s erf s + (e^{-s²}-1)/√π], and gelu s²Φ(s) + s p(s) - Φ(s) with the normal distribution function
Φ and density p. Without its last term, as in the released code of the paper, φ' is off by p(s) (derived).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from pathlines.foundation.errors import UnknownNameError, finite_array, require
from pathlines.foundation.papers import PERCEPTRON_LANDSCAPE

SOURCES = (PERCEPTRON_LANDSCAPE,)
Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Activation:
    """σ, its derivative and the primitive φ of 2σ."""

    value: Function
    slope: Function
    primitive: Function


def _density(s: np.ndarray) -> np.ndarray:
    return np.exp(-s * s / 2) / np.sqrt(2 * np.pi)


def gelu_primitive_as_released(s: np.ndarray) -> np.ndarray:
    """s²Φ(s) + s p(s), the primitive of 2sΦ(s) + p(s) and not of 2sΦ(s)."""
    return s * s * special.ndtr(s) + s * _density(s)


ACTIVATIONS = {
    "relu": Activation(lambda s: np.maximum(s, 0), lambda s: (s > 0).astype(float), lambda s: np.maximum(s, 0) ** 2),
    "gelu": Activation(
        lambda s: s * special.ndtr(s),
        lambda s: special.ndtr(s) + s * _density(s),
        lambda s: gelu_primitive_as_released(s) - special.ndtr(s),
    ),
    "tanh": Activation(
        np.tanh, lambda s: 1 - np.tanh(s) ** 2, lambda s: 2 * (np.logaddexp(s, -s) - np.log(2))
    ),
    "erf": Activation(
        special.erf,
        lambda s: 2 / np.sqrt(np.pi) * np.exp(-s * s),
        lambda s: 2 * (s * special.erf(s) + np.expm1(-s * s) / np.sqrt(np.pi)),
    ),
    "linear": Activation(lambda s: s, np.ones_like, lambda s: s * s),
}  # fmt: skip


@dataclass(frozen=True)
class Potential:
    """v: rows a_j of ``directions`` (m, d), ``strengths`` ω_j, ``biases`` b_j, the name of the activation."""

    directions: np.ndarray
    strengths: np.ndarray
    biases: np.ndarray
    activation: str

    @property
    def d(self) -> int:
        """Ambient dimension."""
        return self.directions.shape[1]

    @property
    def lengths(self) -> np.ndarray:
        """|a_j|."""
        return np.linalg.norm(self.directions, axis=1)

    def _inputs(self, x: np.ndarray) -> np.ndarray:
        return x @ self.directions.T + self.biases

    def value(self, x: np.ndarray) -> np.ndarray:
        """v at each row of x."""
        return ACTIVATIONS[self.activation].primitive(self._inputs(x)) @ self.strengths

    def half_gradient(self, x: np.ndarray) -> np.ndarray:
        """½∇v in R^d at each row: the perceptron itself, before projection to the sphere."""
        return (ACTIVATIONS[self.activation].value(self._inputs(x)) * self.strengths) @ self.directions

    def half_hessian(self, x: np.ndarray) -> np.ndarray:
        """½∇²v in R^d, (n, d, d)."""
        slopes = ACTIVATIONS[self.activation].slope(self._inputs(x)) * self.strengths
        return np.einsum("nj,ja,jb->nab", slopes, self.directions, self.directions)

    def pulls(self) -> np.ndarray:
        """c_j = -ω_j σ(|a_j|+b_j)|a_j|: the rate at which descent brings a token near a_j/|a_j| to it, were the neuron
        alone. Positive for an attracting neuron.
        """
        return -self.strengths * ACTIVATIONS[self.activation].value(self.lengths + self.biases) * self.lengths


def perceptron_potential(directions: Any, strengths: Any, biases: Any = None, activation: str = "relu") -> Potential:
    """Check and keep the neurons; ``biases`` default to zero."""
    a = finite_array("directions", directions, ("m", "d")).astype(float)
    require(a.shape[0] > 0 and a.shape[1] >= 2, "directions", "hold at least one row, of length ≥ 2", a)
    require(bool(np.all(np.any(a != 0, axis=1))), "directions", "have no zero row", a)
    omega = finite_array("strengths", strengths, (len(a),)).astype(float)
    b = np.zeros(len(a)) if biases is None else finite_array("biases", biases, (len(a),)).astype(float)
    if activation not in ACTIVATIONS:
        raise UnknownNameError(f"There is no activation `{activation}`; there are {', '.join(ACTIVATIONS)}.")
    return Potential(a, omega, b, activation)


def on_circle(angles: Any) -> np.ndarray:
    """Rows (cos θ, sin θ)."""
    theta = finite_array("angles", angles, ("m",)).astype(float)
    return np.stack([np.cos(theta), np.sin(theta)], axis=-1)
