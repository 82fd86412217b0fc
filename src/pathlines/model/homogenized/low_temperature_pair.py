"""Two tokens at zero temperature in a mean field: attention points at Ax/|Ax|, and the overlap forgets the rest."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.foundation.errors import positive_integer, require
from pathlines.foundation.papers import HOMOGENIZED, Paper
from pathlines.foundation.traceable import known, traceable_number
from pathlines.model.base import MODELS, Description
from pathlines.model.homogenized.pair import PairDiffusion, PairModel, Scalar
from pathlines.numerics.chi import chi_counts, chi_from
from pathlines.numerics.draws import Draws


class LowTemperaturePair(PairModel):
    """x ← N(x + (η/H) Σ_h V_h A_h x/|A_h x|), the same heads for both tokens: β_eff -> ∞ among infinitely many tokens.

    Homogenized Transformers, arXiv:2604.01978. V has entries of variance σ_V² (1/d by default), A = W W'ᵀ, W, W'
    Gaussian of size d × p (``qk_dim`` = p, d by default; ∞ leaves one Gaussian factor). Sampled exactly in law without
    any matrix: a Gaussian matrix acts on two vectors through a 2 × 2 Bartlett factor T, y ↦ asinh((T_11 sinh y +
    T_21)/T_22), where sinh y = R/√(1-R²) is the cotangent of their angle; V adds noise of correlation mean_h cos_h to
    both.

    You will see hardly any motion on the scale of τ = vℓ, v = (η²/H) d σ_V², and on the slow scale τ/d (clock ``slow``)
    R = tanh(√2 B): sign changes for ever (p = d). Good values: d = 16..256, η = 0.1..0.5, depth = 2d/v. d ≥ 4.
    Cost of a layer: 4H + 2 χ variates, whatever d.
    """

    papers: ClassVar[tuple[Paper, ...]] = (HOMOGENIZED,)

    step: Float[Array, ""]
    sigma_v: Float[Array, ""]
    d: int = eqx.field(static=True)
    qk_dim: float = eqx.field(static=True)
    heads: int = eqx.field(static=True)

    def __init__(
        self, d: int = 64, step: float = 0.3, heads: int = 1, sigma_v: float | None = None, qk_dim: float | None = None
    ) -> None:
        self.d = positive_integer("d", d, least=4)
        self.heads = positive_integer("heads", heads)
        self.step = jnp.asarray(traceable_number("step", step, low=0.0, open_low=True))
        self.sigma_v = jnp.asarray(self.d**-0.5 if sigma_v is None else traceable_number("sigma_v", sigma_v, low=0.0))
        p = (
            math.inf
            if qk_dim in (math.inf, "inf")
            else self.d
            if qk_dim is None
            else positive_integer("qk_dim", qk_dim)
        )
        require(p >= 2, "qk_dim", "be at least 2", qk_dim)
        self.qk_dim = float(p)

    @property
    def clocks(self) -> dict[str, float]:
        """Diffusive time v of a layer, and v/d."""
        v = known(self.step) ** 2 / self.heads * self.d * known(self.sigma_v) ** 2
        return {"tau": v, "slow": v / self.d}

    @property
    def derived(self) -> dict[str, Any]:
        """The clock of a layer."""
        return {"layer_time": self.clocks["tau"]}

    def random_layer(self, state: Scalar, number: Array, key: PRNGKeyArray) -> Scalar:
        """Directions of attention, then Gaussian values."""
        factors = [] if math.isinf(self.qk_dim) else [self.qk_dim]
        stages = len(factors) + 1
        freedom = jnp.asarray([[p, p - 1] for p in (*factors, self.d)], state.dtype)
        freedom = jnp.concatenate(
            [jnp.tile(freedom, (self.heads, 1)), jnp.asarray([[self.d - 2, self.d - 3]], state.dtype)]
        )
        least = min(*factors, self.d - 2, self.d) - 1.0
        normals, uniforms = chi_counts(least)
        draws = Draws(key, freedom.size * normals + freedom.shape[0] + 4, freedom.size * uniforms, state.dtype)
        lengths, below = chi_from(draws, freedom, least), draws.normal(freedom.shape[0])
        turned = jnp.broadcast_to(state, (self.heads,))
        for stage in range(stages):
            at = slice(stage, stages * self.heads, stages)
            turned = jnp.arcsinh((lengths[at, 0] * jnp.sinh(turned) + below[at]) / lengths[at, 1])
        return self._valued(state, turned, draws.normal(2, 2), lengths[-1], below[-1])

    def _valued(
        self,
        y: Scalar,
        heads: Float[Array, " h"],
        inside: Float[Array, "2 2"],
        outside: Float[Array, " 2"],
        below: Scalar,
    ) -> Scalar:
        """The new y when both tokens get noise of correlation c = mean_h tanh y_h.

        In a frame with x = e_1, y = R e_1 + s e_2 the noise of x is Z_1, that of y is c Z_1 + √(1-c²) Z_2, with two
        components ``inside`` the plane and a Bartlett factor outside. Everything is written for w = y' - R x', so that
        no difference of nearly parallel vectors is taken.
        """
        gap, mate = jnp.mean(jax.nn.sigmoid(-2 * heads)), jnp.mean(jax.nn.sigmoid(2 * heads))  # (1 ∓ c)/2
        old_gap, old_mate = jax.nn.sigmoid(-2 * y), jax.nn.sigmoid(2 * y)
        shift = 2 * jnp.where(y > 0, old_gap - gap, mate - old_mate)  # c - R
        sine = 2 * jnp.sqrt(gap * mate)
        scale = self.step * self.sigma_v / math.sqrt(self.heads)
        zero = jnp.zeros_like(y)
        first = jnp.stack([*inside[0], outside[0], zero])
        second = jnp.stack([*inside[1], below, outside[1]])
        moved = scale * first + jnp.asarray([1.0, 0.0, 0.0, 0.0], y.dtype)
        rest = scale * (shift * first + sine * second)
        rest = rest.at[1].add(2 * jnp.sqrt(old_gap * old_mate))
        square, along = jnp.sum(moved * moved), jnp.sum(moved * rest)
        across = rest - along / square * moved
        cotangent = (jnp.tanh(y) * square + along) / jnp.sqrt(square * jnp.sum(across * across))
        return jnp.arcsinh(cotangent)


class LogisticPair(PairDiffusion):
    """dR = -κR(1-R²) dt + √2(1-R²) dB, in y = artanh R: dy = (2-κ) tanh y dt + √2 dB; t = τ/d.

    The slow limit of ``LowTemperaturePair``. κ = 2 for A = W W'ᵀ with d × d factors (R = tanh(√2 B): no convergence,
    exact here at any step); κ = 1 is the equation of arXiv:2604.01978, for which R ends at ±1 with P(+1) = ½ +
    arcsin(R_0)/π.
    """

    papers: ClassVar[tuple[Paper, ...]] = (HOMOGENIZED,)

    kappa: Float[Array, ""]
    time_step: Float[Array, ""]

    def __init__(self, kappa: float = 2.0, time_step: float = 0.01) -> None:
        self.kappa = jnp.asarray(traceable_number("kappa", kappa))
        self.time_step = jnp.asarray(traceable_number("time_step", time_step, low=0.0, open_low=True))

    @property
    def clocks(self) -> dict[str, float]:
        """The slow time t."""
        return {"t": known(self.time_step)}

    def coefficients(self, y: Scalar) -> tuple[Scalar, Scalar]:
        """((2-κ) tanh y, √2)."""
        return (2 - self.kappa) * jnp.tanh(y), jnp.full_like(y, math.sqrt(2))


MODELS.register(
    "low-temperature-pair",
    Description(
        LowTemperaturePair,
        "Two tokens at zero temperature (chain)",
        "x ← N( x + (η/H) Σₕ Vₕ Aₕx/|Aₕx| ) for two tokens with the same heads",
        "The overlap moves on the slow scale τ/d only, and for square heads keeps changing sign: R = tanh(√2 B).",
        "start: an overlap; d = 16…256, step = 0.1…0.5, layers = 2d/v, v = step²/heads",
        (HOMOGENIZED,),
    ),
)
MODELS.register(
    "logistic-pair",
    Description(
        LogisticPair,
        "Logistic SDE of an overlap",
        "dR = −κR(1−R²) dt + √2 (1−R²) dB,  R = tanh y,  dy = (2−κ) tanh y dt + √2 dB",
        "kappa = 1: absorbed at ±1; kappa = 2: |R| → 1 in probability only, sign changes for ever.",
        "start: an overlap; kappa = 1 or 2, time_step = 0.01, layers = 1000",
        (HOMOGENIZED,),
    ),
)
