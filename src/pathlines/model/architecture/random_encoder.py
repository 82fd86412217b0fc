"""A transformer encoder as it is built, at initialisation: RMS norms, W_Q, W_K, W_V, W_O, perceptron, causal mask."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.architecture.record import MASKS
from pathlines.attention.masks import AlibiMask
from pathlines.domain import Sphere
from pathlines.foundation.errors import ArgumentError, UnknownNameError, finite_number, positive_integer, require
from pathlines.foundation.numbers import one_of
from pathlines.foundation.papers import HOMOGENIZED, Paper
from pathlines.model.architecture.residual_stream import (
    Hidden,
    ResidualStream,
    attention_weights,
    rms_normalised,
)
from pathlines.model.base import MODELS, Description
from pathlines.model.capability import HasRandomLayers
from pathlines.model.parts.perceptron import ACTIVATIONS
from pathlines.numerics.draws import Draws


class RandomEncoder(ResidualStream, HasRandomLayers):
    """h ← h + s W_O concat_h softmax(λ q_h k_hᵀ) v_h,  then h ← h + s_m W_2 φ(W_1 x),  x = h/rms(h) in both branches.

    ``placement="post"`` divides h by its RMS after each sum, "pre" does not. All matrices are drawn afresh in every
    layer, with the standard deviations of an initialisation: W_Q, W_K, W_V of size d_head × d, W_O of size d × d.
    ``logit`` λ defaults to d_head^{-1/2}, ``embedding`` is the RMS of the first hidden state (pre only). ``width=0`` is
    no perceptron.

    The architecture that the layer map is asked to predict, with logit scale b = λ√d_head d σ_Qσ_K, attention power a =
    s²d²σ_V²σ_O², perceptron power s_m² w σ_2² and σ_w² = dσ_1² (``derived``; the dictionary to Homogenized
    Transformers, arXiv:2604.01978, is derived). It shares no code with the chain: every matrix is formed. You will see
    the mean cosine of the hidden states grow: post like the chain of diffusive time a a layer, pre slower and slower,
    because the norm grows. Good values: n = 64, d = 128, 8 heads, s = 0.4, 32 layers. Cost of a layer: 4d² + 2dw
    normals, O(nd² + n²d) flops.
    """

    papers: ClassVar[tuple[Paper, ...]] = (HOMOGENIZED,)

    deviations: Float[Array, " 4"]
    residual: Float[Array, ""]
    logit: Float[Array, ""]
    embedding: Float[Array, ""]
    perceptron: Float[Array, " 3"]
    d: int = eqx.field(static=True)
    heads: int = eqx.field(static=True)
    width: int = eqx.field(static=True)
    activation: str = eqx.field(static=True)
    placement: str = eqx.field(static=True)
    mask: str = eqx.field(static=True)

    def __init__(
        self,
        d: int = 128,
        heads: int = 8,
        *,
        placement: str = "post",
        residual: float = 1.0,
        sigma_q: float | None = None,
        sigma_k: float | None = None,
        sigma_v: float | None = None,
        sigma_o: float | None = None,
        logit: float | None = None,
        embedding: float = 1.0,
        mask: str = "full",
        width: int = 0,
        activation: str = "erf",
        sigma_1: float | None = None,
        sigma_2: float | None = None,
        perceptron_residual: float = 1.0,
    ) -> None:
        self.d, self.heads = positive_integer("d", d), positive_integer("heads", heads)
        require(d % self.heads == 0, "heads", f"divide d = {d}", heads)
        require(placement in ("pre", "post"), "placement", "be 'pre' or 'post'", placement)
        if activation not in ACTIVATIONS:
            raise UnknownNameError(f"There is no activation `{activation}`; there are {', '.join(ACTIVATIONS)}.")
        self.width = positive_integer("width", width, least=0)
        self.activation, self.placement, self.mask = activation, placement, one_of("mask", mask, MASKS)
        usual = self.d**-0.5
        given = {"sigma_q": sigma_q, "sigma_k": sigma_k, "sigma_v": sigma_v, "sigma_o": sigma_o}
        self.deviations = jnp.asarray([_positive(name, value, usual) for name, value in given.items()])
        self.residual = jnp.asarray(finite_number("residual", residual))
        self.logit = jnp.asarray(_positive("logit", logit, (self.d / self.heads) ** -0.5))
        self.embedding = jnp.asarray(_positive("embedding", embedding, 1.0))
        inner, outer = _positive("sigma_1", sigma_1, usual), _positive("sigma_2", sigma_2, max(self.width, 1) ** -0.5)
        self.perceptron = jnp.asarray([inner, outer, finite_number("perceptron_residual", perceptron_residual)])

    @property
    def derived(self) -> dict[str, Any]:
        """What the layer map needs: b, p, a, the perceptron's power and σ_w."""
        q, k, v, o = (float(x) for x in self.deviations)
        inner, outer, residual = (float(x) for x in self.perceptron)
        d_head = self.d // self.heads
        return {
            "logit_scale": float(self.logit) * math.sqrt(d_head) * self.d * q * k,
            "qk_dim": d_head,
            "attention_power": (float(self.residual) * self.d * v * o) ** 2,
            "perceptron_power": residual**2 * self.width * outer**2,
            "sigma_w": math.sqrt(self.d) * inner,
        }

    def check(self, tokens: Any) -> None:
        """Unit rows of at most d columns: the directions of the first hidden states."""
        array = np.asarray(tokens)
        if array.ndim != 2 or 0 in array.shape or array.shape[1] > self.d:
            raise ArgumentError(f"Argument `start` must have shape (n, {self.d}), but has shape {array.shape}.")
        Sphere(array.shape[1]).check(array)

    def initial(self, tokens: Float[Array, "n c"]) -> Hidden:
        """Hidden states of the given directions, of RMS ``embedding`` (pre) or one (post)."""
        wide = jnp.pad(tokens, ((0, 0), (0, self.d - tokens.shape[1])))
        return math.sqrt(self.d) * (self.embedding if self.placement == "pre" else 1.0) * wide

    def hidden(self, state: Hidden) -> Hidden:
        """The state."""
        return state

    def layer_work(self, state: Any) -> float:
        """The matrices, and attention of all heads."""
        n, d = state.shape
        return float(4 * d * d + 2 * d * self.width + self.heads * n * n)

    def random_layer(self, state: Hidden, number: Array, key: PRNGKeyArray) -> Hidden:
        """Attention, and the perceptron if there is one."""
        draws = Draws(key, 4 * self.d**2 + 2 * self.d * self.width, 0, state.dtype)
        state = self._added(state, self.residual * self._attention(rms_normalised(state), draws))
        if self.width == 0:
            return state
        inner, outer, residual = self.perceptron
        hidden = rms_normalised(state) @ (inner * draws.normal(self.d, self.width))
        return self._added(
            state, residual * ACTIVATIONS[self.activation](hidden) @ (outer * draws.normal(self.width, self.d))
        )

    def _added(self, h: Hidden, branch: Hidden) -> Hidden:
        return rms_normalised(h + branch) if self.placement == "post" else h + branch

    def _attention(self, x: Hidden, draws: Draws) -> Hidden:
        n, d, d_head = x.shape[0], self.d, self.d // self.heads
        sizes = self.deviations
        query, key, value = (size * (x @ draws.normal(d, d)).reshape(n, self.heads, d_head) for size in sizes[:3])
        logits = self.logit * jnp.einsum("ihp,khp->hik", query, key)
        weights = attention_weights(logits, AlibiMask(strict=False) if self.mask == "causal" else None)
        heads = jnp.einsum("hik,khp->ihp", weights, value)
        return heads.reshape(n, d) @ (sizes[3] * draws.normal(d, d))


def _positive(name: str, value: Any, usual: float) -> float:
    return usual if value is None else finite_number(name, value, low=0.0, open_low=True)


MODELS.register(
    "random-encoder",
    Description(
        RandomEncoder,
        "Transformer encoder at initialisation",
        "h ← h + s W_O concatₕ softmax(λ qₕkₕᵀ)vₕ,  h ← h + s_m W₂ φ(W₁ x),  x = h/rms(h), norms before or after",
        "The mean cosine of the hidden states rises with depth: the architecture whose curve the layer map predicts.",
        "--layers 32, n = 64, d = 128, heads = 8, residual = 0.4, placement = post or pre",
        (HOMOGENIZED,),
    ),
)
