"""Sinkhorn attention whose potentials go with the tokens: each is found from that of the stage before."""

from __future__ import annotations

from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.attention import SinkhornAttention
from pathlines.attention.sinkhorn import PLAIN
from pathlines.foundation.module import Module, overridden
from pathlines.foundation.schedule import varies
from pathlines.foundation.traceable import is_traced
from pathlines.kernels.choice import Choice
from pathlines.kernels.dense import softmax_sums
from pathlines.model.base import Model
from pathlines.model.capability import HasAttention, HasDomain, HasEnergy, HasFastSums
from pathlines.model.self_attention import START, SelfAttention
from pathlines.weights import FixedWeights, IdentityWeights


class Carried(Module):
    """Tokens, and one potential g a head."""

    tokens: Float[Array, "n d"]
    potentials: Float[Array, "h n"]


PAYS = PLAIN + 3
"""Steps that the first potentials take, from which carrying them pays.

Processor time from zero over carried, n = 32 on S², without compiling (which takes 3 s more): 0.7 at ε = 1 (13 steps),
1.2 at 0.1 (102), 1.5 at 0.05 (104), 1.9 at 0.03 (105), 14 at 0.001 (103).
"""


def carries(model: Model, tokens: Any) -> int:
    """How many steps the first potentials take, where carrying them pays; else 0.

    Potentials must be a function of the tokens alone, which ``retract`` finds again.
    """
    if not isinstance(model, SelfAttention) or overridden(model, SelfAttention) or model.heard is not None:
        return 0
    if varies(model):
        return 0
    kind, alone = model.attention, isinstance(model.weights, (FixedWeights, IdentityWeights))
    if not alone or not isinstance(kind, SinkhornAttention) or overridden(kind, SinkhornAttention):
        return 0
    if is_traced(model, tokens):
        return 0
    begun = kind.begins(lambda: model.scaled_pairs(np.asarray(tokens)))
    steps = 0 if begun is None else int(begun[0].iterations)
    return steps if steps >= PAYS else 0


class CarriedSinkhorn(HasAttention, HasFastSums, HasEnergy, HasDomain):
    """``SelfAttention`` with Sinkhorn attention on states (x, g), g the potential that x has.

    g does not move by a drift: ``retract`` brings it back to the tokens it belongs to, starting from where it was. The
    velocity of x is that of the inner model to the tolerance of its potentials. Derived; Sinkformers, arXiv:2110.11773.
    """

    inner: SelfAttention

    def __init__(self, inner: SelfAttention) -> None:
        self.inner = inner

    @property
    def multiplicities(self) -> Array | None:
        """As the inner model."""
        return self.inner.multiplicities

    @property
    def beta(self) -> Array:
        """As the inner model."""
        return self.inner.beta

    def begun(self, state: Carried) -> SelfAttention:
        """The inner model, to look for its potentials from those of the state."""
        kind = self.inner.attention
        assert isinstance(kind, SinkhornAttention)
        alone = self.inner.weights.at(START) is None
        start = jax.lax.stop_gradient(state.potentials[0] if alone else state.potentials)
        return eqx.tree_at(lambda m: m.attention, self.inner, kind.begun(start))

    def initial(self, tokens: Float[Array, "n d"]) -> Carried:
        """Potentials from zero."""
        heads = self.inner.weights.at(START)
        count = 1 if heads is None else heads.value.shape[0]
        return self.settled(Carried(tokens, jnp.zeros((count, tokens.shape[0]), tokens.dtype)))

    @eqx.filter_jit
    def settled(self, state: Carried) -> Carried:
        """The potentials of the tokens."""
        x, kind, heads = state.tokens, self.inner.attention, self.inner.weights.at(START)
        assert isinstance(kind, SinkhornAttention)
        masses = self.inner.normalised_masses(x.shape[0], x.dtype)

        def seen(matrix: Array | None) -> Float[Array, "h n p"]:
            plain = jnp.broadcast_to(x, (state.potentials.shape[0], *x.shape))
            return plain if matrix is None else jnp.einsum("hpd,nd->hnp", matrix, x)

        def one(start: Array, rows: Array, keys: Array) -> Array:
            return kind.begun(start).potential(self.inner.beta * rows / kind.eps, keys, masses, softmax_sums)

        query, key = (None, None) if heads is None else (heads.query, heads.key)
        rows, keys = seen(query), seen(key)
        return Carried(x, jax.vmap(one)(state.potentials, rows, keys))

    def tokens(self, state: Carried, t: Array) -> Float[Array, "n d"]:
        """The tokens of the state."""
        return state.tokens

    def check(self, tokens: Any) -> None:
        """As the inner model."""
        self.inner.check(tokens)

    def retract(self, state: Carried) -> Carried:
        """Tokens in their space, with their potentials."""
        return self.settled(Carried(self.inner.retract(state.tokens), state.potentials))

    def admissible(self, state: Carried) -> Array | None:
        """As the inner model."""
        return self.inner.admissible(state.tokens)

    @property
    def inadmissible(self) -> str:
        """As the inner model."""
        return self.inner.inadmissible

    def drift(self, state: Carried, t: Array) -> Carried:
        """The velocity of the tokens."""
        return Carried(self.begun(state).drift(state.tokens, t), jnp.zeros_like(state.potentials))

    def with_fast_sums(self, n: int, d: int, dtype: Any, relative: float) -> tuple[Self, Choice | None]:
        """Dense sums, as the inner model has them."""
        return self, self.inner.with_fast_sums(n, d, dtype, relative)[1]

    def attention_matrix(self, state: Carried, t: Array) -> Float[Array, "n n"]:
        """a_ij of the first head."""
        kind = self.inner.attention
        assert isinstance(kind, SinkhornAttention)
        first = eqx.tree_at(lambda m: m.attention, self.inner, kind.begun(state.potentials[0]))
        return first.attention_matrix(state.tokens, t)

    @property
    def on_sphere(self) -> bool:
        """As the inner model."""
        return self.inner.on_sphere

    def energy_deficit(self, state: Carried, t: Array) -> Float[Array, ""] | None:
        """As the inner model."""
        return self.inner.energy_deficit(state.tokens, t)

    def power(self, state: Carried, t: Array) -> Float[Array, ""] | None:
        """As the inner model."""
        return self.begun(state).power(state.tokens, t)

    def energy_identity(self) -> str:
        """As the inner model."""
        return self.inner.energy_identity()
