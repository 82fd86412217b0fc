"""Attention under a normalisation scheme: directions and magnitudes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.attention import Attention
from pathlines.foundation.errors import of_kind, require
from pathlines.foundation.module import overridden
from pathlines.foundation.papers import MEAN_FIELD_DYNAMICS, NORMALIZATION, Paper
from pathlines.foundation.schedule import varies
from pathlines.foundation.traceable import is_traced, traceable_array
from pathlines.kernels.choice import Choice
from pathlines.model.base import MODELS, Description
from pathlines.model.capability import HasAttention, HasDomain, HasEnergy, HasFastSums, HasLayers
from pathlines.model.clustering.schemes import NGPT, SCHEMES, MixLN, Scheme
from pathlines.model.parts.energy import over_value
from pathlines.model.parts.offer import Offer, OffersForms, Wanted
from pathlines.model.self_attention import SelfAttention
from pathlines.weights import Weights


class Polar(NamedTuple):
    """Tokens x_j = r_j θ_j: unit directions (n, d) and magnitudes (n, 1)."""

    direction: Float[Array, "n d"]
    magnitude: Float[Array, "n 1"]


class NormalisedAttention(OffersForms, HasLayers, HasAttention, HasFastSums, HasEnergy, HasDomain):
    """dθ_j/dt = P_{θ_j} A_j / s_j, dr_j/dt as the scheme says; A_j = Σ_k a_jk V θ_k with scores of *directions*.

    Normalization in Attention Dynamics, arXiv:2510.22026. Schemes (``scheme="post"|"pre"|"mix"|"peri"|"ngpt"|"sqrt"``
    or a ``Scheme``): s = 1, r, 1 then r, r|A|, |A|/α, √(t+1).

    You will see one picture at six speeds: Post-LN collapses like e^{-2t}, sqrt-scaling like e^{-4√t}, nGPT like
    e^{-2αt}, Pre-, Mix- and Peri-LN only like C/t² because magnitudes grow and slow the directions down.

    Good values: n = 16..64, β = 1..5, until 20, magnitudes 1. Cost O(n²d) per drift.

    Args:
        beta: β ≥ 0, of the scores of directions, or a function of depth-time. The larger, the later the collapse.
        scheme: "post", "pre", "mix", "peri", "ngpt", "sqrt", or a ``Scheme`` with its own switch τ or speed α.
        attention: a kind of attention, softmax by default.
        weights: heads (Q, K, V), the identity by default.
        magnitudes: r_j(0) > 0, one number or (n,). The larger, the slower are Pre-, Mix- and Peri-LN.
        multiplicities: w_j, for w_j coincident tokens.
    """

    papers: ClassVar[tuple[Paper, ...]] = (NORMALIZATION, MEAN_FIELD_DYNAMICS)

    inner: SelfAttention
    scheme: Scheme
    magnitudes: Float[Array, ...]

    def __init__(
        self,
        beta: float | Callable[[Array], Array],
        scheme: str | Scheme = "post",
        *,
        attention: Attention | None = None,
        weights: Weights | None = None,
        magnitudes: Any = 1.0,
        multiplicities: Any = None,
    ) -> None:
        self.inner = SelfAttention(beta, attention=attention, weights=weights, multiplicities=multiplicities)
        self.scheme = SCHEMES[scheme]() if isinstance(scheme, str) else of_kind("scheme", scheme, Scheme, "a Scheme")
        magnitudes = traceable_array("magnitudes", magnitudes)
        positive = is_traced(magnitudes) or bool((magnitudes > 0).all())
        require(positive and magnitudes.ndim <= 1, "magnitudes", "be positive", magnitudes)
        self.magnitudes = jnp.asarray(magnitudes, float)

    @property
    def beta(self) -> Any:
        """Inverse temperature."""
        return self.inner.beta

    @property
    def multiplicities(self) -> Float[Array, " n"] | None:
        """Token multiplicities."""
        return self.inner.multiplicities

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Of the scheme and of the weights."""
        return self.scheme.breakpoints + self.inner.breakpoints

    def with_fast_sums(self, n: int, d: int, dtype: Any, relative: float) -> tuple[Self, Choice | None]:
        """As the attention inside."""
        inner, choice = self.inner.with_fast_sums(n, d, dtype, relative)
        return eqx.tree_at(lambda m: m.inner, self, inner), choice

    def forms(self, wanted: Wanted) -> Iterator[Offer]:
        """The span of the directions."""
        from pathlines.model.parts.attention_forms import span_offer

        yield span_offer(self, self.inner, NormalisedAttention, wanted)

    def check(self, tokens: Any) -> None:
        """Unit directions."""
        self.inner.check(tokens)

    def initial(self, tokens: Float[Array, "n d"]) -> Polar:
        """Directions with the starting magnitudes."""
        n = tokens.shape[0]
        return Polar(tokens, jnp.broadcast_to(self.magnitudes.astype(tokens.dtype), (n,))[:, None])

    def tokens(self, state: Polar, t: Array) -> Float[Array, "n d"]:
        """Directions θ_j."""
        return state.direction

    def retract(self, state: Polar) -> Polar:
        """Directions back to the sphere."""
        return Polar(self.inner.retract(state.direction), state.magnitude)

    def admissible(self, state: Polar) -> Array | None:
        """Magnitudes are positive; with repulsive values Pre-LN drives them to zero, where the model ends."""
        return jnp.all(state.magnitude > 0)

    def _rates(self, state: Polar, t: Array) -> tuple[Array, Array, Array, Array]:
        a, log_scale = self.inner.attend(state.direction, t)
        h = jnp.sum(a * state.direction, axis=-1, keepdims=True)
        m = jnp.sqrt(jnp.sum(a * a, axis=-1, keepdims=True))
        s, growth = self.scheme.rates(t, state.magnitude, h, m)
        return (a - h * state.direction) / s, growth, s, log_scale

    def drift(self, state: Polar, t: Array) -> Polar:
        """(P_θ A / s, dr/dt)."""
        velocity, growth, _, _ = self._rates(state, t)
        return Polar(velocity, growth)

    def layer(self, state: Polar, t: Array, step: Array) -> Polar:
        """One discrete layer of the scheme."""
        a, _ = self.inner.attend(state.direction, t)
        x, r = self.scheme.layer(t, step, state.direction, state.magnitude, a)
        return Polar(self.inner.retract(x), r)

    def attention_matrix(self, state: Polar, t: Array) -> Float[Array, "n n"]:
        """a_jk of directions."""
        return self.inner.attention_matrix(state.direction, t)

    def energy_deficit(self, state: Polar, t: Array) -> Float[Array, ""] | None:
        """F of the directions."""
        return self.inner.energy_deficit(state.direction, t)

    def power(self, state: Polar, t: Array) -> Float[Array, ""] | None:
        """Σ_i m_i Z_i e^{-β} s_i |dθ_i/dt|²."""
        if varies(self.beta):
            return None
        velocity, _, s, log_scale = self._rates(state, t)
        masses = self.normalised_masses(state.direction.shape[0], state.direction.dtype)
        scale = jnp.exp(log_scale - self.beta * self.inner.top) * s[:, 0]
        work = jnp.sum(masses * scale * jnp.sum(velocity * velocity, axis=-1))
        return -work if self.inner.energy_kind == "opposed" else over_value(work, self.inner.weights.value_sign)

    def energy_identity(self) -> str:
        """As for SA, unless a derived class has methods of its own."""
        changed = overridden(self, NormalisedAttention)
        return f"{type(self).__name__} has its own `{changed[0]}`" if changed else self.inner.energy_identity()


