"""Two tokens under random values in diffusive time, with fixed or with random query-keys."""

from __future__ import annotations

from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.foundation.errors import positive_integer
from pathlines.foundation.papers import HOMOGENIZED, STOCHASTIC_CLUSTERING, Paper
from pathlines.foundation.traceable import known, traceable_number
from pathlines.model.base import MODELS, Description
from pathlines.model.homogenized.pair import PairDiffusion, PairModel, Scalar
from pathlines.model.parts.splitting import STAGES, split_step
from pathlines.numerics.draws import Draws


class FixedScorePair(PairDiffusion):
    """dR = (1/d)[(d-2+R²)s_12 - (d-1)R s_11] dτ + (1-R²)√((1+t²)/d) dB,  t = tanh(β(1-R)/2),  logits β⟨x_i, x_k⟩.

    Random values, query-keys fixed to βI: the setting of Clustering in Deep Stochastic Transformers, arXiv:2601.21942,
    in the diffusive time τ of arXiv:2604.01978; s_11, s_12 = ((1+R) ± t²(1-R))/2. In y = artanh R (derived), a =
    (1-R)/2:

        μ = (1/d)[(d-1)(1-t²)/2 - a + (1-a)t²],    σ² = (1+t²)/d.

    You will see R -> 1 always attract, and R -> -1 as well once cosh²β > (d-1)/2. Good values: d = 8, β = 3 (one pair
    in five ends antipodal from R = 0), time_step = 0.1, depth = 120/time_step. β = 0 is uniform attention.
    """

    papers: ClassVar[tuple[Paper, ...]] = (STOCHASTIC_CLUSTERING, HOMOGENIZED)

    d: Float[Array, ""]
    beta: Float[Array, ""]
    time_step: Float[Array, ""]

    def __init__(self, d: int = 8, beta: float = 3.0, time_step: float = 0.05) -> None:
        self.d = jnp.asarray(float(positive_integer("d", d, least=2)))
        self.beta = jnp.asarray(traceable_number("beta", beta, low=0.0))
        self.time_step = jnp.asarray(traceable_number("time_step", time_step, low=0.0, open_low=True))

    @property
    def clocks(self) -> dict[str, float]:
        """Diffusive time."""
        return {"tau": known(self.time_step)}

    def coefficients(self, y: Scalar) -> tuple[Scalar, Scalar]:
        """(μ, σ)."""
        a = jax.nn.sigmoid(-2 * y)
        square = jnp.tanh(self.beta * a) ** 2
        drift = (self.d - 1) * (1 - square) / 2 - a + (1 - a) * square
        return drift / self.d, jnp.sqrt((1 + square) / self.d)


