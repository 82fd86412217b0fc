"""Self-attention on the sphere or in R^d: SA, USA, general (Q, K, V), many heads, a perceptron, repulsion."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, ClassVar, Self

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.attention import ATTENTIONS, Attention, SoftmaxAttention, UnnormalisedAttention
from pathlines.attention.masks import PositionMask, as_mask
from pathlines.domain import Domain, Euclidean, Sphere
from pathlines.foundation.errors import ArgumentError, FormError, PathlinesWarning, of_kind, positive_integer, require
from pathlines.foundation.module import overridden
from pathlines.foundation.papers import PERSPECTIVE, Paper
from pathlines.foundation.schedule import at_time, number_or_schedule, unknown, varies
from pathlines.foundation.traceable import is_traced
from pathlines.kernels import attend, attend_heads, attention_weights
from pathlines.kernels.choice import SUMMATIONS, Choice, Sums, choose_summation, least_partition, own_share
from pathlines.kernels.dense import check_masked
from pathlines.model.base import MANY_TOKENS, Model, checked_multiplicities
from pathlines.model.capability import HandsOver, HasAttention, HasDomain, HasEnergy, HasFastSums, HasLayers, Pauses
from pathlines.model.clustering.gram import GramAttention
from pathlines.model.parts.energy import over_value, pair_energy
from pathlines.model.parts.offer import Offer, OffersForms, Wanted
from pathlines.model.parts.perceptron import Perceptron
from pathlines.model.parts.summation import SpectralSum, reduction_of
from pathlines.model.parts.value_symmetry import energy_identity, symmetric_value
from pathlines.weights import IdentityWeights, Weights

LARGEST_GRAM = MANY_TOKENS
START: Any = np.zeros(())
"""Depth-time zero, without asking the device for it."""
RIPE_DEFICIT = 5e-7
DIRECT_ERROR = 1e-10
"""Relative error of spectral sums in a drift that is called by itself, where no run has a tolerance."""


class SelfAttention(OffersForms, HasLayers, HasAttention, HasFastSums, HasEnergy, HasDomain, Pauses, HandsOver):
    """dx_i/dt = P_{x_i}( Σ_h Σ_j a^h_ij V_h x_j + W σ(B x_i + b) ), a_ij ∝ e^{β<Q x_i, K x_j>}.

    A mathematical perspective on Transformers, arXiv:2312.10794, equations (SA) and (USA).

    Args:
        beta: β ≥ 0, the inverse temperature, or a function of depth-time (``lambda t: 2 + t``); it multiplies the score
            (the usual 1/√d and the norms of Q, K are inside it). At 0 everyone hears everyone equally; the larger, the
            fewer tokens one listens to, the more clusters form first (about √(2β) on the circle) and the longer they
            live (exponentially in β).
        attention: a kind of ``ATTENTIONS`` or its name, with β times its scores; by default softmax over j, j = i
            included. ``UnnormalisedAttention()`` divides by n instead (USA).
        weights: heads (Q_h, K_h, V_h), ``FixedWeights``, ``PiecewiseWeights`` or ``VaryingWeights`` (functions of
            depth-time); by default Q = K = V = I. V = -I repels. The cost grows with the number H of heads.
        perceptron: W σ(B x + b), added to attention; by default none.
        multiplicities: w_j ≥ 0, for w_j coincident tokens (scores get + ln w_j), exactly; a token with w_j = 0 listens
            and is not heard (at the end of the list it costs a row and no column). By default all are one.
        space: "sphere", or "euclidean" without the projection P.
        summation: "auto", "dense" or "spectral"; every run records the choice. A drift called by itself sums directly
            unless "spectral" is asked for.
        mask: who hears whom, and how strongly by position (``attention.masks``): "causal" (j ≤ i), "alibi:2",
            "window:64", …, a mask such as ``AlibiMask(2.0)``, one position a token (equal ones see each other) or a
            matrix. In words and positions a token hears itself; by default everyone hears everyone.
        frozen: how many tokens, the first, are heard and do not move; by default none. The more, the less of the cloud
            moves.

    You will see tokens gather: for Q = K = V = I every generic start ends in one point, after plateaus with several
    clusters that last longer the larger β is. V = -I spreads them. Antipodal pairs are stationary for every β, so
    symmetric starts are the exceptional set of the theorems.

    Good values: n = 32..200, d = 2 or 3, β = 1 (direct collapse), β = 9 (long plateaus), until 15..30.
    Cost of a drift: O(H n² d) time, O(n d) memory; O(nC) by C harmonics on the circle and on S² where that is less.
    """

    papers: ClassVar[tuple[Paper, ...]] = (PERSPECTIVE,)

    beta: Any
    attention: Attention
    weights: Weights
    perceptron: Perceptron | None
    multiplicities: Float[Array, " n"] | None
    top: Float[Array, ""]
    space: str = eqx.field(static=True)
    energy_kind: str = eqx.field(static=True)
    symmetric_value: bool = eqx.field(static=True)
    summation: str = eqx.field(static=True)
    fast: SpectralSum | None
    mask: PositionMask | None
    frozen: int = eqx.field(static=True)
    heard: int | None = eqx.field(static=True)

    def __init__(
        self,
        beta: Any,
        *,
        attention: Attention | str | None = None,
        weights: Weights | None = None,
        perceptron: Perceptron | None = None,
        multiplicities: Any = None,
        space: str = "sphere",
        summation: str = "auto",
        mask: Any = None,
        frozen: int = 0,
    ) -> None:
        self.beta = number_or_schedule("beta", beta, low=0.0)
        require(space in ("sphere", "euclidean"), "space", "be 'sphere' or 'euclidean'", space)
        kind = SoftmaxAttention() if attention is None else attention
        self.attention = ATTENTIONS[kind]() if isinstance(kind, str) else kind
        of_kind("attention", self.attention, Attention, "a kind of attention or its name")
        self.mask, self.frozen = as_mask(mask), positive_integer("frozen", frozen, 0)
        check_masked(self.attention, self.mask)
        if self._overflows():
            raise ArgumentError(
                f"Argument `beta` must be at most 700 for the kernel e^(β<x,y>), but is {beta:g}; use the scaled "
                "kernel e^(β(<x,y>-1)), attention=UnnormalisedAttention(shift=beta), whose time runs e^β times slower."
            )
        self.weights = IdentityWeights() if weights is None else of_kind("weights", weights, Weights, "Weights")
        self.perceptron = None if perceptron is None else of_kind("perceptron", perceptron, Perceptron, "a Perceptron")
        self.multiplicities = checked_multiplicities(multiplicities)
        whole = multiplicities is None or self.mask is not None or is_traced(multiplicities)
        self.heard = None if whole else int(np.flatnonzero(multiplicities)[-1]) + 1
        self.space = space
        self.energy_kind, top = _energy_identity(self)
        self.top = jnp.asarray(top)
        self.symmetric_value = symmetric_value(self.weights)
        require(summation in SUMMATIONS, "summation", f"be one of {', '.join(SUMMATIONS)}", summation)
        self.summation, self.fast = summation, None

    def _overflows(self) -> bool:
        if not isinstance(self.attention, UnnormalisedAttention) or unknown((self.beta, self.attention)):
            return False
        return float(self.beta) - float(self.attention.shift) > 700

    def plain_obstacle(self) -> str | None:
        """Why this is not SA or USA with Q = K = V = I on the sphere, or nothing."""
        if changed := overridden(self, SelfAttention):
            return f"{type(self).__name__} has its own `{changed[0]}`"
        if self.energy_kind != "identity" or float(self.weights.value_sign) != 1:
            return "it needs softmax or unnormalised attention with Q = K = V = I on the sphere"
        return None

    def forms(self, wanted: Wanted) -> Iterator[Offer]:
        """Tokens, their span, Fourier modes on the circle, pair deficits."""
        from pathlines.model.parts.attention_forms import attention_forms

        return attention_forms(self, wanted)

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Where piecewise weights jump."""
        return self.weights.breakpoints

    @property
    def on_sphere(self) -> bool:
        """Unless ``space="euclidean"``."""
        return self.space == "sphere"

    def domain(self, d: int) -> Domain:
        """The space the tokens live in."""
        return _domain(self.space, d)

    def check(self, tokens: Any) -> None:
        """Tokens of the domain, with the width of the weights and one multiplicity each."""
        shape = np.shape(tokens)
        if len(shape) < 2 or 0 in shape:
            raise ArgumentError(f"Argument `tokens` must have shape (n, d) with n, d ≥ 1, but has shape {shape}.")
        n, d = shape[-2:]
        self.domain(d).check(tokens)
        heads = self.weights.at(START)
        if heads is not None and heads.value.shape[-1] != d:
            raise ArgumentError(
                f"Argument `tokens` must have width d = {heads.value.shape[-1]} of the weights, but {d}."
            )
        if self.perceptron is not None and self.perceptron.inner.shape[-1] != d:
            width = self.perceptron.inner.shape[-1]
            raise ArgumentError(f"Argument `tokens` must have width d = {width} of the perceptron, but {d}.")
        if self.multiplicities is not None and self.multiplicities.shape != (n,):
            raise ArgumentError(
                f"Argument `multiplicities` must have one entry per token ({n}), not {self.multiplicities.shape}."
            )
        if self.mask is not None:
            self.mask.check(n, self.multiplicities)
        require(self.frozen <= n, "frozen", f"be at most the number of tokens, {n}", self.frozen)
        if len(shape) != 2 or unknown((self, tokens)):
            return
        if text := self.attention.caution(lambda: self.scaled_pairs(np.asarray(tokens))):
            warnings.warn(text, PathlinesWarning, stacklevel=4)

    def scaled_pairs(self, tokens: np.ndarray) -> tuple[np.ndarray, ...]:
        """(βQx, Kx, masses) of the first head at depth-time zero."""
        query, key = self.paired(jnp.asarray(tokens), START)
        masses = self.normalised_masses(len(tokens), tokens.dtype)
        return np.asarray(self.beta * query), np.asarray(key), np.asarray(masses)

    def admissible(self, state: Float[Array, "n d"]) -> Array | None:
        """Whether scores have digits left, for kinds that need them."""

        def paired() -> tuple[Array, Array]:
            query, key = self.paired(state, START)
            return self.beta * query, key

        return self.attention.legible(paired)

    @property
    def inadmissible(self) -> str:
        """Scores without digits."""
        return "scores are so large that their rounding decides the weights"

    def initial(self, tokens: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The state is the tokens."""
        return tokens

    def tokens(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """The tokens are the state."""
        return state

    def retract(self, state: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """N(x) = x/|x| on the sphere."""
        return self.domain(state.shape[-1]).retract(state)

    def attend(self, x: Float[Array, "n d"], t: Array) -> tuple[Float[Array, "n d"], Float[Array, " n"]]:
        """The attention vectors A_i (perceptron included) and the log-scale of head one."""
        if varies(self.beta):
            return at_time(self, t).attend(x, t)
        masses = self.normalised_masses(x.shape[0], x.dtype)
        heads = self.weights.at(t)
        fast = self._harmonics(x)
        if fast is not None:
            out, log_scale = fast.attend(self.attention, x, self.beta, masses, self.mask)
            out = self.weights.value_sign * out
        elif heads is None:
            out, log_scale = self._summed(x, masses)
            out = self.weights.value_sign * out
        else:
            matrices = (heads.query, heads.key, heads.value)
            outs, scales = attend_heads(self.attention, matrices, x, masses[: self.heard], self.mask, beta=self.beta)
            out, log_scale = jnp.sum(outs, axis=0), scales[0]
        if self.perceptron is not None:
            out = out + self.perceptron(x)
        return out, log_scale

    def _harmonics(self, x: Float[Array, "n d"]) -> SpectralSum | None:
        """Those that a run chose by ``with_fast_sums``; in a drift called by itself, those that were asked for."""
        if self.fast is not None or self.summation != "spectral":
            return self.fast
        if is_traced(self.beta):
            raise FormError(
                "summation='spectral' needs β as a number when a program is compiled, but β is an argument of it: "
                "compile jax.jit(lambda x, t: model.drift(x, t)), use flow, or sweep with summation='dense'."
            )
        n, d = x.shape
        model: Any = self.with_fast_sums(n, d, x.dtype, DIRECT_ERROR)[0]
        found: SpectralSum = model.fast
        return found

    def _summed(self, x: Float[Array, "n d"], masses: Float[Array, " n"]) -> tuple[Array, Array]:
        """Attention with Q = K = V = I."""
        heard = x[: self.heard]
        return attend(self.attention, x, heard, heard, masses[: self.heard], self.mask, beta=self.beta)

    def with_fast_sums(self, n: int, d: int, dtype: Any, relative: float) -> tuple[Self, Choice | None]:
        """With the cheapest sums whose relative error is below ``relative``; directly, where β is not one number."""
        if unknown(self):
            require(
                self.summation != "spectral", "summation", "be 'dense' for β that is traced or a function", "spectral"
            )
            return self, None
        core = self.attention.core
        plain = self.space == "sphere" and core is self.attention
        reduction = reduction_of(self.weights) if plain else None
        beta = float(self.beta) * (1.0 if reduction is None else reduction.scale)
        heads = self.weights.at(START)
        count = 1 if heads is None else heads.value.shape[0]
        aligned = 1.0 if reduction is None else reduction.alignment
        masses = np.ones(n) if self.multiplicities is None else np.asarray(self.multiplicities)
        least = least_partition(own_share(masses, self.mask), beta, aligned)
        unit = reduction is not None
        sums = Sums(core, n, d, beta, jnp.dtype(dtype).name, unit, self.mask, count, relative, least)
        choice = choose_summation(sums, self.summation)
        if choice.method != "spectral":
            return self, choice
        assert reduction is not None
        fast = SpectralSum(reduction, choice.tolerance, beta)
        return eqx.tree_at(lambda m: m.fast, self, fast, is_leaf=lambda x: x is None), choice

    def drift(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """P_{x_i} A_i."""
        return self._unfrozen(self.domain(state.shape[-1]).tangent(state, self.attend(state, t)[0]))

    def _unfrozen(self, move: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """With the first tokens at rest."""
        return move if self.frozen == 0 else move.at[: self.frozen].set(0.0)

    def layer(self, state: Float[Array, "n d"], t: Array, step: Array) -> Float[Array, "n d"]:
        """x_i ← N(x_i + η A_i): one Post-LN layer (no N in R^d)."""
        return self.retract(state + step * self._unfrozen(self.attend(state, t)[0]))

    def attention_matrix(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n n"]:
        """a_ij of the first head."""
        self = at_time(self, t)
        masses = self.normalised_masses(*_like(state))
        return attention_weights(self.attention, *self.paired(state, t), masses, self.mask, beta=self.beta)

    def paired(self, x: Float[Array, "n d"], t: Array) -> tuple[Float[Array, "n p"], Float[Array, "n p"]]:
        """(Q x, K x) of the first head."""
        heads = self.weights.at(t)
        query = x if heads is None or heads.query is None else x @ heads.query[0].T
        key = x if heads is None or heads.key is None else x @ heads.key[0].T
        return query, key

    def energy_deficit(self, state: Float[Array, "n d"], t: Array) -> Float[Array, ""] | None:
        """F = e^{-β}(E_β - E_max) = Σ_ij m_i m_j (e^{-βu_ij} - 1)/(2β), E_β = Σ m_i m_j e^{β<x_i,x_j>}/(2β).

        With Q^T K = ±V the exponent is β<Q x_i, K x_j> and β|Q^T K| takes the place of β in the shift.
        """
        if self.space != "sphere":
            return None
        self = at_time(self, t)
        masses = self.normalised_masses(*_like(state))
        if state.shape[0] > MANY_TOKENS:
            return self._energy_by_sums(state, t, masses)
        if self.energy_kind in ("matched", "opposed"):
            query, key = self.paired(state, t)
            deficits = self.top - query @ key.T  # before β, so that β = 0 has an energy too
        else:
            deficits = self.deficits(state, t)
        return masses @ pair_energy(deficits, self.beta) @ masses / 2

    def _energy_by_sums(self, x: Float[Array, "n d"], t: Array, masses: Float[Array, " n"]) -> Float[Array, ""]:
        """F = (Σ_i m_i Z_i e^{-β} - 1)/(2β) without the n × n pairs; near collapse its digits are absolute."""
        parts = lambda m: (m.attention, m.mask)  # noqa: E731 - the energy is that of all pairs, masked or not
        whole = eqx.tree_at(parts, self, (SoftmaxAttention(), None), is_leaf=lambda x: x is None)
        log_partition = whole.attend(x, t)[1]
        return self._energy_of(log_partition - self.beta * self.top, x, masses)

    def _energy_of(
        self, logs: Float[Array, " n"], x: Float[Array, "n d"], masses: Float[Array, " n"]
    ) -> Float[Array, ""]:
        """F from ln Z_i - β|Q^T K|."""
        mean = masses @ x
        flat = (jnp.sum(mean * mean) - 1) / 2
        safe = jnp.where(self.beta > 0, self.beta, 1.0)
        return jnp.where(self.beta > 0, masses @ jnp.expm1(logs) / (2 * safe), flat)

    def power(self, state: Float[Array, "n d"], t: Array) -> Float[Array, ""] | None:
        """dF/dt = Σ_i m_i Z_i e^{-β} |dx_i/dt|² for softmax (Z_i = Σ_j m_j e^{β<x_i,x_j>}), without Z_i for USA."""
        if self.space != "sphere" or varies(self.beta):
            return None
        out, log_scale = self.attend(state, t)
        velocity = self.domain(state.shape[-1]).tangent(state, out)
        masses = self.normalised_masses(*_like(state))
        speed = jnp.sum(velocity * velocity, axis=-1)
        work = jnp.sum(masses * jnp.exp(log_scale - self.beta * self.top) * speed)
        return -work if self.energy_kind == "opposed" else over_value(work, self.weights.value_sign)

    def moving(
        self, state: Float[Array, "n d"], t: Array
    ) -> tuple[Float[Array, "n d"], Float[Array, ""] | None, Float[Array, ""] | None]:
        """All by the sums of the drift, for softmax on many tokens whose energy those sums are."""
        own = self.energy_kind in ("identity", "matched", "opposed") and isinstance(self.attention, SoftmaxAttention)
        changed = type(self).drift is not _DRIFT or overridden(self, SelfAttention)
        if not own or changed or state.shape[0] <= MANY_TOKENS:
            return super().moving(state, t)
        out, log_scale = self.attend(state, t)
        velocity = self.domain(state.shape[-1]).tangent(state, out)
        masses = self.normalised_masses(*_like(state))
        logs = log_scale - self.beta * self.top
        speed = jnp.sum(velocity * velocity, axis=-1)
        work = jnp.sum(masses * jnp.exp(logs) * speed)
        power = -work if self.energy_kind == "opposed" else over_value(work, self.weights.value_sign)
        return velocity, power, self._energy_of(logs, state, masses)

    def handover(self, state: Any, t: float, until: float, at_horizon: bool) -> tuple[Model, Any, str] | None:
        """Once all tokens are within 10⁻³ of each other, pair deficits keep the digits that coordinates lose.

        Only if the run will go below u = 10⁻¹⁶, where differences of coordinates have eight digits left.
        """
        if self.plain_obstacle() is not None or state.shape[0] > LARGEST_GRAM:
            return None
        rows = np.asarray(state)
        if np.max(np.sum((rows - rows[0]) ** 2, axis=-1)) > 2 * RIPE_DEFICIT:
            return None
        unnormalised = isinstance(self.attention, UnnormalisedAttention)
        shift = self.attention.shift if isinstance(self.attention, UnnormalisedAttention) else 0.0
        rate = np.exp(float(self.beta) - float(shift)) if unnormalised else 1.0
        deficits = self.deficits(state, jnp.asarray(t))
        largest = float(np.max(np.asarray(deficits)))
        if largest > RIPE_DEFICIT or largest * np.exp(-2 * rate * (until - t)) > 1e-16:
            return None
        gram = GramAttention(self.beta, self.multiplicities, unnormalised, shift)
        return gram, deficits, "one cluster of diameter below 1e-3: deficits are integrated relatively"

    def should_pause(self, state: Float[Array, "n d"]) -> Array | None:
        """All tokens within 10⁻³ of each other, for SA and USA with Q = K = V = I and few enough tokens for pairs."""
        if self.energy_kind != "identity" or state.shape[0] > LARGEST_GRAM:
            return None
        return (jnp.max(self.deficits(state, jnp.zeros(()))) <= RIPE_DEFICIT) & (self.weights.value_sign == 1)

    def energy_identity(self) -> str:
        """The identity needs V = ±Q^T K symmetric, one head, no perceptron, no mask and an exponential kind."""
        return "holds" if self.energy_kind in ("identity", "matched", "opposed") else self.energy_kind


_DRIFT = SelfAttention.drift
"""Whoever changes the drift of the class gets it."""


@lru_cache(maxsize=256)
def _domain(space: str, d: int) -> Domain:
    return Sphere(d) if space == "sphere" else Euclidean(d)


def _like(state: Array) -> tuple[int, Any]:
    return state.shape[0], state.dtype


def _energy_identity(model: SelfAttention) -> tuple[str, float]:
    """``energy_identity`` of the weights, or what rules it out: a method of its own, kind, mask, space, perceptron."""
    if changed := overridden(model, SelfAttention):
        return f"{type(model).__name__} has its own `{changed[0]}`", 1.0
    if not model.attention.conservative:
        name = model.attention.label or type(model.attention).__name__
        return f"{name.lower()} is not a gradient of E_β", 1.0
    if model.mask is not None:
        return "masked attention is not a gradient of E_β", 1.0
    if model.frozen:
        return "frozen tokens do not climb E_β", 1.0
    if model.space != "sphere":
        return "no energy in R^d", 1.0
    if varies(model.beta):
        return "β is a function of depth-time", 1.0
    if model.perceptron is not None:
        return "the perceptron does work that E_β does not contain", 1.0
    return energy_identity(model.weights)