def _build(name: str, beta: float = 4.0, magnitude: float = 1.0) -> NormalisedAttention:
    return NormalisedAttention(beta, name, magnitudes=magnitude)


def _build_mix(beta: float = 4.0, magnitude: float = 1.0, switch: float = 2.0) -> NormalisedAttention:
    return NormalisedAttention(beta, MixLN(switch), magnitudes=magnitude)


def _build_ngpt(beta: float = 4.0, alpha: float = 1.0) -> NormalisedAttention:
    return NormalisedAttention(beta, NGPT(alpha))


for _name, _title, _equation, _sees, _make in (
    ("post", "Post-LN", "θ̇ = P_θ A", "Exponential collapse, 1 − ρ ~ e^{−2t}.", partial(_build, "post")),
    ("pre", "Pre-LN", "θ̇ = P_θ A/r,  ṙ = ⟨θ,A⟩", "Algebraic collapse, t²(1 − ρ) → C.", partial(_build, "pre")),
    ("mix", "Mix-LN", "Post-LN for t < τ, then Pre-LN", "A head start, then the Pre-LN law.", _build_mix),
    (
        "peri",
        "Peri-LN",
        "θ̇ = P_θ A/(r|A|),  ṙ = ⟨θ,A⟩/|A|",
        "Fast start (2/√n), the same C as Pre-LN.",
        partial(_build, "peri"),
    ),
    ("ngpt", "nGPT", "θ̇ = α P_θ A/|A|", "The fastest: e^{−2αt} with a fast start.", _build_ngpt),
    (
        "sqrt",
        "sqrt-scaling (LN-scaling)",
        "θ̇ = P_θ A/√(t+1)",
        "Post-LN on the slow clock 2(√(t+1) − 1).",
        partial(_build, "sqrt"),
    ),
):
    MODELS.register(
        f"{_name}-ln" if _name in ("post", "pre", "mix", "peri") else _name,
        Description(
            _make,
            _title,
            _equation,
            _sees,
            "n = 16…64, d ≥ n for the equiangular law, beta = 1…5, until = 20",
            (NORMALIZATION, MEAN_FIELD_DYNAMICS),
        ),
    )
