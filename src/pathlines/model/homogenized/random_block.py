"""A whole random transformer block: attention with fresh heads, then a fresh perceptron."""

from __future__ import annotations

from typing import Any, ClassVar

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.foundation.errors import of_kind
from pathlines.foundation.papers import HOMOGENIZED, Paper
from pathlines.model.base import MODELS, Description, Model
from pathlines.model.capability import HasRandomLayers, Sampled
from pathlines.model.homogenized.random_perceptron import RandomPerceptron
from pathlines.model.homogenized.random_transformer import RandomTransformer


class RandomBlock(HasRandomLayers):
    """x ← N(x + (η/H) Σ_h V_h m_h(x)), then x ← N(x + η_m W_2 φ(W_1 √d x)): all weights fresh in every layer.

    The perceptron of Homogenized Transformers, arXiv:2604.01978, after its attention. On a common overlap γ, as d -> ∞,
    γ' = (γ + vS)/(1 + vP) and then γ'' = (γ' + v_m κ(γ'))/(1 + v_m κ(1)), v_m = η_m² (derived).

    You will see collapse undone when v_m(κ'(1) - κ(1)) exceeds v(1 + v_m κ(1)): erf with large σ_w rests at an overlap
    below one, relu never does. Good values: n = 48, d = 128, 8 heads, v = 0.16, erf, σ_w = 3, η_m = 0.8, depth 60.
    Cost: an attention layer by its fastest sampler that keeps coordinates, and the perceptron.
    """

    papers: ClassVar[tuple[Paper, ...]] = (HOMOGENIZED,)

    attention: HasRandomLayers
    perceptron: RandomPerceptron

    def __init__(self, attention: HasRandomLayers, perceptron: RandomPerceptron) -> None:
        self.attention = of_kind("attention", attention, Model, "a model of random attention")
        self.perceptron = of_kind("perceptron", perceptron, RandomPerceptron, "a RandomPerceptron")

    @property
    def clocks(self) -> dict[str, float]:
        """Those of the attention."""
        return self.attention.clocks

    @property
    def derived(self) -> dict[str, Any]:
        """Those of the attention, and the power v_m of the perceptron."""
        return {**self.attention.derived, "perceptron_power": float(self.perceptron.strength) ** 2}

    def check(self, tokens: Any) -> None:
        """What the attention accepts."""
        self.attention.check(tokens)

    def as_tokens(self, start: Any) -> Any:
        """What the attention admits."""
        return self.attention.as_tokens(start)

    def initial(self, tokens: Float[Array, "n c"]) -> Float[Array, "n d"]:
        """The tokens, with missing columns zero."""
        return self.attention.initial(tokens)

    def tokens(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """The state."""
        return state

    def spread(self, state: Float[Array, "n d"]) -> Array | None:
        """From the distances to the first token."""
        return self.attention.spread(state)

    def layer_work(self, state: Any) -> float:
        """The larger of the two."""
        return max(self.attention.layer_work(state), self.perceptron.layer_work(state))

    def sampler_for(self, shape: tuple[int, ...], ambient: bool, sampler: str = "auto") -> Sampled:
        """The attention by its cheapest sampler among those that keep token coordinates."""
        attention, name, reason = self.attention.sampler_for(shape, True, sampler)
        return RandomBlock(attention, self.perceptron), name, f"attention: {reason}"

    def random_layer(self, state: Float[Array, "n d"], number: Array, key: PRNGKeyArray) -> Float[Array, "n d"]:
        """Attention, perceptron."""
        first, second = jax.random.split(key)
        return self.perceptron.random_layer(self.attention.random_layer(state, number, first), number, second)


def _build(
    d: int = 128,
    heads: int = 8,
    step: float = 1.13,
    logit_scale: float = 1.0,
    qk_dim: float | None = None,
    activation: str = "erf",
    sigma_w: float = 3.0,
    perceptron_step: float = 0.8,
    width: int | None = None,
) -> RandomBlock:
    attention = RandomTransformer(d, heads=heads, step=step, logit_scale=logit_scale, qk_dim=qk_dim)
    return RandomBlock(attention, RandomPerceptron(activation, sigma_w=sigma_w, strength=perceptron_step, width=width))


MODELS.register(
    "random-block",
    Description(
        _build,
        "Random transformer with perceptrons (chain)",
        "xᵢ ← N( xᵢ + (η/H) Σₕ Vₕ mₕ(xᵢ) ),  xᵢ ← N( xᵢ + η_m W₂ φ(W₁ √d xᵢ) ),  all weights fresh",
        "A saturating odd perceptron stops the collapse at an overlap below one; relu does not.",
        "--layers 60, n = 48, d = 128, activation = erf, sigma_w = 3, perceptron_step = 0.8",
        (HOMOGENIZED,),
    ),
)
