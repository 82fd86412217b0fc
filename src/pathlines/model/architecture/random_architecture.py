"""A transformer as a configuration file describes it, with the weights it starts from."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.architecture import Architecture, Deviations
from pathlines.attention.masks import AlibiMask, PositionMask, WindowMask
from pathlines.foundation.errors import ArgumentError, of_kind
from pathlines.foundation.module import Module
from pathlines.foundation.papers import HOMOGENIZED, Paper
from pathlines.model.architecture.residual_stream import (
    Hidden,
    ResidualStream,
    attention_weights,
    rms_normalised,
)
from pathlines.model.architecture.rotary import distance_bias, rotated
from pathlines.model.base import MODELS, Description
from pathlines.model.capability import HasHeadAttentions, HasRandomLayers
from pathlines.model.parts.perceptron import ACTIVATIONS
from pathlines.numerics.draws import Draws

_SIZES = ("norm_gain", "norm_epsilon", "embedding_scale", "skip", "attention_residual", "mlp_residual",
          "logit_multiplier")  # fmt: skip
BARE = ("post", "output")
"""Placements whose branches see the stream as it is."""
_NAMES = (*_SIZES, *Deviations.__struct_fields__)


class Stream(Module):
    """Hidden states and, where one layer serves every depth, two numbers from which its weights are drawn."""

    hidden: Hidden
    words: Float[Array, " 2"] | None = None


class RandomArchitecture(ResidualStream, HasRandomLayers, HasHeadAttentions):
    """h ← αh + s A(norm h), h ← αh + s_m M(norm h), and the other placements of ``architecture.record``, at init.

    A(x) = W_O concat_h softmax(λ q_h k_hᵀ) v_h with kv_heads ≤ heads, rotary or ALiBi positions, mask and window;
    M(x) = W_2 φ(W_1 x), gated W_2[φ(W_g x) ⊙ W_1 x]. Every matrix is Gaussian, drawn afresh in each layer, or once a
    run where the architecture shares its layer. This is what ``limit.architecture`` predicts, with every matrix formed;
    the module that a library builds from the same configuration has the same law (tested).

    ``chain`` starts it from ``TokenEmbedding(model, ids)``, a law that draws the embeddings of those tokens, or from an
    array of hidden states. Sizes of matrices and multipliers are traced, so what-ifs share a compiled program. You will
    see the mean cosine rise with depth: slowly where the embedding is large against the branches, within a layer or two
    where it is small. Good values: those of a config.json. Cost of a layer: 2(heads + kv_heads) p d + 2..3 d w normals,
    O(n) times as many flops, and O(n² heads p).
    """

    papers: ClassVar[tuple[Paper, ...]] = (HOMOGENIZED,)

    numbers: Float[Array, " k"]
    shape: Architecture = eqx.field(static=True)
    variants: tuple[RandomArchitecture, ...] = ()
    pattern: tuple[int, ...] = eqx.field(static=True, default=())

    def __init__(self, architecture: Architecture) -> None:
        deviations = of_kind("architecture", architecture, Architecture, "an Architecture").deviations
        values = [getattr(deviations if n in deviations.__struct_fields__ else architecture, n) for n in _NAMES]
        self.numbers = jnp.asarray(values, float)
        neutral: dict[str, Any] = dict.fromkeys(_SIZES, 1.0)
        neutral |= {"layers": 1, "vocabulary": 0, "family": "custom", "tied": False, "by_layer": {}}
        if architecture.experts or "experts" in architecture.by_layer:
            raise ArgumentError(
                "Argument `architecture` must have one perceptron for all tokens: our own chain has no experts, the "
                "library's modules do (pip install 'pathlines[probe]')."
            )
        if architecture.by_layer:
            each = architecture.each_layer(architecture.layers)
            distinct = {id(layer): layer for layer in each}
            self.variants = tuple(RandomArchitecture(layer) for layer in distinct.values())
            self.pattern = tuple(list(distinct).index(id(layer)) for layer in each)
        self.shape = architecture.changed(deviations=dict.fromkeys(deviations.__struct_fields__, 1.0), **neutral)

    def size(self, name: str) -> Float[Array, ""]:
        """A deviation or a multiplier of the architecture."""
        return self.numbers[_NAMES.index(name)]

    def check(self, tokens: Any) -> None:
        """Rows of ``width`` numbers."""
        if self.shape.shared and not isinstance(tokens, Stream):
            raise ArgumentError("Argument `start` must be TokenEmbedding(model, ids) where layers share their weights.")
        shape = tokens.hidden.shape if isinstance(tokens, Stream) else tokens.shape
        if len(shape) != 2 or 0 in shape or shape[1] != self.shape.width:
            raise ArgumentError(f"Argument `start` must have shape (n, {self.shape.width}), but has shape {shape}.")

    def initial(self, tokens: Any) -> Stream:
        """A drawn start, or an array, which is the residual stream itself."""
        return tokens if isinstance(tokens, Stream) else Stream(tokens)

    def hidden(self, state: Stream) -> Hidden:
        """h."""
        return state.hidden

    def layer_work(self, state: Any) -> float:
        """The matrices, and attention of all heads."""
        n = state.hidden.shape[0]
        return float(self._normals + self.shape.heads * n * n)

    @property
    def _normals(self) -> int:
        a = self.shape
        matrices = (2 + a.gated) * a.mlp_width
        return a.width * ((a.heads + a.kv_heads) * (a.head_dim + a.value_dim) + matrices)

    def random_layer(self, state: Stream, number: Array, key: PRNGKeyArray) -> Stream:
        """Attention and perceptron, in the order and with the norms of the placement."""
        if self.variants:
            layers = [variant.random_layer for variant in self.variants]
            which = jnp.asarray(self.pattern)[number % len(self.pattern)]
            return jax.lax.switch(which, layers, state, number, key)
        h, draws = state.hidden, self._draws(state, key, self._normals)
        if self.shape.placement == "parallel":
            x = self.normed(h)
            h = self.size("skip") * h + self.size("attention_residual") * self._attention(x, draws)
            return Stream(h + self.size("mlp_residual") * self._perceptron(x, draws), state.words)
        h = self._added(h, self._attention, "attention_residual", draws)
        if self.shape.mlp_width:
            h = self._added(h, self._perceptron, "mlp_residual", draws)
        return Stream(h, state.words)

    def head_attentions(self, state: Stream, t: Array, key: PRNGKeyArray) -> Float[Array, "h n n"]:
        """Of the layer that would come next (where layers differ: of the first kind)."""
        if self.variants:
            return self.variants[0].head_attentions(state, t, key)
        a, h = self.shape, state.hidden
        few = a.width * (a.heads + a.kv_heads) * a.head_dim
        draws = self._draws(state, key, self._normals if a.shared else few)
        x = h if a.placement in BARE else self.normed(h)
        return self._weights(*self._queries_and_keys(x, draws)).reshape(a.heads, *2 * (len(h),))

    def normed(self, h: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """LayerNorm or RMSNorm with the gain of the start."""
        centred = h - jnp.mean(h, axis=-1, keepdims=True) if self.shape.norm == "layer" else h
        return self.size("norm_gain") * rms_normalised(centred, self.size("norm_epsilon"))

    def _draws(self, state: Stream, key: PRNGKeyArray, normals: int) -> Draws:
        if state.words is not None:
            first, second = state.words.astype(jnp.uint32)
            key = jax.random.wrap_key_data(jnp.stack([first, second]), impl=jax.random.key_impl(key))
        return Draws(key, normals, 0, state.hidden.dtype)

    def _added(self, h: Hidden, branch: Any, residual: str, draws: Draws) -> Hidden:
        placement = self.shape.placement
        y = branch(h if placement in BARE else self.normed(h), draws)
        own = placement in ("sandwich", "output")
        sum_ = self.size("skip") * h + self.size(residual) * (self.normed(y) if own else y)
        return self.normed(sum_) if placement == "post" else sum_

    def matrix(self, name: str, draws: Draws, rows: int, columns: int) -> Float[Array, "rows columns"]:
        """Normal entries of the deviation ``name``."""
        return self.size(name) * draws.normal(rows, columns)

    def _queries_and_keys(self, x: Hidden, draws: Draws) -> tuple[Array, Array]:
        """Queries (n, kv_heads, group, p) and keys (n, kv_heads, p)."""
        a, n = self.shape, len(x)
        query = (x @ self.matrix("query", draws, a.width, a.heads * a.head_dim)).reshape(n, a.heads, a.head_dim)
        key = (x @ self.matrix("key", draws, a.width, a.kv_heads * a.head_dim)).reshape(n, a.kv_heads, a.head_dim)
        if a.qk_norm:
            query, key = (rms_normalised(y, self.size("norm_epsilon")) for y in (query, key))
        if a.positions == "rope":
            query, key = (rotated(y, a.rope_base, a.rope_fraction) for y in (query, key))
        return query.reshape(n, a.kv_heads, a.heads // a.kv_heads, a.head_dim), key

    def _weights(self, query: Array, key: Array) -> Float[Array, "g q n n"]:
        a, n = self.shape, len(key)
        logits = self.size("logit_multiplier") * jnp.einsum("igqp,kgp->gqik", query, key)
        if a.logit_cap:
            logits = a.logit_cap * jnp.tanh(logits / a.logit_cap)
        if a.positions == "alibi":
            logits = logits + distance_bias(n, a.heads, logits.dtype).reshape(logits.shape)
        if a.mask == "full" and a.window:
            near = jnp.abs(jnp.arange(n)[:, None] - jnp.arange(n)) < a.window
            logits = jnp.where(near, logits, -jnp.inf)
        mask = self._mask()
        if not a.sinks:
            return attention_weights(logits, mask)
        shown = logits if mask is None else jnp.where(mask.weights(n) > 0, logits, -jnp.inf)
        return jax.nn.softmax(jnp.pad(shown, (*(((0, 0),) * 3), (0, 1))), axis=-1)[..., :-1]

    def _mask(self) -> PositionMask | None:
        if self.shape.mask == "full":
            return None
        return WindowMask(self.shape.window, strict=False) if self.shape.window else AlibiMask(strict=False)

    def _attention(self, x: Hidden, draws: Draws) -> Hidden:
        a, n = self.shape, len(x)
        weights = self._weights(*self._queries_and_keys(x, draws))
        value = x @ self.matrix("value", draws, a.width, a.kv_heads * a.value_dim)
        value = value.reshape(n, a.kv_heads, a.value_dim)
        heads = jnp.einsum("gqik,kgp->igqp", weights, value).reshape(n, a.attention_width)
        return heads @ self.matrix("output", draws, a.attention_width, a.width)

    def _perceptron(self, x: Hidden, draws: Draws) -> Hidden:
        a = self.shape
        inner = x @ self.matrix("mlp_in", draws, a.width, a.mlp_width)
        gate = x @ self.matrix("mlp_gate", draws, a.width, a.mlp_width) if a.gated else inner
        active = ACTIVATIONS[a.activation](gate)
        return (active * (inner + a.gate_shift) if a.gated else active) @ self.matrix(
            "mlp_out", draws, a.mlp_width, a.width
        )


def _build(
    d: int = 256,
    heads: int = 8,
    mlp_width: int = 1024,
    std: float = 0.02,
    placement: str = "pre",
    norm: str = "layer",
    activation: str = "gelu",
    gated: bool = False,
    mask: str = "causal",
    positions: str = "learned",
) -> RandomArchitecture:
    sizes = Deviations.equal(std, mlp_gate=std if gated else 0.0, position=std)
    architecture = Architecture(
        width=d, heads=heads, layers=1, mlp_width=mlp_width, placement=placement, norm=norm, mask=mask,
        activation=activation, gated=gated, positions=positions, deviations=sizes,
    )  # fmt: skip
    return RandomArchitecture(architecture)


MODELS.register(
    "random-architecture",
    Description(
        _build,
        "Transformer of a configuration, at initialisation",
        "h ← αh + s W_O concatₕ softmax(λ qₕkₕᵀ)vₕ,  h ← αh + s_m W₂ φ(W₁x),  x = norm h; post, sandwich, parallel too",
        "The mean cosine of the residual stream rises with depth, at the pace that `pathlines advise` predicts.",
        "--layers 12, n = 32, d = 256, heads = 8, std = 0.02, placement = pre, post, sandwich or parallel",
        (HOMOGENIZED,),
    ),
)
