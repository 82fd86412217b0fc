"""What a transformer is at initialisation, in one frozen record: sizes, norms, residual multipliers, init law, mask.

A layer of the record, x = norm(h) and all matrices Gaussian with the standard deviations of ``Deviations``:

    pre        h ← αh + s A(norm h),         h ← αh + s_m M(norm h)
    post       h ← norm(αh + s A(h)),        h ← norm(αh + s_m M(h))
    sandwich   h ← αh + s norm(A(norm h)),   h ← αh + s_m norm(M(norm h))
    output     h ← αh + s norm(A(h)),        h ← αh + s_m norm(M(h))
    parallel   h ← αh + s A(norm h) + s_m M(norm h)

with A(x) = W_O concat_h softmax(λ q_h k_hᵀ + bias) v_h and M(x) = W_2 φ(W_1 x), gated: W_2 [φ(W_g x) ⊙ (W_1 x)]; α is
``skip``, s and s_m are ``attention_residual`` and ``mlp_residual``, λ is ``logit_multiplier``. Biases start at zero.
Layers that differ say so in ``by_layer``: lists of values, repeated where they are shorter than the depth.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import msgspec

from pathlines.foundation.errors import ArgumentError, finite_number, positive_integer, require
from pathlines.foundation.setting import changed_setting, means

PLACEMENTS = ("pre", "post", "sandwich", "parallel", "output")
NORMS = ("layer", "rms")
MASKS = ("causal", "full")
POSITIONS = ("learned", "rope", "alibi", "none")
ACTIVATIONS = ("gelu", "quick_gelu", "silu", "relu", "relu2", "tanh", "erf", "linear")
SCORES = ("softmax", "sigmoid")
LAYERED = (
    "heads", "kv_heads", "head_dim", "value_dim", "mlp_width", "experts", "window", "positions", "rope_base",
    "rope_fraction", "logit_multiplier", "qk_norm",
)  # fmt: skip
"""Fields that may differ from layer to layer."""


LARGEST = 1e6
"""Standard deviations beyond are a slip of the pen, and overflow in powers."""


class Deviations(msgspec.Struct, frozen=True, kw_only=True):
    """Standard deviations of the entries of each matrix at initialisation; zero for what does not exist."""

    embedding: Annotated[float, means("standard deviation of the embedding")]
    query: Annotated[float, means("standard deviation of the query matrix")]
    key: Annotated[float, means("standard deviation of the key matrix")]
    value: Annotated[float, means("standard deviation of the value matrix")]
    output: Annotated[float, means("standard deviation of the output matrix")]
    mlp_in: Annotated[float, means("standard deviation of the perceptron's inner matrix")] = 0.0
    mlp_gate: Annotated[float, means("standard deviation of the perceptron's gate")] = 0.0
    mlp_out: Annotated[float, means("standard deviation of the perceptron's outer matrix")] = 0.0
    position: Annotated[float, means("standard deviation of the learned positions")] = 0.0
    type: Annotated[float, means("standard deviation of the token types")] = 0.0
    projection: Annotated[float, means("standard deviation of the projection of factorised embeddings")] = 0.0
    router: Annotated[float, means("standard deviation of the router of experts")] = 0.0

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            finite_number(f"deviations.{name}", getattr(self, name), 0.0, LARGEST)

    @classmethod
    def equal(cls, std: float, **others: float) -> Deviations:
        """Every weight matrix and the embedding of size ``std``; those of positions and types as given."""
        matrices = ("embedding", "query", "key", "value", "output", "mlp_in", "mlp_gate", "mlp_out")
        return cls(**{**dict.fromkeys(matrices, std), **others})


class Architecture(msgspec.Struct, frozen=True, kw_only=True):
    """A transformer by what decides its tokens at initialisation.

    ``head_dim`` is p; ``kv_heads`` < ``heads`` is grouped-query attention. ``mlp_width=0`` is no perceptron.
    ``context`` is the longest input, ``window`` how many tokens back a causal token sees (0: all). ``types`` > 0 adds
    the embedding of type 0 to every token. ``patch_inputs`` > 0: tokens are linear images of that many inputs of mean
    square 1 (ViT), then ``class_token`` says whether a learned token comes first. ``embedding_width`` > 0: embeddings
    of that width, normalised there and projected (ALBERT). ``shared``: one set of weights serves every layer.
    ``logit_cap`` c > 0 replaces logits z by c tanh(z/c); ``qk_norm`` gives queries and keys of each head unit RMS.
    ``value_dim`` is the size of a head's values, ``sinks`` adds a key of logit 0 without a value to every row.
    ``experts`` > 0: of that many perceptrons of ``mlp_width`` neurons ``active_experts`` speak for a token, weighted by
    the scores of a random router (among themselves alone where ``expert_shares``, then times ``expert_scale``), beside
    one of ``shared_width`` neurons for all. ``gate_shift`` is added to the linear half of a gated perceptron.
    ``by_layer``: lists of values of the fields in ``LAYERED``, such as {"window": [128, 128, 0]}; layers beyond the end
    of a list start it anew.
    """

    width: Annotated[int, means("width of the residual stream", "d")]
    heads: Annotated[int, means("heads per layer", "H")]
    layers: Annotated[int, means("layers", "L")]
    deviations: Deviations
    family: str = "custom"
    kv_heads: Annotated[int, means("heads of keys and values (grouped queries); 0: as many as heads")] = 0
    head_dim: Annotated[int, means("width of a head; 0: width over heads", "p")] = 0
    context: Annotated[int, means("longest input")] = 1024
    vocabulary: Annotated[int, means("tokens of the vocabulary")] = 0
    mlp_width: Annotated[int, means("neurons of the perceptron; 0: none")] = 0
    activation: Annotated[str, means("activation of the perceptron", "φ")] = "gelu"
    gated: Annotated[bool, means("a gated perceptron")] = False
    norm: Annotated[str, means("normalisation: layer or rms")] = "layer"
    placement: Annotated[str, means("where it stands: pre, post, sandwich or parallel")] = "pre"
    norm_gain: Annotated[float, means("gain of the normalisations")] = 1.0
    norm_epsilon: Annotated[float, means("ε added to the mean square")] = 0.0
    embedding_norm: Annotated[bool, means("embeddings are normalised")] = False
    embedding_scale: Annotated[float, means("factor of the embeddings")] = 1.0
    embedding_width: Annotated[int, means("width of factorised embeddings; 0: none")] = 0
    patch_inputs: Annotated[int, means("inputs of a patch (ViT); 0: tokens are looked up")] = 0
    class_token: Annotated[bool, means("a learned token comes first (ViT)")] = False
    types: Annotated[int, means("token types; 0: none")] = 0
    tied: Annotated[bool, means("output and input embeddings are one")] = False
    shared: Annotated[bool, means("one set of weights serves every layer")] = False
    skip: Annotated[float, means("factor of the residual stream", "α")] = 1.0
    attention_residual: Annotated[float, means("factor of the attention block", "s")] = 1.0
    mlp_residual: Annotated[float, means("factor of the perceptron block", "s_m")] = 1.0
    logit_multiplier: Annotated[float, means("factor of the logits; 0: head_dim^-½", "λ")] = 0.0
    logit_cap: Annotated[float, means("logits z become c tanh(z/c); 0: no cap", "c")] = 0.0
    qk_norm: Annotated[bool, means("queries and keys have unit root mean square")] = False
    mask: Annotated[str, means("who is heard: causal or full")] = "causal"
    window: Annotated[int, means("tokens back that a causal token sees; 0: all")] = 0
    positions: Annotated[str, means("positions: learned, rope, alibi or none")] = "learned"
    rope_fraction: Annotated[float, means("share of a head that is rotated")] = 1.0
    rope_base: Annotated[float, means("base of the rotation frequencies")] = 10_000.0
    value_dim: Annotated[int, means("size of a head's values; 0: as its queries")] = 0
    sinks: Annotated[bool, means("a key without a value in every row")] = False
    gate_shift: Annotated[float, means("added to the linear half of a gated perceptron")] = 0.0
    experts: Annotated[int, means("perceptrons to choose from; 0: one for all")] = 0
    active_experts: Annotated[int, means("perceptrons that speak for a token")] = 2
    expert_score: Annotated[str, means("score of an expert: softmax or sigmoid")] = "softmax"
    expert_shares: Annotated[bool, means("weights of active experts sum to one")] = True
    expert_scale: Annotated[float, means("factor of the experts' sum")] = 1.0
    shared_width: Annotated[int, means("neurons of a perceptron beside the experts; 0: none")] = 0
    by_layer: Annotated[dict[str, tuple[Any, ...]], means("lists of values, for layers that differ")] = {}

    def __post_init__(self) -> None:
        for name in ("width", "heads", "layers", "context"):
            positive_integer(name, getattr(self, name))
        for name in ("kv_heads", "head_dim", "vocabulary", "mlp_width", "embedding_width", "patch_inputs", "types"):
            positive_integer(name, getattr(self, name), least=0)
        for name in ("window", "value_dim", "experts", "shared_width"):
            positive_integer(name, getattr(self, name), least=0)
        positive_integer("active_experts", self.active_experts)
        if self.experts:
            require(self.active_experts <= self.experts, "active_experts", "be at most experts", self.active_experts)
        self._fill_heads()
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            require(value in allowed, name, "be one of " + ", ".join(repr(a) for a in allowed), value)
        for name in ("norm_epsilon", "embedding_scale", "attention_residual", "mlp_residual", "logit_cap", "gate_shift",
                     "expert_scale"):  # fmt: skip
            finite_number(name, getattr(self, name), 0.0)
        for name in ("norm_gain", "skip", "logit_multiplier", "rope_base"):
            finite_number(name, getattr(self, name), 0.0, open_low=True)
        finite_number("rope_fraction", self.rope_fraction, 0.0, 1.0)
        self._check_layers()

    def _check_layers(self) -> None:
        """Lists of known fields, of values that make a layer."""
        if not self.by_layer:
            return
        require(not self.shared, "by_layer", "be empty where one layer serves every depth", self.by_layer)
        for name, values in self.by_layer.items():
            if name not in LAYERED:
                raise ArgumentError(f"Argument `by_layer` may hold {', '.join(LAYERED)}, but has `{name}`.")
            listed = isinstance(values, (list, tuple)) and len(values) > 0
            require(listed, f"by_layer.{name}", "be a list of a value for each layer", values)
        msgspec.structs.force_setattr(self, "by_layer", {k: tuple(v) for k, v in self.by_layer.items()})
        for values in {self._values(k) for k in range(self.layers)}:
            self._layer(values)

    def _values(self, number: int) -> tuple[Any, ...]:
        return tuple(values[number % len(values)] for values in self.by_layer.values())

    def _layer(self, values: tuple[Any, ...]) -> Architecture:
        kinds = {name: getattr(self, name) for name in self.by_layer}
        changes = changed_setting("by_layer", kinds, dict(zip(self.by_layer, values, strict=True)))
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        return Architecture(**{**fields, "by_layer": {}, **changes})

    def each_layer(self, count: int) -> list[Architecture]:
        """The record of each of the first ``count`` layers; equal layers are one object."""
        found: dict[tuple[Any, ...], Architecture] = {}
        for number in range(count):
            values = self._values(number)
            if values not in found:
                found[values] = self._layer(values) if self.by_layer else self
        return [found[self._values(number)] for number in range(count)]

    def _fill_heads(self) -> None:
        """kv_heads = heads, head_dim = width/heads and λ = head_dim^{-1/2} where they were left at zero."""
        put = msgspec.structs.force_setattr
        if not self.kv_heads:
            put(self, "kv_heads", self.heads)
        if not self.head_dim:
            if self.width % self.heads:
                near = ", ".join(str(h) for h in divisors_near(self.width, self.heads))
                raise ArgumentError(
                    f"{self.heads} heads do not divide the width {self.width}; write {near} heads, or give `head_dim`."
                )
            put(self, "head_dim", self.width // self.heads)
        if not self.value_dim:
            put(self, "value_dim", self.head_dim)
        require(self.heads % self.kv_heads == 0, "kv_heads", f"divide heads = {self.heads}", self.kv_heads)
        if self.logit_multiplier == 0:
            put(self, "logit_multiplier", 1 / math.sqrt(self.head_dim))

    def changed(self, **changes: Any) -> Architecture:
        """The same with some fields changed; ``deviations`` may be a mapping of some of them.

        With the width or the number of heads, what was derived from them follows: head_dim, kv_heads, λ.
        """
        if isinstance(changes.get("deviations"), dict):
            old = msgspec.structs.asdict(self.deviations)
            new = changed_setting("The initialisation", old, changes["deviations"])
            changes = {**changes, "deviations": Deviations(**new)}
        fields = {name: getattr(self, name) for name in self.__struct_fields__}
        if "by_layer" not in changes:
            fields["by_layer"] = {name: v for name, v in self.by_layer.items() if name not in changes}
        else:
            fields["by_layer"] = changes["by_layer"]
            changes = {name: value for name, value in changes.items() if name != "by_layer"}
        if changes.keys() & {"width", "heads", "head_dim"}:
            usual = {
                "head_dim": self.heads * self.head_dim == self.width,
                "kv_heads": self.kv_heads == self.heads,
                "value_dim": self.value_dim == self.head_dim,
                "logit_multiplier": math.isclose(self.logit_multiplier, self.head_dim**-0.5),
            }
            fields |= {name: type(fields[name])(0) for name, derived in usual.items() if derived}
        return Architecture(**changed_setting("The architecture", fields, changes))

    @property
    def attention_width(self) -> int:
        """heads · value_dim, the width between W_V and W_O."""
        return self.heads * self.value_dim


_CHOICES = {
    "activation": ACTIVATIONS,
    "norm": NORMS,
    "placement": PLACEMENTS,
    "mask": MASKS,
    "positions": POSITIONS,
    "expert_score": SCORES,
}


LARGEST_DIVISOR = 100_000
"""Up to which divisors are tried: all of them for widths below 10¹⁰."""


def divisors_near(width: int, heads: int, count: int = 2) -> list[int]:
    """The ``count`` divisors of the width nearest to a number of heads, in increasing order."""
    small = [h for h in range(1, min(math.isqrt(width), LARGEST_DIVISOR) + 1) if width % h == 0]
    divisors = {*small, *(width // h for h in small)}
    return sorted(sorted(sorted(divisors), key=lambda h: abs(h - heads))[:count])
