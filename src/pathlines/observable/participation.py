"""How concentrated attention is, and how much tokens attend to the same keys."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.foundation.errors import FormError
from pathlines.integrate.observe import observable
from pathlines.model.base import Snapshot
from pathlines.model.capability import HasHeadAttentions


def _attentions(snapshot: Snapshot, seed: int) -> Float[Array, "h n n"]:
    """Attention of the heads of a layer; random heads are new ones, fixed by seed and time."""
    moment = jax.lax.bitcast_convert_type(snapshot.time.astype("float32"), jnp.uint32)
    key = jax.random.fold_in(jax.random.key(seed), moment)
    snapshot.require_room("attention matrix")
    if not isinstance(snapshot.model, HasHeadAttentions):
        raise FormError(f"{type(snapshot.model).__name__} does not expose its attention matrix.")
    return snapshot.model.head_attentions(snapshot.state, snapshot.time, key)


def _coincidences(snapshot: Snapshot, seed: int) -> Float[Array, "n n"]:
    """Σ_k π_ik π_jk, a mean over the heads of a layer."""
    attention = _attentions(snapshot, seed)
    return jnp.einsum("hik,hjk->ij", attention, attention) / attention.shape[0]


@observable("participation", "concentration of attention", "Σₖ πᵢₖ²", seed=0)
def participation(snapshot: Snapshot, seed: int) -> Array:
    """f̂ = (1/n) Σ_ik π_ik²: one over the number of keys a token attends to; E f̂ = f(γ) on a simplex.

    Homogenized Transformers, arXiv:2604.01978. Cost O(Hn³).
    """
    return jnp.mean(jnp.diagonal(_coincidences(snapshot, seed)))


@observable("shared_attention", "attention to the same keys", "Σₖ πᵢₖπⱼₖ", seed=0)
def shared_attention(snapshot: Snapshot, seed: int) -> Array:
    """ĝ = 1/(n(n-1)) Σ_{i≠j} Σ_k π_ik π_jk: the overlap of the attention of two tokens; E ĝ = g(γ) on a simplex.

    Homogenized Transformers, arXiv:2604.01978. Cost O(Hn³).
    """
    pairs = _coincidences(snapshot, seed)
    n = pairs.shape[0]
    return (jnp.sum(pairs) - jnp.trace(pairs)) / max(n * (n - 1), 1)


@observable("attention_entropy", "entropy of attention", "−Σₖ πᵢₖ ln πᵢₖ", seed=0)
def attention_entropy(snapshot: Snapshot, seed: int) -> Array:
    """-(1/nH) Σ_hik π_ik ln π_ik: ln n for uniform attention over n tokens, zero for attention to one. O(Hn²)."""
    attention = _attentions(snapshot, seed)
    return -jnp.mean(jnp.sum(jax.scipy.special.xlogy(attention, attention), axis=-1))
