"""Chains with two or three heads to draw from: the laws, what is looked at, and expectations without sampling.

Small enough that the chain is enumerated (``expectation_over_heads``) and its SDE has an exact cubature
(``sde_expectation``); the matrices have no symmetry, so that drift, noise and their correction all show
(Homogenized Transformers, arXiv:2604.01978; the laws are ours).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import jax.numpy as jnp
import msgspec
import numpy as np

from pathlines.claim.homogenized.coefficients import first_slope
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.setting import Setting
from pathlines.integrate import expectation_over_heads
from pathlines.limit.homogenized.cubature import Expectation, sde_expectation
from pathlines.limit.homogenized.finite_law import FiniteLawSDE
from pathlines.model.homogenized.random_transformer import RandomTransformer
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

LEAVES = 1 << 22
"""Chains with more outcomes are refused: they would take minutes."""


class Case(NamedTuple):
    """What chain, SDE and ODE share, η apart."""

    n: int
    beta: float
    until: float
    update: str
    heads: int
    probability: float
    third: float
    noise: float

    def law(self, eta: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Values, scores and probabilities (p, 1-p), or (p, 1-p-q, q) with q = ``third``, of fixed heads: α ∝ η/H.

        With ``noise`` σ > 0, V_a = V̄ + √(H/η) σ u_a U and one A, u of mean 0 and variance 1: √(η/H)ξ is free of η.
        """
        p, q = self.probability, self.third
        require(0 < p < 1 - q <= 1, "probability", f"be between 0 and {1 - q:g}", p)
        if self.noise == 0:
            m = 3 if q else 2
            return VALUES[:m], SCORES[:m], np.array([p, 1 - p - q, q])[:m]
        u = np.array([np.sqrt((1 - p) / p), -np.sqrt(p / (1 - p))])
        values = VALUES[:2].mean(axis=0) + np.sqrt(self.heads / eta) * self.noise * u[:, None, None] * FLUCTUATION
        return values, SCORES[[0, 0]], np.array([p, 1 - p])


class FewHeads(Setting):
    """Two or three heads to draw from, few enough to sum over all chains."""

    n: of.Tokens = 4
    beta: of.Beta = 1.5
    until: of.Until = 1.2
    probability: of.Probability = 0.5


def case_of(s: FewHeads, **changes: Any) -> Case:
    """The case of a claim's setting; what the setting does not have: ambient update, one head, no third, no noise."""
    given: dict[str, Any] = (
        {"update": "ambient", "heads": 1, "third": 0.0, "noise": 0.0} | msgspec.structs.asdict(s) | changes
    )
    return Case(**{name: given[name] for name in Case._fields})


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


class Expansion(FewHeads):
    """Several depths to one time, so that an expansion in η is seen."""

    layers: of.Layers = (8, 10, 12, 16)


def steps(s: Expansion) -> np.ndarray:
    """η = T/L, descending."""
    layers = list(s.layers)
    good = layers == sorted(set(layers)) and len(layers) >= 4 and min(layers) >= 1
    require(good, "layers", "hold four or more ascending numbers of layers", layers)
    return s.until / np.asarray(layers, float)


@lru_cache(maxsize=256)
def chain_mean(case: Case, layers: int, nodes: int = 3) -> np.ndarray:
    """E of the chain after all ``layers``, by the engine; ``nodes=1`` stands for infinitely many heads."""
    eta = case.until / layers
    values, scores, chances = case.law(eta)
    outcomes = len(chances) if case.heads == 1 else nodes if len(chances) == 2 else len(chances) ** case.heads
    few = nodes == 1 or layers * np.log(outcomes) <= np.log(LEAVES)
    require(few, "layers", f"leave at most {LEAVES} products of {outcomes} outcomes", layers)
    heads = MixtureHeads(values, scores, chances)
    net = RandomTransformer(law=heads, beta=case.beta, step=eta, heads=case.heads, update=case.update)
    return expectation_over_heads(net, start(case.n), depth=layers, function=look, nodes=nodes)


def equation(case: Case, eta: float, corrector: str) -> FiniteLawSDE:
    """The homogenized SDE, in NumPy."""
    values, scores, chances = case.law(eta)
    return FiniteLawSDE(
        values=values, scores=scores, probabilities=chances, beta=case.beta, step=eta, heads=case.heads,
        corrector=corrector, update=case.update,
    )  # fmt: skip


@lru_cache(maxsize=256)
def sde_mean(case: Case, eta: float, corrector: str) -> Expectation:
    """E of the SDE at T, by cubature."""
    return sde_expectation(equation(case, eta, corrector), start(case.n), case.until, look_at_all)


def ode_value(case: Case, eta: float, corrector: str) -> np.ndarray:
    """The observed numbers of dX/dt = D(X) at T."""
    return look_at_all(equation(case, eta, corrector).flow(start(case.n), case.until)[None])[0]


def change_of_flow(case: Case, corrector: str) -> np.ndarray:
    """κ = d/dη at η = 0 of the flow of the boxed drift less that of ``corrector``."""
    return first_slope(lambda eta: ode_value(case, eta, "full") - ode_value(case, eta, corrector))


def unsettled(s: Expansion) -> str:
    """What to change where an expansion in η does not settle."""
    return f"the expansion in η is not settled at layers = {list(s.layers)}: take more, or until and beta smaller"
