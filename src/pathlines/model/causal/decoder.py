"""The minimal causal decoder: angles that listen to the positions before them."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float
from scipy import special

from pathlines.attention.masks import AlibiMask, PositionMask, as_mask
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import finite_number, of_kind, require
from pathlines.foundation.module import exactly
from pathlines.foundation.papers import KINETIC, Paper
from pathlines.foundation.setting import means
from pathlines.kernels.causal import causal_potential, decoder_modes
from pathlines.model.base import MODELS, Description
from pathlines.model.capability import HasLayers

LARGEST_BETA = 600.0
LARGEST_SOFTMAX = 10.0
"""β up to which Fourier sums hold the partition function of softmax, which may be e^{-β}: they round by 1e-16 e^β."""


class CausalDecoder(HasLayers):
    """dθ_j/dt = Σ_{k<j} p_jk w_β'(θ_j - θ_k),  w_β(θ) = e^{β cos θ}: tokens listen to those before them.

    Kinetic theory for Transformers and the lost-in-the-middle phenomenon, arXiv:2605.09213, minimal model with ALiBi:
    p_jk = e^{-λ(j-k)/N}/Z_j. The factor β is inside w', so that time runs β times faster than on the sphere
    (x_j' = P_{x_j} Σ p_jk e^{β<x_j,x_k>} x_k). ``softmax=True`` divides by Σ p_jk w_β and by β:
    dθ_j/dt = -Σ p_jk e^{β cos} sin/Σ p_jk e^{β cos}. Angles are lifted to the real line and never wrapped; θ_1 rests.

    Symbols. ``beta`` β > 0: the larger, the narrower attention. ``mask``: who is heard, with which weight of position;
    ``AlibiMask(slope)`` has λ (0: no bias; the larger, the more recent tokens count), any mask will do (a token
    has no pull on itself: a diagonal only dilutes the others).

    You will see early tokens rest, later ones gather at them, and the last token remember the first and the most recent
    ones best: ``pl.retrieval`` measures it.

    Good values: β = 1, λ = 2, depth 1, N = 64 … 10⁴. Cost of a drift: O(NK) for ALiBi, K ≈ 17 at β = 1; else O(N²).
    """

    papers: ClassVar[tuple[Paper, ...]] = (KINETIC,)
    not_swept: ClassVar[tuple[str, ...]] = ("beta",)

    beta: Float[Array, ""]
    mask: PositionMask
    bessel: Float[Array, " k"]
    softmax: bool = eqx.field(static=True)

    def __init__(self, beta: float = 1.0, mask: Any = 0.0, *, softmax: bool = False) -> None:
        value = finite_number("beta", beta, 0.0, LARGEST_BETA, open_low=True)
        self.beta, self.softmax = jnp.asarray(value), bool(softmax)
        given = AlibiMask(mask) if isinstance(mask, int | float) else as_mask(mask, strict=True)
        self.mask = of_kind("mask", given, PositionMask, "a mask of positions, or the slope of an ALiBi mask")
        require(
            self.mask.reduce == "mean", "mask", "take means: the weights of a row are over their sum", self.mask.reduce
        )
        self.bessel = jnp.asarray(special.iv(np.arange(decoder_modes(value) + 1), value))

    def initial(self, tokens: Float[Array, "n 2"]) -> Float[Array, " n"]:
        """θ_j = atan2(x_j2, x_j1)."""
        return jnp.arctan2(tokens[:, 1], tokens[:, 0])

    def check(self, tokens: Any) -> None:
        """Unit rows of length two, as many as the mask has positions."""
        Sphere(2).check(tokens)
        if not isinstance(self.mask, AlibiMask):
            self.mask.check(np.shape(tokens)[0])

    def tokens(self, state: Float[Array, " n"], t: Array) -> Float[Array, "n 2"]:
        """(cos θ, sin θ)."""
        return jnp.stack([jnp.cos(state), jnp.sin(state)], axis=-1)

    def drift(self, state: Float[Array, " n"], t: Array) -> Float[Array, " n"]:
        """The angular velocity."""
        potential, slope = self.potential(state)
        return slope / (self.beta * potential) if self.softmax else slope

    def potential(self, angles: Float[Array, " n"]) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """(Σ_k p_jk w(θ_j - θ_k), its derivative in θ_j); dense softmax has both over e^{β·(largest cosine)}."""
        if self.has_prefix_sums:
            assert isinstance(self.mask, AlibiMask)
            return causal_potential(angles, self.mask.slope, self.bessel)
        apart, rows = angles[:, None] - angles[None, :], jnp.asarray(self.mask.rows(angles.shape[0]), angles.dtype)
        # softmax needs ratios only: the largest score of a row is taken off; the first token hears nobody
        scores = self.beta * jnp.where(rows > 0, jnp.cos(apart), -1.0)
        top = jax.lax.stop_gradient(jnp.max(scores, axis=1, keepdims=True)) if self.softmax else 0.0
        heard = rows * jnp.exp(scores - top)
        alone = (jnp.arange(angles.shape[0]) == 0).astype(angles.dtype)
        return jnp.sum(heard, axis=1) + alone, -self.beta * jnp.sum(heard * jnp.sin(apart), axis=1)

    @property
    def has_prefix_sums(self) -> bool:
        """Whether sums are recursions over Fourier modes: an ALiBi mask, and for softmax β ≤ 10."""
        cold = self.softmax and self.bessel.shape[0] > decoder_modes(LARGEST_SOFTMAX) + 1
        return exactly(self.mask, AlibiMask) and self.mask.strict and not cold

    def layer(self, state: Float[Array, " n"], t: Array, step: Array) -> Float[Array, " n"]:
        """θ + η θ': a residual layer."""
        return state + step * self.drift(state, t)


def named_decoder(
    beta: Annotated[of.Positive, means("inverse temperature", "β")] = 1.0,
    slope: Annotated[float, means("ALiBi slope, in units of 1/N", "λ")] = 2.0,
    mask: of.Mask = "causal",
    softmax: Annotated[bool, means("softmax attention instead of the unnormalised kernel")] = False,
) -> CausalDecoder:
    """The decoder with its mask in words."""
    given = as_mask(mask, slope=slope, strict=True)
    return CausalDecoder(beta, slope if given is None else given, softmax=softmax)


MODELS.register(
    "causal-decoder",
    Description(
        named_decoder,
        "Causal decoder on the circle",
        "θ̇ⱼ = Σ_{k<j} pⱼₖ w′(θⱼ − θₖ),  w = e^{β cos θ},  pⱼₖ ∝ e^{−λ(j−k)/N}",
        "Early tokens rest and gather the later ones; the last token forgets the middle of the prompt.",
        "d = 2, beta = 1, slope = 2, n = 64…10⁴, until = 1",
        (KINETIC,),
    ),
)
