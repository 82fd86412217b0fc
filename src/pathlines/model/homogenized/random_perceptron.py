"""Random perceptron layers: common noise whose covariance is a kernel of the overlaps."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.domain import Sphere
from pathlines.domain.span import cholesky, reduced
from pathlines.foundation.errors import ArgumentError, positive_integer
from pathlines.foundation.module import Module
from pathlines.foundation.papers import HOMOGENIZED, SYNCHRONIZATION, Paper
from pathlines.foundation.traceable import known, traceable_number
from pathlines.model.base import MODELS, Description
from pathlines.model.capability import HasRandomLayers
from pathlines.model.homogenized.random_transformer import moved, spread_of
from pathlines.model.parts.field_kernel import FieldKernel, Function
from pathlines.model.parts.splitting import split_step
from pathlines.model.self_attention import SelfAttention
from pathlines.numerics.draws import Draws


class PerceptronNoise(Module):
    """W_2 φ(W_1 √d x_i + b) with fresh Gaussian W_1, b, W_2: given the features, Gaussian with covariance C Cᵀ ⊗ I/d.

    W_1 (w × d) gives pre-activations of variance σ_w², to which biases of variance σ_b² are added, W_2 (d × w) has
    entries of variance 1/(wd), so that the output has mean square κ(1). The features of w units are φ(σ_w F G + σ_b g),
    K = F Fᵀ and G, g normal: exact in law, and W_2 is never drawn. At w = ∞ (``width=None``) C is a factor of κ(K);
    that factor resolves overlaps down to 1 - K ≈ 1e-15, features do not stop there (``SynchronisingPair`` has two
    tokens without either limit). Cost O(n²d + n r w + n³), r = min(n, d).
    """

    kernel: FieldKernel
    width: int | None = eqx.field(static=True)

    def __init__(
        self,
        activation: str | Function = "relu",
        sigma_w: float = 1.0,
        width: int | None = None,
        sigma_b: float = 0.0,
    ) -> None:
        self.width = None if width is None else positive_integer("width", width)
        self.kernel = FieldKernel(activation, sigma_w, sigma_b)

    def factor(self, x: Float[Array, "n d"], draws: Draws) -> Float[Array, "n q"]:
        """C."""
        kernel = self.kernel
        if self.width is None:
            own, apart = kernel.both(1 - jnp.clip(x @ x.T, -1.0, 1.0))
            return cholesky(own - apart)
        span = reduced(x)
        scores = kernel.sigma_w * span @ draws.normal(span.shape[1], self.width)
        features = kernel.function(scores + kernel.sigma_b * draws.normal(1, self.width))
        return reduced(features / math.sqrt(self.width))

    def output(self, x: Float[Array, "n d"], key: PRNGKeyArray) -> Float[Array, "n d"]:
        """One draw for all tokens."""
        n, d = x.shape
        hidden = n if self.width is None else min(n, self.width)
        features = 0 if self.width is None else (min(n, d) + 1) * self.width
        draws = Draws(key, features + hidden * d, 0, x.dtype)
        return self.factor(x, draws) @ draws.normal(hidden, d) / math.sqrt(d)


class RandomPerceptron(HasRandomLayers):
    """x ← Φ_{δ/2} S Φ_{δ/2} x,  S x_i = N( x_i + σ√δ u_i ),  u = W_2 φ(W_1 √d x + b) drawn afresh for all tokens.

    Two models in one. Without ``attention`` Φ is the identity; with δ = 1 it is a perceptron layer of a random
    transformer, step σ = η_m (the perceptron remark of Homogenized Transformers, arXiv:2604.01978). With a
    deterministic self-attention A_i = Σ_k a_ik x_k, whose flow is Φ, it is the split scheme (``splitting``) of

        dx_i = P_i A_i dt + P_i dζ_i - …,   d⟨ζ_i, ζ_j⟩ = (σ²/d) κ(⟨x_i, x_j⟩) I dt,

    attention drift with common noise from random perceptrons (Stochastic Scaling Limits and Synchronization by Noise in
    Deep Transformer Models, arXiv:2604.26898), with an error O(σ²δ² + σ⁴δ). Noise alone keeps an error O(σ⁴δ): the
    rate of a small gap, exactly that of ``layer_separation_rates``, is off by 0.5 % (relu) to 2 % (erf, σ_w = 3) at
    d = 16, δ = 0.02. ``width`` is the number of hidden units, ``None`` for infinitely many.

    You will see nearby tokens synchronise under the noise alone when κ'(1)/κ(1) < (d-1)/(d-3) (relu, linear), and be
    driven apart by saturating odd activations (erf with σ_w = 3) in high dimension. Good values: d = 8..128, σ = 1, δ =
    0.01..0.05, β = 1.
    """

    papers: ClassVar[tuple[Paper, ...]] = (SYNCHRONIZATION, HOMOGENIZED)

    noise: PerceptronNoise
    attention: SelfAttention | None
    strength: Float[Array, ""]
    time_step: Float[Array, ""]

    def __init__(
        self,
        activation: str | Function = "relu",
        *,
        sigma_w: float = 1.0,
        sigma_b: float = 0.0,
        strength: float = 1.0,
        width: int | None = None,
        attention: SelfAttention | None = None,
        time_step: float = 1.0,
    ) -> None:
        self.noise = PerceptronNoise(activation, sigma_w, width, sigma_b)
        self.attention = attention
        self.strength = jnp.asarray(traceable_number("strength", strength, low=0.0))
        self.time_step = jnp.asarray(traceable_number("time_step", time_step, low=0.0, open_low=True))

    @property
    def clocks(self) -> dict[str, float]:
        """t = δℓ."""
        return {"t": known(self.time_step)}

    def check(self, tokens: Any) -> None:
        """Unit rows."""
        array = np.asarray(tokens)
        if array.ndim != 2 or 0 in array.shape:
            raise ArgumentError(f"Argument `start` must have shape (n, d), but has shape {array.shape}.")
        Sphere(array.shape[1]).check(array)

    def initial(self, tokens: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The tokens."""
        return tokens

    def tokens(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """The state."""
        return state

    def spread(self, state: Float[Array, "n d"]) -> Array | None:
        """From the distances to the first token."""
        return spread_of(state)

    def layer_work(self, state: Any) -> float:
        """Overlaps, features, increments."""
        n, d = state.shape
        return float(n * (4 * n + 4 * d + 2 * (self.noise.width or 0)))

    def random_layer(self, state: Float[Array, "n d"], number: Array, key: PRNGKeyArray) -> Float[Array, "n d"]:
        """Attention for half a step, noise, attention for the other half; its weights those of the middle."""
        scale = self.strength * jnp.sqrt(self.time_step)
        shaken = lambda x: moved(x, scale * self.noise.output(x, key), "ambient")  # noqa: E731
        attention = self.attention
        if attention is None:
            return shaken(state)
        t = (number + 0.5) * self.time_step
        drift = lambda x, stage: attention.drift(x, t)  # noqa: E731
        return split_step(drift, shaken, attention.retract, state, self.time_step)


def _build(
    activation: str = "relu",
    sigma_w: float = 1.0,
    strength: float = 1.0,
    width: int | None = None,
    beta: float = 1.0,
    time_step: float = 0.02,
    sigma_b: float = 0.0,
) -> RandomPerceptron:
    attention = SelfAttention(beta)
    return RandomPerceptron(
        activation,
        sigma_w=sigma_w,
        sigma_b=sigma_b,
        strength=strength,
        width=width,
        attention=attention,
        time_step=time_step,
    )


MODELS.register(
    "random-perceptron",
    Description(
        _build,
        "Self-attention with random perceptron noise",
        "dxᵢ = P_xᵢ(Σₖ aᵢₖ xₖ) dt + P_xᵢ dζᵢ − …,  d⟨ζᵢ,ζⱼ⟩ = (σ²/d) κ(⟨xᵢ,xⱼ⟩) I dt",
        "Tokens synchronise by common noise (relu, linear) or are kept apart by it (erf with large σ_w).",
        "--layers 500, n = 2…64, d = 8…128, beta = 1, strength = 1, time_step = 0.02",
        (SYNCHRONIZATION, HOMOGENIZED),
    ),
)
