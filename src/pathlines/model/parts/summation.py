"""Attention by harmonics inside a model: the reduction of (Q, K, V) to inner products of unit vectors."""

from __future__ import annotations

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.attention import Attention
from pathlines.attention.masks import PositionMask
from pathlines.foundation.module import Module, exactly
from pathlines.foundation.traceable import is_traced
from pathlines.kernels.spectral import spectral_attend
from pathlines.weights import FixedWeights, IdentityWeights, Weights


class Reduction(Module):
    """Q^T K = c R with R orthogonal: <Qx, Kx'> = c<x, Rx'>, so Σ_j a_ij V x_j = V R^T Σ_j a_ij (R x_j).

    ``alignment`` λ is the smallest <x, Rx> of unit vectors, the smallest eigenvalue of (R + R^T)/2: a token of mass m_i
    finds itself at least at that score, so Z_i ≥ m_i e^{-β(1-λ)}.
    """

    scale: float = eqx.field(static=True)
    alignment: float = eqx.field(static=True)
    rotation: Float[Array, "d d"] | None
    value: Float[Array, "d d"] | None


NO_REDUCTION = Reduction(1.0, 1.0, None, None)


def reduction_of(weights: Weights) -> Reduction | None:
    """The reduction, for one head whose Q^T K is a positive multiple of an orthogonal matrix; ``None`` without one."""
    if exactly(weights, IdentityWeights):
        return NO_REDUCTION
    if not exactly(weights, FixedWeights) or weights.value.shape[0] != 1 or is_traced(weights):
        return None
    value = np.asarray(weights.value[0])
    query, key = (np.eye(len(value.T)) if m is None else np.asarray(m[0]) for m in (weights.query, weights.key))
    score = query.T @ key
    scale = float(np.sqrt(np.mean(np.sum(score**2, axis=0))))
    if scale == 0 or np.abs(score @ score.T - scale**2 * np.eye(len(score))).max() > 1e-13 * scale**2:
        return None
    rotation = score / scale
    plain = np.abs(rotation - np.eye(len(score))).max() < 1e-14
    alignment = 1.0 if plain else float(np.linalg.eigvalsh((rotation + rotation.T) / 2)[0])
    return Reduction(scale, alignment, None if plain else jnp.asarray(rotation), jnp.asarray(value))


class SpectralSum(Module):
    """Sums over the tokens by harmonics up to the degree that keeps the kernel to ``tolerance`` for scores up to β."""

    reduction: Reduction
    tolerance: float = eqx.field(static=True)
    bound: float = eqx.field(static=True)

    def attend(
        self,
        attention: Attention,
        x: Float[Array, "n d"],
        beta: Float[Array, ""],
        masses: Float[Array, " n"],
        mask: PositionMask | None = None,
    ) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
        """(Σ_j a_ij V x_j, log_scale) for unit x."""
        r = self.reduction
        sources = x if r.rotation is None else x @ r.rotation.T
        out, log_scale = self.summed_over(attention, x, sources, beta, masses, mask)
        out = out if r.rotation is None else out @ r.rotation
        return out if r.value is None else out @ r.value.T, log_scale

    def summed_over(
        self,
        attention: Attention,
        x: Float[Array, "n d"],
        sources: Float[Array, "n d"],
        beta: Float[Array, ""],
        masses: Float[Array, " n"],
        mask: PositionMask | None,
    ) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
        """(Σ_j a_ij y_j, log_scale) for the rotated tokens y, with scores c β <x_i, y_j>."""
        beta = self.reduction.scale * beta
        return spectral_attend(attention, x, sources, beta, masses, self.tolerance, mask, beta_bound=self.bound)