class RandomScorePair(PairModel):
    """The same two tokens with query-keys drawn afresh, p = ∞: logits differ by 2u_i, u_i = b√a Z_i, corr(Z_i) = R.

    With weights (1 ± t_i)/2, t_i = tanh u_i, T = ½(t_1² + t_2²), C = t_1 t_2 and Ψ = (t_1 + t_2)²/(4c), c = 1 - a, in
    y = artanh R (derived; Homogenized Transformers, arXiv:2604.01978)

        dy = (1/d) E[c + aC + (d-3)(1 - T + Ψ)/2] dτ + √(E[1 - C + Ψ]/d) dB.

    A step of length Δ is split: half a step of the drift's flow, noise, half a step of the flow (``splitting``), with
    averages over M = ``noise_heads`` draws for the noise and for every stage of the flow. Errors of E R and E R² at
    τ = 2, d = 8, b = 4, M = 2: -0.004Δ and -0.008Δ (Euler: -0.029Δ in E R). t_1 + t_2 is formed as 2 sinh U/(cosh U +
    cosh D) with U = u_1 + u_2, D = u_1 - u_2 independent, so that Ψ has its digits at R = -1. You will see the
    antipodal phase of ``FixedScorePair`` disappear for d ≥ 4.
    """

    papers: ClassVar[tuple[Paper, ...]] = (HOMOGENIZED, STOCHASTIC_CLUSTERING)

    d: Float[Array, ""]
    logit_scale: Float[Array, ""]
    time_step: Float[Array, ""]
    noise_heads: int = eqx.field(static=True)

    def __init__(self, d: int = 8, logit_scale: float = 4.0, time_step: float = 0.05, noise_heads: int = 2) -> None:
        self.d = jnp.asarray(float(positive_integer("d", d, least=3)))
        self.logit_scale = jnp.asarray(traceable_number("logit_scale", logit_scale, low=0.0))
        self.time_step = jnp.asarray(traceable_number("time_step", time_step, low=0.0, open_low=True))
        self.noise_heads = positive_integer("noise_heads", noise_heads)

    @property
    def clocks(self) -> dict[str, float]:
        """Diffusive time."""
        return {"tau": known(self.time_step)}

    def averages(self, y: Scalar, sums: Array, differences: Array) -> tuple[Scalar, Scalar, Scalar]:
        """Means of T, C and Ψ over draws of normals for U and D."""
        a, c = jax.nn.sigmoid(-2 * y), jax.nn.sigmoid(2 * y)
        spread = self.logit_scale * jnp.sqrt(a)
        U, D = 2 * spread * jnp.sqrt(c) * sums, 2 * spread * jnp.sqrt(a) * differences
        first, second = jnp.tanh((U + D) / 2), jnp.tanh((U - D) / 2)
        both = 2 * _sinh_ratio(U, D) / jnp.sqrt(jnp.maximum(c, jnp.finfo(c.dtype).tiny))
        return jnp.mean(first**2 + second**2) / 2, jnp.mean(first * second), jnp.mean(both**2) / 4

    def random_layer(self, state: Scalar, number: Array, key: PRNGKeyArray) -> Scalar:
        """One split step, M draws of the attention for each stage of the drift and for the noise."""
        parts = 2 * len(STAGES[0]) + 1
        draws = Draws(key, parts * 2 * self.noise_heads + 1, 0, state.dtype)
        normals, z = draws.normal(parts, 2, self.noise_heads), draws.normal(1)[0]

        def drift(y: Scalar, stage: Array) -> Scalar:
            T, C, Psi = self.averages(y, *normals[stage])
            a, c = jax.nn.sigmoid(-2 * y), jax.nn.sigmoid(2 * y)
            return c + a * C + (self.d - 3) * (1 - T + Psi) / 2

        step = self.time_step / self.d

        def shaken(y: Scalar) -> Scalar:
            _, C, Psi = self.averages(y, *normals[-1])
            return y + jnp.sqrt(step * (1 - C + Psi)) * z

        return split_step(drift, shaken, lambda y: y, state, step)


def _sinh_ratio(U: Float[Array, " m"], D: Float[Array, " m"]) -> Float[Array, " m"]:
    """sinh U/(cosh U + cosh D), without overflow and with relative precision at small U."""
    size, spread = jnp.abs(U), jnp.abs(D)
    top = jnp.maximum(size, spread)
    below = jnp.exp(size - top) + jnp.exp(-size - top) + jnp.exp(spread - top) + jnp.exp(-spread - top)
    return -jnp.sign(U) * jnp.exp(size - top) * jnp.expm1(-2 * size) / below


MODELS.register(
    "fixed-score-pair",
    Description(
        FixedScorePair,
        "Two tokens, random values, QK = βI (SDE)",
        "dR = d⁻¹[(d−2+R²)s₁₂ − (d−1)R s₁₁] dτ + (1−R²)√((1+t²)/d) dB,  t = tanh(β(1−R)/2)",
        "Consensus always attracts; antipodes attract as well once cosh²β > (d−1)/2.",
        "start: an overlap; d = 8, beta = 3, time_step = 0.05, layers = 2400",
        (STOCHASTIC_CLUSTERING, HOMOGENIZED),
    ),
)
MODELS.register(
    "random-score-pair",
    Description(
        RandomScorePair,
        "Two tokens, random values and random query-keys (SDE)",
        "the same R with logits of scale b drawn afresh, averaged over M heads per step",
        "Random query-keys remove the antipodal phase in every dimension d ≥ 4.",
        "start: an overlap; d = 8, logit_scale = 4, time_step = 0.05, layers = 1600",
        (HOMOGENIZED, STOCHASTIC_CLUSTERING),
    ),
)
