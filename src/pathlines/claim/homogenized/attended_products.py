"""Averages over random attention: the participations f, g on the simplex, and S = E_A[ΠKΠᵀ] at small logit scale.

The engine draws attention matrices as the chain does (Homogenized Transformers, arXiv:2604.01978); theory integrates f
and g exactly, and expands S in b.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.tolerance import standard_errors
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.limit.homogenized.attended import small_b_attention
from pathlines.limit.homogenized.participation import mean_participation
from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.model.homogenized.samplers.layer import GaussianLayer

ERRORS = 5.0


@eqx.filter_jit
def _batch_means(
    layer: GaussianLayer, factor: Float[Array, "n r"], middle: Float[Array, "n n"], keys: PRNGKeyArray
) -> Float[Array, "batches n n"]:
    """The mean of Π M Πᵀ over the heads of one layer, for each key."""

    def one(key: PRNGKeyArray) -> Float[Array, "n n"]:
        weights = layer.fresh_attention(key, factor, factor)
        return jnp.einsum("hik,kl,hjl->ij", weights, middle, weights) / layer.heads

    return jax.lax.map(one, keys)


class Attended(Setting):
    """Attention matrices that are drawn."""

    n: of.Tokens = 8
    b: of.LogitScale = 2.0
    heads: of.Heads = 512
    batches: Annotated[of.Count, means("batches of heads")] = 64
    seed: of.Seed = 7


def _products(s: Attended, factor: Any, middle: Any, width: float, seed: int) -> np.ndarray:
    """Means of Π M Πᵀ over ``heads`` draws, ``batches`` times."""
    rows = jnp.asarray(factor, float)
    net = RandomTransformer(rows.shape[1], heads=s.heads, logit_scale=s.b, qk_dim=width)
    keys = jax.random.split(jax.random.key(seed), s.batches)
    return np.asarray(_batch_means(GaussianLayer(net, rows.shape[1]), rows, jnp.asarray(middle, float), keys))


class Participations(Attended):
    """Attention on simplices."""

    overlaps: of.Overlaps = (0.0, 0.3, 0.7)
    qk_dim: Annotated[of.Count | None, means("width of the query-key factors; none for infinitely wide", "p")] = None


def _width(s: Participations) -> float:
    """p, infinite if not given."""
    return math.inf if s.qk_dim is None else s.qk_dim


def simulate_participation(s: Participations) -> Evidence:
    """f and g as means of the diagonal and of the rest of ΠΠᵀ over draws of Π."""
    found = []
    for k, gamma in enumerate(s.overlaps):
        square = _products(s, Sphere(s.n).simplex(s.n, gamma), np.eye(s.n), _width(s), s.seed + k)
        own = np.trace(square, axis1=1, axis2=2)
        pair = (square.sum(axis=(1, 2)) - own) / (s.n * (s.n - 1))
        found.append([mean_and_error(own / s.n), mean_and_error(pair)])
    table = np.array(found)
    return Evidence(
        {"f": table[:, 0, 0], "g": table[:, 1, 0]},
        {"f": table[:, 0, 1], "g": table[:, 1, 1]},
        curves=(
            Curve("f, drawn", s.overlaps, table[:, 0, 0], table[:, 0, 1]),
            Curve("g, drawn", s.overlaps, table[:, 1, 0], table[:, 1, 1]),
        ),
    )


def predict_participation(s: Participations) -> Evidence:
    """Quadrature."""
    values = [mean_participation(s.n, s.b, gamma, _width(s)) for gamma in s.overlaps]
    wide = math.isinf(_width(s)) and len(s.overlaps) > 1  # finite widths take a second a point
    grid = np.linspace(min(s.overlaps), max(s.overlaps), 9) if wide else np.asarray(s.overlaps)
    fine = [mean_participation(s.n, s.b, float(gamma)) for gamma in grid] if wide else values
    return Evidence(
        {"f": [v.f for v in values], "g": [v.g for v in values]},
        curves=(
            Curve("f, quadrature", grid, [v.f for v in fine]),
            Curve("g, quadrature", grid, [v.g for v in fine]),
        ),
        source="quadrature",
    )


class SmallLogits(Attended):
    """Attention at a small logit scale."""

    n: of.Tokens = 5
    b: of.LogitScale = 0.25
    batches: Annotated[of.Count, means("batches of heads")] = 128
    seed: of.Seed = 11
    d: of.Dimension = 3
    qk_dim: Annotated[of.Count, means("width of the query-key factors", "p")] = 40


def _gram(s: SmallLogits) -> np.ndarray:
    x = np.asarray(Sphere(s.d).sines(s.n))
    return x @ x.T


def _by_overlap(s: SmallLogits, label: str, products: np.ndarray, error: np.ndarray | None = None) -> Curve:
    """s_ij against K_ij."""
    k = _gram(s)
    order = np.argsort(k.ravel(), kind="stable")
    return Curve(label, k.ravel()[order], products.ravel()[order], None if error is None else error.ravel()[order])


def simulate_small_b(s: SmallLogits) -> Evidence:
    """S from draws of Π."""
    mean, error = mean_and_error(_products(s, Sphere(s.d).sines(s.n), _gram(s), s.qk_dim, s.seed))
    return Evidence(
        {"products": mean.ravel()}, {"products": error.ravel()}, curves=(_by_overlap(s, "drawn", mean, error),)
    )


def predict_small_b(s: SmallLogits) -> Evidence:
    """m + b²[tr(C²)K - 2x̄ᵀCx̄]."""
    gram = _gram(s)
    expansion = small_b_attention(gram, s.b)
    flat = np.full_like(expansion, np.mean(gram))
    centred = gram - gram.mean(axis=0) - gram.mean(axis=1)[:, None] + gram.mean()
    rest = 2 * s.b**4 * (1 + 2 / s.qk_dim) * float(np.mean(centred**2))
    return Evidence(
        {"products": expansion.ravel()},
        {"products": rest / ERRORS},
        curves=(_by_overlap(s, "m + b²[tr(C²)K − 2x̄ᵀCx̄]", expansion), _by_overlap(s, "m (b = 0)", flat)),
    )


claim(
    "homogenized/C07",
    HOMOGENIZED,
    "f and g by quadrature (derived)",
    "On the simplex of overlap γ, f = E Σ_k π_ik² and g = E Σ_k π_ik π_jk are the double-exponential integrals of the "
    "theory: attention matrices drawn at logit scale b have these means, with heads of any width p (∞ if not given).",
    where="§2.3.4, the functions f and g of the theorem on the simplex; quadrature derived",
    models=("random",),
    quick=Participations(),
    full=Participations(batches=4000),
    within={
        "f": standard_errors(ERRORS, "standard errors over independent batches of draws"),
        "g": standard_errors(ERRORS, "standard errors over independent batches of draws"),
    },
    simulate=simulate_participation,
    predict=predict_participation,
    axes=Axes("overlap γ", "f, g"),
)

claim(
    "homogenized/C11",
    HOMOGENIZED,
    "attended products at small logit scale (derived)",
    "For small b and any tokens, s_ij = m + b²[tr(C²)K_ij − 2x̄ᵀCx̄] + O(b⁴), with x̄ the mean token, m = |x̄|² and C the "
    "covariance of the tokens.",
    where="derived; on the high temperatures of §2.3.5",
    models=("random",),
    quick=SmallLogits(),
    full=SmallLogits(b=0.17, batches=12_000),
    within={
        "products": standard_errors(
            ERRORS,
            "standard errors over batches, and 2b⁴(1+2/p)tr(C²) for the next term, which an antipodal pair attains",
        )
    },
    simulate=simulate_small_b,
    predict=predict_small_b,
    axes=Axes("overlap Kᵢⱼ", "E⟨m(xᵢ),m(xⱼ)⟩"),
)
