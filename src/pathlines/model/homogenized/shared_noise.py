"""A chain, or a limit of one, driven by heads that other models are driven by too."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray

from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.papers import HOMOGENIZED, Paper
from pathlines.model.base import Model, State
from pathlines.model.capability import HasRandomLayers
from pathlines.model.homogenized.circle_measure import CircleMeasure
from pathlines.model.homogenized.random_transformer import LimitOfChain, RandomTransformer
from pathlines.model.homogenized.sde import HomogenizedSDE
from pathlines.numerics.draws import folded
from pathlines.weights.gaussian import GaussianHeads
from pathlines.weights.heads import Heads
from pathlines.weights.law import as_matrix


class SharedNoise(LimitOfChain, HasRandomLayers):
    """``model`` moved, in layer ℓ, by heads that are a function of the key of the layer alone.

    With ``parts`` = 1 they are the H heads θ that the chain draws: the chain and its transported measures take a layer,
    the SDE one step of length δ = η, x ← Φ_{δ/2} N(· + (η/H) Σ_h G(·, θ_h)) Φ_{δ/2}. For Gaussian values and fixed
    scores a layer may be cut into k = ``parts`` steps δ = η/k of the SDE, with independent values V̄ + σ_V N_hj; the
    layer then has V̄ + σ_V k^{-1/2} Σ_j N_hj: one matrix Brownian motion for both. The heads of the chain leave the
    noise of the SDE its third moment, an effect O(η²) for skew laws, and none for Gaussian values.
    """

    papers: ClassVar[tuple[Paper, ...]] = (HOMOGENIZED,)

    chain: RandomTransformer
    model: Any
    parts: int = eqx.field(static=True)

    @property
    def clocks(self) -> dict[str, float]:
        """Those of the chain."""
        return self.chain.clocks

    @property
    def derived(self) -> dict[str, Any]:
        """Those of the model."""
        return self.model.derived

    def as_tokens(self, start: Any) -> Any:
        """What the model admits."""
        return self.model.as_tokens(start)

    def layer_work(self, state: State) -> float:
        """That of the model."""
        return self.model.layer_work(state)

    def random_layer(self, state: State, number: Array, key: PRNGKeyArray) -> State:
        """One layer of the chain, or ``parts`` steps of the SDE."""
        dtype = state.dtype
        heads = shared_heads(self.chain, self.parts, key, dtype)
        if not isinstance(self.model, HomogenizedSDE):
            return self.model.carried(state, heads[0] if self.parts == 1 else summed_heads(self.chain, heads))
        signs = jnp.ones(self.chain.heads, dtype)
        parts = jax.tree.map(lambda *each: jnp.stack(each), *heads)
        return jax.lax.scan(lambda x, part: (self.model.stepped(x, part, signs), None), state, parts)[0]


def shared_heads(chain: RandomTransformer, parts: int, key: PRNGKeyArray, dtype: Any) -> list[Heads]:
    """H heads for each part of a layer; those of the chain itself for one part."""
    keys = [key] if parts == 1 else [folded(key, j) for j in range(parts)]
    return [chain.law.heads(k, chain.heads, dtype) for k in keys]


def summed_heads(chain: RandomTransformer, heads: list[Heads]) -> Heads:
    """V̄ + k^{-1/2} Σ_j (V_j - V̄) of k parts, with the scores that they share."""
    mean = as_matrix(chain.law.value_mean, chain.d)[None]  # type: ignore[attr-defined]
    apart = sum(part.value - mean for part in heads)
    return Heads(heads[0].query, heads[0].key, mean + apart / np.sqrt(len(heads)))


def chain_of(model: Any) -> RandomTransformer:
    """The chain that a model is, or of which it is a limit."""
    found = model if isinstance(model, RandomTransformer) else getattr(model, "chain", None)
    if not isinstance(found, RandomTransformer) or not (hasattr(model, "carried") or isinstance(model, HomogenizedSDE)):
        raise ArgumentError(
            "Argument `models` must hold random transformers, their transported measures or their SDEs, but holds "
            f"{type(model).__name__}."
        )
    return found


def sharing(models: Any) -> tuple[Model, ...]:
    """The models driven by the same heads; ``ArgumentError`` where they cannot be.

    Those that draw the heads of the chain from the key of the layer are left as they are.
    """
    chains = [chain_of(m) for m in models]
    first = chains[0]
    for other in chains[1:]:
        same = eqx.tree_equal(other.law, first.law) and other.heads == first.heads
        if not same or float(other.step) != float(first.step):
            raise ArgumentError("Argument `models` must hold models with the same law of heads, step and heads.")
    counts = {_parts(m) for m in models if isinstance(m, HomogenizedSDE)} or {1}
    if len(counts) > 1:
        raise ArgumentError("Argument `models` must hold SDEs of one time step.")
    parts = counts.pop()
    law = first.law
    if parts > 1 and not (isinstance(law, GaussianHeads) and not law.random_scores):
        raise ArgumentError(
            f"Argument `time_step` must be the step η = {float(first.step):g} of the chain to share its noise, unless "
            "values are Gaussian and scores fixed."
        )
    if parts > 1 and any(isinstance(m, CircleMeasure) for m in models):
        raise ArgumentError("Argument `models` must hold SDEs with δ = η beside a measure on a grid.")
    wrapped = [parts > 1 or isinstance(m, HomogenizedSDE) for m in models]
    return tuple(SharedNoise(c, m, parts) if w else m for c, m, w in zip(chains, models, wrapped, strict=True))


def _parts(sde: HomogenizedSDE) -> int:
    """η/δ, an integer."""
    ratio = float(sde.chain.step) / float(sde.time_step)
    if abs(ratio - round(ratio)) > 1e-9 * ratio or sde.noise_heads != sde.chain.heads:
        raise ArgumentError(
            "Arguments `time_step` and `noise_heads` of an SDE that shares the noise of its chain must be η/k and the "
            f"chain's {sde.chain.heads} heads, but are {float(sde.time_step):g} (η = {float(sde.chain.step):g}) and "
            f"{sde.noise_heads}."
        )
    return round(ratio)
