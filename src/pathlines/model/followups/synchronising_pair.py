"""Two tokens under the common noise of random perceptrons, whose distance keeps its digits."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.domain import Sphere
from pathlines.foundation.errors import ArgumentError, positive_integer
from pathlines.foundation.module import Module
from pathlines.foundation.papers.homogenized import SYNCHRONIZATION
from pathlines.foundation.papers.paper import Paper
from pathlines.foundation.traceable import known, traceable_number
from pathlines.model.base import MODELS, Description
from pathlines.model.capability import HasRandomLayers
from pathlines.model.parts.field_kernel import FieldKernel, Function
from pathlines.numerics.draws import Draws

Vector = Float[Array, " d"]
Scalar = Float[Array, ""]
CONVENTION = (
    "x ← N(x + √h W₂φ(W₁x + b)/√m) with entries of W₁, b, W₂ of variance σ_w², σ_b², 1, resampled in every layer and "
    "shared by the tokens, between two half steps of attention; the paper's own scalings were not available."
)


class Pair(Module):
    """x, x - y, and the martingale of log(1-⟨x,y⟩) so far."""

    token: Vector
    apart: Vector
    martingale: Scalar


class SynchronisingPair(HasRandomLayers):
    """x ← N(x + √h B(x)) for two tokens, E B(x)B(y)ᵀ = k(⟨x,y⟩) I, between half steps of dx = v P_x Att(x) dt.

    Stochastic Scaling Limits and Synchronization by Noise in Deep Transformer Models, arXiv:2604.26898 (our
    convention: B(x) = W_2 φ(W_1 x + b)/√m with entries of variance σ_w², σ_b², 1). At infinite width B is Gaussian and
    drawn from its 2 × 2 covariance; at width m given the features. x - y is carried beside x, so that 1-⟨x,y⟩ =
    ½|x-y|² is known to all digits down to 1e-300, and so is the martingale M of log(1-⟨x,y⟩), whose mean is zero:
    subtracting it from log(1-⟨x,y⟩) leaves the same mean with a tenth of the spread or less (``martingale``).

    Args:
        activation: φ, a name ("relu", "tanh", "erf", "gelu", "silu", "linear") or a function of an array. What counts
            is k'(1)/k(1): the larger, the more the noise drives the tokens apart.
        sigma_w: σ_w ≥ 0, of the entries of W_1. The larger, the more saturating activations tell the tokens apart.
        sigma_b: σ_b ≥ 0, of the biases. The larger, the more both tokens feel the same.
        width: m ≥ 1, the hidden units, or None for infinitely many. The more, the more Gaussian the noise of a
            layer; the limit h → 0 is the same.
        attention: v ≥ 0, the strength of attention with values v·I. The larger, the faster tokens meet.
        beta: β ≥ 0, the inverse temperature of attention. The larger, the later far tokens hear each other.
        time_step: h > 0, the time of one layer. The smaller, the nearer to the diffusion: errors are O(h).
        dimension: d ≥ 2, where tokens are given with zeros beyond their first d entries, so that several d share one
            compiled program; by default the length of a token. The larger, the less a pair strays from its mean.

    You will see 1-⟨x,y⟩ grow or shrink like e^{Λt} with Λ = (d-3)k'(1) - (d-1)k(1) - 2v while it is small. Good
    values: d = 3..40, h = 0.01, t = 1..3. Cost of a layer: 2d normals, and 3m at width m.
    """

    papers: ClassVar[tuple[Paper, ...]] = (SYNCHRONIZATION,)

    kernel: FieldKernel
    attention: Scalar
    beta: Scalar
    time_step: Scalar
    dimension: Scalar | None
    width: int | None = eqx.field(static=True)

    def __init__(
        self,
        activation: str | Function = "relu",
        sigma_w: float = 1.0,
        sigma_b: float = 0.0,
        *,
        width: int | None = None,
        attention: float = 0.0,
        beta: float = 1.0,
        time_step: float = 0.01,
        dimension: int | None = None,
    ) -> None:
        self.kernel = FieldKernel(activation, sigma_w, sigma_b)
        self.width = None if width is None else positive_integer("width", width)
        self.attention = jnp.asarray(traceable_number("attention", attention, low=0.0))
        self.beta = jnp.asarray(traceable_number("beta", beta, low=0.0))
        self.time_step = jnp.asarray(traceable_number("time_step", time_step, low=0.0, open_low=True))
        self.dimension = None if dimension is None else jnp.asarray(float(positive_integer("dimension", dimension, 2)))

    @property
    def clocks(self) -> dict[str, float]:
        """t = hℓ."""
        return {"t": known(self.time_step)}

    def check(self, tokens: Any) -> None:
        """Two unit rows that are not the same."""
        array = np.asarray(tokens)
        if array.ndim != 2 or array.shape[0] != 2 or array.shape[1] < 2:
            raise ArgumentError(f"Argument `start` must be two tokens (2, d), d ≥ 2, but has shape {array.shape}.")
        Sphere(array.shape[1]).check(array)
        if not np.any(array[0] != array[1]):
            raise ArgumentError("Argument `start` must be two different tokens, but they are equal.")
        if self.dimension is not None and np.any(array[:, int(self.dimension) :]):
            raise ArgumentError(f"Argument `start` must be zero beyond its first {int(self.dimension)} entries.")

    def initial(self, tokens: Float[Array, "2 d"]) -> Pair:
        """x, x - y, M = 0."""
        return Pair(tokens[0], tokens[0] - tokens[1], jnp.zeros((), tokens.dtype))

    def tokens(self, state: Pair, t: Array) -> Float[Array, "2 d"]:
        """x, y."""
        return jnp.stack([state.token, state.token - state.apart])

    def deficits(self, state: Pair, t: Array) -> Float[Array, "2 2"]:
        """½|x-y|²."""
        return _deficit(state.apart) * (1 - jnp.eye(2, dtype=state.apart.dtype))

    def spread(self, state: Pair) -> Array | None:
        """1-⟨x,y⟩."""
        return _deficit(state.apart)

    def random_layer(self, state: Pair, number: Array, key: PRNGKeyArray) -> Pair:
        """Attention for h/2, the perceptron, attention for h/2."""
        d = state.token.shape[0]
        draws = Draws(key, 2 * d + 3 * (self.width or 0), 0, state.token.dtype)
        return self._attended(self._shaken(self._attended(state), draws))

    def _shaken(self, state: Pair, draws: Draws) -> Pair:
        """x ← N(x + √h u), y ← N(y + √h u'), and -dρ/(1-ρ) of the noise added to M."""
        x, apart, u = state.token, state.apart, _deficit(state.apart)
        own, cross, difference = self._covariance(u, draws)
        first, second = draws.normal(*x.shape), draws.normal(*x.shape)
        if self.dimension is not None:
            inside = jnp.arange(x.shape[0], dtype=x.dtype) < self.dimension
            first, second = jnp.where(inside, first, 0.0), jnp.where(inside, second, 0.0)
        share = cross / jnp.where(own > 0, own, 1.0)
        noise = jnp.sqrt(own) * first
        between = share * noise + jnp.sqrt(jnp.maximum(difference - share * cross, 0.0)) * second
        root = jnp.sqrt(self.time_step)
        change = between @ (apart / u + x - apart) - noise @ (2 * x - apart)
        moved, gap = x + root * noise, apart + root * between
        return Pair(*_normalised(moved, gap), state.martingale + root * change)

    def _covariance(self, u: Scalar, draws: Draws) -> tuple[Scalar, Scalar, Scalar]:
        """Variance of B(x), its covariance with B(x) - B(y), and the variance of that, per component."""
        kernel = self.kernel
        if self.width is None:
            own, apart = kernel.both(u)
            return own, apart, 2 * apart
        along, across, bias = draws.normal(3, self.width)
        score = kernel.sigma_w * along + kernel.sigma_b * bias
        shift = kernel.sigma_w * (u * along + jnp.sqrt(u * (2 - u)) * across)
        feature = kernel.function(score)
        step = feature - kernel.function(score - shift)
        return tuple(jnp.mean(p) for p in (feature * feature, feature * step, step * step))  # type: ignore[return-value]

    def _attended(self, state: Pair) -> Pair:
        """Tokens draw together in their plane for h/2: du/dt = -2v u(2-u)/(1 + e^{βu}), one step of RK4 in log u."""
        x, apart, u = state.token, state.apart, _deficit(state.apart)
        span = self.time_step / 2

        def rate(lower: Array) -> Array:
            v = u * jnp.exp(-lower)
            return 2 * self.attention * (2 - v) * jax.nn.sigmoid(-self.beta * v)

        one = rate(jnp.zeros_like(u))
        two = rate(span / 2 * one)
        three = rate(span / 2 * two)
        four = rate(span * three)
        lowered = jnp.exp(-span / 12 * (one + 2 * two + 2 * three + four))  # of |x-y|, half that of log u
        middle = x - apart / 2
        closer = lowered * apart
        longer = jnp.sqrt((2 - u * lowered**2) / jnp.where(u < 2, 2 - u, 1.0))
        return Pair(
            jnp.where(u < 2, longer * middle + closer / 2, x), jnp.where(u < 2, closer, apart), state.martingale
        )


def _deficit(apart: Vector) -> Scalar:
    return jnp.sum(apart * apart) / 2


def _normalised(x: Vector, apart: Vector) -> tuple[Vector, Vector]:
    """N(x) and N(x) - N(x - Δ), without subtracting nearly equal vectors."""
    y = x - apart
    long, other = jnp.sqrt(jnp.sum(x * x)), jnp.sqrt(jnp.sum(y * y))
    shorter = (apart @ (2 * x - apart)) / (long + other)  # |x| - |y|
    return x / long, apart / other - x * shorter / (long * other)


def _build(
    activation: str = "relu",
    sigma_w: float = 1.0,
    sigma_b: float = 0.0,
    width: int | None = None,
    beta: float = 1.0,
    time_step: float = 0.01,
) -> SynchronisingPair:
    return SynchronisingPair(activation, sigma_w, sigma_b, width=width, beta=beta, time_step=time_step)


MODELS.register(
    "synchronising-pair",
    Description(
        _build,
        "Two tokens under common noise",
        "dX = v P_X Att(X) dt + P_X dB(X) − (d−1)/2 k(1) X dt,  E dB(x)dB(y)ᵀ = k(⟨x,y⟩) I dt",
        "1−⟨x,y⟩ shrinks or grows like e^{Λt}, Λ = (d−3)k′(1) − (d−1)k(1) − 2v, while it is small.",
        "activation = relu, d = 5, h = 0.01, t = 3",
        (SYNCHRONIZATION,),
        ("abstract", "assumed", "derived"),
        CONVENTION,
    ),
)
