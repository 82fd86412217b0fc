"""Long context: one attention layer without residual at β = γ ln n.

Critical attention scaling in long-context transformers, arXiv:2510.05554; finite-n formula derived.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Annotated

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import LONG_CONTEXT
from pathlines.foundation.setting import Setting, means
from pathlines.limit.clustering.long_context import output_overlap, output_overlap_limit, self_weight
from pathlines.model import SelfAttention


@eqx.filter_jit
def _attended_pair(model: SelfAttention, tokens: Array) -> tuple[Array, Array]:
    """(cosine of the attention vectors of tokens 1 and 2, attention of token 1 to itself)."""
    a, _ = model.attend(tokens, jnp.zeros(()))
    cosine = a[0] @ a[1] / jnp.sqrt((a[0] @ a[0]) * (a[1] @ a[1]))
    return cosine, model.attention_matrix(tokens, jnp.zeros(()))[0, 0]


@lru_cache(maxsize=4)
def _simplex(n: int, overlap: float) -> Array:
    return Sphere(n).simplex(n, overlap)


def _every_token(n: int, beta: float, overlap: float) -> tuple[float, float]:
    """All n tokens of a simplex in R^n."""
    cosine, own = _attended_pair(SelfAttention(beta), _simplex(n, overlap))
    return float(cosine), float(own)


def _by_symmetry(n: int, beta: float, overlap: float) -> tuple[float, float]:
    """Tokens 1 and 2, and the mean of the n - 2 others with multiplicity n - 2: the others have equal scores.

    The mean has length² (1+(n-3)ρ)/(n-2) and overlap ρ with either token; three coordinates hold all of it.
    """
    gram = np.full((3, 3), overlap)
    gram[0, 0] = gram[1, 1] = 1.0
    gram[2, 2] = (1 + (n - 3) * overlap) / (n - 2)
    tokens = jnp.asarray(np.linalg.cholesky(gram))
    model = SelfAttention(beta, multiplicities=np.array([1.0, 1.0, n - 2.0]), space="euclidean")
    cosine, own = _attended_pair(model, tokens)
    return float(cosine), float(own)


class LongContext(Setting):
    """One layer at β = γ ln n."""

    overlap: of.Overlap = 0.5
    gammas: Annotated[of.Vector, means("factors of ln n in β", "γ")] = (1.0, 2.0, 3.0)
    contexts: of.Sizes = (1000, 1_000_000)
    direct_up_to: Annotated[int, means("largest n at which every token is summed; beyond, by symmetry")] = 1000
    points: Annotated[of.Count, means("points of the curve")] = 25


def _layer(n: float, gamma: float, s: LongContext) -> tuple[float, float]:
    route = _every_token if n <= s.direct_up_to else _by_symmetry
    return route(int(n), float(gamma * np.log(n)), s.overlap)


def simulate(s: LongContext) -> Evidence:
    """The engine's attention vectors, all n tokens up to ``direct_up_to`` and by permutation symmetry beyond."""
    found = np.array([[_layer(n, gamma, s) for gamma in s.gammas] for n in s.contexts])
    grid = np.linspace(0.0, 2 / (1 - s.overlap), s.points)
    curves = tuple(
        Curve(f"n = {n:g}", grid, [_by_symmetry(int(n), float(g * np.log(n)), s.overlap)[0] for g in grid])
        for n in s.contexts
    )
    return Evidence({"output_overlap": found[..., 0], "self_weight": found[..., 1]}, curves=curves)


def predict(s: LongContext) -> Evidence:
    """The finite-n formula, and its step in the limit."""
    n, gamma = np.asarray(s.contexts, float)[:, None], np.asarray(s.gammas, float)
    grid = np.linspace(0.0, 2 / (1 - s.overlap), 201)
    curves = [Curve(f"n = {k:g}, formula", grid, output_overlap(k, grid, s.overlap)) for k in s.contexts]
    curves.append(Curve("n → ∞", grid, output_overlap_limit(grid, s.overlap)))
    values = {
        "output_overlap": output_overlap(n, gamma, s.overlap),
        "self_weight": self_weight(n, gamma, s.overlap),
    }
    return Evidence(values, curves=tuple(curves))


claim(
    "clustering/CL-40",
    LONG_CONTEXT,
    "critical scaling β = γ ln n of one attention layer",
    "One attention layer without residual maps common correlation ρ to ρ_out = [(a−b)²ρ+S]/[(a−b)²+S], "
    "S = 2(a−b)bs₁+b²ns₁, s₁ = 1+(n−1)ρ, a = 1/(1+(n−1)n^{−γ(1−ρ)}), b = (1−a)/(n−1): as n → ∞ full collapse below "
    "γ_c = 1/(1−ρ), 4ρ/(1+3ρ) at it and the identity above.",
    where="phase transition of one attention layer at β = γ ln n; the finite-n form is derived",
    models=("sa",),
    quick=LongContext(),
    full=LongContext(contexts=(100, 1000, 2000, 1_000_000, 1_000_000_000_000), direct_up_to=2000, points=61),
    within={
        "output_overlap": absolute(1e-11, "rounding of sums over n tokens, amplified by β = γ ln n"),
        "self_weight": absolute(1e-11, "rounding of sums over n tokens, amplified by β = γ ln n"),
    },
    simulate=simulate,
    predict=predict,
    axes=Axes("γ", "ρ_out"),
)
