"""Chains with two or three heads to draw from: the laws, what is looked at, and expectations without sampling.

Small enough that the chain is enumerated (``expectation_over_heads``) and its SDE has an exact cubature
(``sde_expectation``); the matrices have no symmetry, so that drift, noise and their correction all show
(Homogenized Transformers, arXiv:2604.01978; the laws are ours).
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from pathlines.foundation.errors import ArgumentError, require
from pathlines.integrate import expectation_over_heads
from pathlines.limit.homogenized.cubature import Expectation, sde_expectation
from pathlines.limit.homogenized.finite_law import FiniteLawSDE
from pathlines.model import RandomTransformer
from pathlines.weights import MixtureHeads

VALUES = np.array(
    [
        [[0.9, 0.3, -0.2], [-0.1, 0.7, 0.4], [0.2, -0.3, 1.1]],
        [[0.5, -0.6, 0.3], [0.4, 0.9, -0.5], [-0.3, 0.2, 0.4]],
        [[0.2, 0.8, 0.1], [-0.7, 0.3, 0.2], [0.4, -0.1, 0.9]],
    ]
)
SCORES = np.array(
    [
        [[1.2, 0.5, 0.0], [-0.3, 0.8, 0.4], [0.1, -0.6, 0.9]],
        [[-0.4, 1.0, 0.3], [0.6, 0.2, -0.8], [0.5, 0.7, 0.6]],
        [[0.3, -0.9, 0.5], [0.8, -0.2, 0.1], [-0.4, 0.6, 1.0]],
    ]
)
FLUCTUATION = np.array([[0.8, 0.5, -0.4], [0.2, -0.6, 0.7], [-0.5, 0.3, 0.9]])

OBSERVED = ("mean overlap", "⟨x₁,e₁⟩", "⟨x₁,e₁⟩⟨x₂,e₂⟩")
"""Smooth functions of the tokens; the product feels the noise most."""

Law = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Values, scores, probabilities."""


def plain_law(s: Any, eta: float, heads: int) -> Law:
    """As many atoms as there are ``probabilities``, the same for every η: then α ∝ η/H."""
    chances = np.asarray(s.probabilities, float)
    require(len(chances) in (2, 3), "probabilities", "hold two or three numbers", s.probabilities)
    return VALUES[: len(chances)], SCORES[: len(chances)], chances


def strong_law(p: float, eta: float, heads: int, noise: float) -> Law:
    """V_a = V̄ + √(H/η)·``noise``·u_a U and one A, u of mean 0 and variance 1: √(η/H)ξ is free of η, and α = O(1)."""
    require(0 < p < 1, "probability", "be between 0 and 1", p)
    u = np.array([np.sqrt((1 - p) / p), -np.sqrt(p / (1 - p))])
    values = VALUES[:2].mean(axis=0) + np.sqrt(heads / eta) * noise * u[:, None, None] * FLUCTUATION
    return values, SCORES[[0, 0]], np.array([p, 1 - p])


def start(n: int) -> np.ndarray:
    """x_i = N(cos i, sin 2i, cos 3i + 0.3), i = 1 … n."""
    require(n >= 2, "n", "be at least 2", n)
    i = np.arange(1, n + 1)
    x = np.stack([np.cos(i), np.sin(2 * i), np.cos(3 * i) + 0.3], axis=1)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def _observed(x: Any) -> list[Any]:
    n, total = x.shape[-2], x.sum(axis=-2)
    first = x[..., 0, 0]
    return [((total * total).sum(axis=-1) - n) / (n * (n - 1)), first, first * x[..., 1, 1]]


def look(x: Any) -> Any:
    """The three numbers of ``OBSERVED`` for tokens (n, d), in the engine."""
    return jnp.stack(_observed(x))


def look_at_all(x: np.ndarray) -> np.ndarray:
    """The same for (leaves, n, d), in NumPy."""
    return np.stack(_observed(x), axis=-1)


def steps(s: Any, least: int = 3) -> np.ndarray:
    """η = T/L, descending."""
    layers = list(s.layers)
    require(layers == sorted(set(layers)) and len(layers) >= least, "layers", f"be {least} or more, ascending", layers)
    if min(layers) < 1:
        raise ArgumentError(f"Argument `layers` must be positive, but is {layers}.")
    return s.until / np.asarray(layers, float)


def chain_mean(s: Any, law: Law, layers: int, heads: int, nodes: int = 3) -> np.ndarray:
    """E of the chain after all ``layers``, by the engine."""
    eta = s.until / layers
    net = RandomTransformer(law=MixtureHeads(*law), beta=s.beta, step=eta, heads=heads, update=s.update)
    return expectation_over_heads(net, start(s.n), depth=layers, function=look, nodes=nodes)


def equation(s: Any, law: Law, eta: float, heads: int, corrector: str) -> FiniteLawSDE:
    """The homogenized SDE of a law, in NumPy."""
    values, scores, chances = law
    return FiniteLawSDE(
        values=values, scores=scores, probabilities=chances, beta=s.beta, step=eta, heads=heads,
        corrector=corrector, update=s.update,
    )  # fmt: skip


def sde_mean(s: Any, law: Law, eta: float, heads: int, corrector: str) -> Expectation:
    """E of the SDE at T, by cubature."""
    return sde_expectation(equation(s, law, eta, heads, corrector), start(s.n), s.until, look_at_all)


def ode_value(s: Any, law: Law, eta: float, heads: int, corrector: str) -> np.ndarray:
    """The observed numbers of dX/dt = D(X) at T."""
    return look_at_all(equation(s, law, eta, heads, corrector).flow(start(s.n), s.until)[None])[0]
