"""The idea of a model: a vector field (and possibly a layer map) on states that show tokens."""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import msgspec
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.domain.space import pair_deficits
from pathlines.foundation.errors import ArgumentError, FormError, require
from pathlines.foundation.module import Module
from pathlines.foundation.papers import Paper
from pathlines.foundation.parameters import record_of
from pathlines.foundation.registry import Registry
from pathlines.foundation.setting import Setting
from pathlines.foundation.traceable import is_traced, traceable_array
from pathlines.kernels.choice import Choice

State = Any

MANY_TOKENS = 512
"""Beyond it n × n numbers per record cost more than the steps between them."""
BLOCK_PAIRS = 1 << 20
"""Pairs of tokens that are looked at side by side."""


class Model(Module):
    """dX/dt = drift(X, t), on a state X that is a pytree of arrays (for most models, the ``(n, d)`` tokens).

    Subclasses are final. What a model does not have (a drift, a layer map, an energy) it does not override: a chain of
    random layers has ``random_layer`` instead of ``drift``.
    ``papers`` are the sources a run of it should cite; ``not_swept`` names parameters that decide static fields;
    ``watched`` is the name and the meaning of what ``watched_layer`` counts.
    """

    papers: ClassVar[tuple[Paper, ...]] = ()
    not_swept: ClassVar[tuple[str, ...]] = ()
    watched: ClassVar[tuple[str, str]] = ("", "")

    @abstractmethod
    def initial(self, tokens: Float[Array, "n d"]) -> State:
        """The state of given tokens."""

    def drift(self, state: State, t: Array) -> State:
        """The velocity; tangent when the state lies in its domain."""
        raise FormError(f"{type(self).__name__} has no drift: it is a chain of random layers; use chain().")

    @abstractmethod
    def tokens(self, state: State, t: Array) -> Float[Array, "n d"]:
        """The tokens that observables look at (directions on the sphere, z in R^d)."""

    @abstractmethod
    def check(self, tokens: Any) -> None:
        """Raise ``ArgumentError`` unless ``tokens`` are admissible for this model."""

    def retract(self, state: State) -> State:
        """Bring a state back to its domain."""
        return state

    def layer(self, state: State, t: Array, step: Array) -> State:
        """One discrete layer of step η at depth-time t: a model of its own, not an integrator of ``drift``."""
        raise FormError(f"{type(self).__name__} has no layer map; use flow().")

    def random_layer(self, state: State, number: Array, key: PRNGKeyArray) -> State:
        """Layer ``number`` = 0, 1, … of a chain, with fresh weights (or noise) drawn from ``key``."""
        raise FormError(f"{type(self).__name__} has no random layers; use flow() or layers().")

    def watched_layer(self, state: State, number: Array, key: PRNGKeyArray) -> tuple[State, Array | None]:
        """``random_layer``, and whether this layer broke what the model promises (``watched`` says how).

        ``chain`` counts such layers in a certificate of the run; ``None``: nothing is watched.
        """
        return self.random_layer(state, number, key), None

    @property
    def has_random_layers(self) -> bool:
        """Whether this is a chain: ``random_layer`` is defined."""
        return type(self).random_layer is not Model.random_layer

    @property
    def clocks(self) -> dict[str, float]:
        """Time that passes in one random layer, by name, the clock of the records first; empty: layers are counted."""
        return {}

    @property
    def derived(self) -> dict[str, Any]:
        """Numbers that decide the behaviour and follow from the parameters; shown with every run."""
        return {}

    def sampler_for(self, shape: tuple[int, ...], ambient: bool, sampler: str = "auto") -> tuple[Model, str, str]:
        """The model whose ``random_layer`` a chain runs from starts of that shape: (model, its name, the reason).

        ``ambient`` says that the records look at ambient coordinates. Models with several exact samplers override this.
        """
        if sampler != "auto":
            raise ArgumentError(f"Argument `sampler` must be 'auto' for {type(self).__name__}, but is {sampler!r}.")
        return self, "direct", "the only sampler of this model"

    def as_tokens(self, start: Any) -> Any:
        """A start in another form than tokens (a Gram matrix, say) brought to the form that ``initial`` takes."""
        return start

    def layer_work(self, state: State) -> float:
        """Numbers one random layer holds at a time: decides how many runs share a vector loop."""
        return 8.0 * sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(state))

    def spread(self, state: State) -> Array | None:
        """An upper bound of every pair deficit, at no more than O(nd); ``None`` for models without pairs of tokens."""
        return None

    def deficits(self, state: State, t: Array) -> Float[Array, "n n"]:
        """u_ij = ½|x_i - x_j|² of the tokens."""
        return pair_deficits(self.tokens(state, t))

    def deficits_of(self, state: State, t: Array, i: Array) -> Float[Array, " n"]:
        """Row i of ``deficits``, for many tokens."""
        if not self.has_tokens:
            return self.deficits(state, t)[i]
        x = self.tokens(state, t)
        return jnp.sum(0.5 * (x - x[i]) ** 2, axis=-1)

    def attention_matrix(self, state: State, t: Array) -> Float[Array, "n n"]:
        """The weights a_ij of one head, diagonal included."""
        raise FormError(f"{type(self).__name__} does not expose its attention matrix.")

    def head_attentions(self, state: State, t: Array, key: PRNGKeyArray) -> Float[Array, "h n n"]:
        """Attention of each head; of one more layer, drawn from ``key``, where heads are random."""
        return self.attention_matrix(state, t)[None]

    def with_fast_sums(self, n: int, d: int, dtype: Any, relative: float) -> tuple[Model, Choice | None]:
        """This model with sums over tokens in the cheapest way of relative error below ``relative``, and the choice."""
        return self, None

    def normalised_masses(self, n: int, dtype: Any) -> Float[Array, " n"]:
        """Token masses m_j = w_j / Σ w, uniform without multiplicities."""
        weights = getattr(self, "multiplicities", None)
        if weights is None:
            return jnp.full(n, 1.0 / n, dtype)
        return jnp.asarray(weights, dtype) / jnp.sum(weights)

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Times where the drift jumps."""
        return ()

    @property
    def on_sphere(self) -> bool:
        """Whether tokens are unit vectors, so that u_ij = 1 - <x_i, x_j>."""
        return True

    def admissible(self, state: State) -> Array | None:
        """Whether a state is one the model speaks about; ``None`` when every finite state is."""
        return None

    @property
    def inadmissible(self) -> str:
        """What it means that a state is no longer ``admissible``, for the message of a run that stops there."""
        return "the state left the model's domain"

    @property
    def has_tokens(self) -> bool:
        """Whether states carry token coordinates."""
        return True

    @property
    def relative_control(self) -> bool:
        """Whether step control must be purely relative (states that decay to zero with meaningful digits)."""
        return False

    def energy_deficit(self, state: State, t: Array) -> Float[Array, ""] | None:
        """F = e^{-c}(E - E_max) for models with an energy: finite for every β, and smooth at β = 0."""
        return None

    def power(self, state: State, t: Array) -> Float[Array, ""] | None:
        """dF/dt according to the energy identity."""
        return None

    def energy_identity(self) -> str:
        """Return "holds", or the reason why ``power`` is only reported and not asserted."""
        return "holds"

    def handover(self, state: State, t: float, until: float, at_horizon: bool) -> tuple[Model, State, str] | None:
        """A model that continues more accurately from here (same observables), with the reason; else ``None``."""
        return None

    def should_pause(self, state: State) -> Array | None:
        """Whether a run should pause here to consider ``handover``; ``None`` when there is no need to watch."""
        return None

    def horizon(self, tokens: Any) -> tuple[float, str]:
        """The time beyond which this model's arithmetic is noise, and why (infinite for most)."""
        return math.inf, ""

    @property
    def has_flow_map(self) -> bool:
        """Whether ``flow_map`` solves the model exactly."""
        return False

    def flow_map(self, state: State, t: float, until: float) -> State:
        """The exact solution from t to ``until``, for models that have one."""
        raise FormError(f"{type(self).__name__} has no closed-form flow.")


class PathModel(Model):
    """A chain on any state, a pytree of arrays that need not show tokens: override ``random_layer`` and, to have a
    time axis, ``clocks``.
    """

    def initial(self, tokens: Any) -> State:
        """The start is the state."""
        return tokens

    def tokens(self, state: State, t: Array) -> Float[Array, "n d"]:
        """There are no tokens."""
        raise FormError(f"{type(self).__name__} has no token coordinates.")

    def check(self, tokens: Any) -> None:
        """Every finite start is admissible."""

    @property
    def has_tokens(self) -> bool:
        """No tokens."""
        return False

    @property
    def on_sphere(self) -> bool:
        """No unit vectors."""
        return False


def checked_multiplicities(multiplicities: Any) -> Float[Array, " n"] | None:
    """Masses of tokens: at least 0, not all 0. A token of mass zero listens and is not heard."""
    if multiplicities is None:
        return None
    weights = traceable_array("multiplicities", multiplicities, ("n",))
    fine = is_traced(weights) or bool((weights >= 0).all() and weights.sum() > 0)
    require(fine, "multiplicities", "be at least 0, with a positive sum", weights)
    return jnp.asarray(weights, float)


class Snapshot(Module):
    """What an observable sees: one state of one model at one time, and the start of the run."""

    model: Model
    state: State
    time: Array
    start: State

    @property
    def tokens(self) -> Float[Array, "n d"]:
        """Tokens, rows x_i."""
        return self.model.tokens(self.state, self.time)

    @property
    def start_tokens(self) -> Float[Array, "n d"]:
        """Tokens at the start of the run."""
        return self.model.tokens(self.start, jnp.zeros_like(self.time))

    @property
    def deficits(self) -> Float[Array, "n n"]:
        """u_ij = ½|x_i - x_j|²."""
        self.require_room("pair deficits")
        return self.model.deficits(self.state, self.time)

    @property
    def masses(self) -> Float[Array, " n"]:
        """Token masses, summing to one."""
        rows = self.tokens if self.model.has_tokens else self.model.deficits(self.state, self.time)
        return self.model.normalised_masses(rows.shape[0], rows.dtype)

    @property
    def many(self) -> bool:
        """Whether n × n numbers are to be avoided: rows serve if they are of the very class that has the matrix."""
        whole, rows = (next(c for c in type(self.model).__mro__ if m in vars(c)) for m in ("deficits", "deficits_of"))
        return self.model.has_tokens and whole is rows and self.masses.shape[0] > MANY_TOKENS

    def of_rows(self, look: Callable[[Float[Array, " n"], Array], Array]) -> Array:
        """``look(u_i, i)`` for each token i, u_i its deficits with all tokens; many tokens are looked at in blocks."""
        if not self.many:
            u = self.deficits
            return jax.vmap(look)(u, jnp.arange(u.shape[0]))
        row = lambda i: look(self.model.deficits_of(self.state, self.time, i), i)  # noqa: E731
        return in_rows(row, self.masses.shape[0])

    def mean_deficit(self, masses: Float[Array, " n"]) -> Float[Array, ""]:
        """Σ_ij m_i m_j u_ij = Σ_i m_i |x_i - x̄|²: pair by pair for few tokens (all digits), O(nd) for many."""
        if not self.many:
            return masses @ self.deficits @ masses
        x = self.tokens
        return masses @ jnp.sum((x - masses @ x) ** 2, axis=-1)

    @property
    def attention(self) -> Float[Array, "n n"]:
        """The attention matrix a_ij."""
        self.require_room("attention matrix")
        return self.model.attention_matrix(self.state, self.time)

    def require_room(self, what: str) -> None:
        """``FormError`` for a matrix that this machine cannot hold, before it is asked for."""
        n, size = self.masses.shape[0], self.masses.dtype.itemsize
        if n * n * size > physical_memory():
            has = f"{n * n * size / 1e9:.0f} GB, and this machine has {physical_memory() / 1e9:.0f} GB"
            raise FormError(f"The {what} of n = {n} tokens takes {has}: record what needs no n × n numbers.")


def in_rows(row: Callable[[Array], Array], n: int) -> Array:
    """``row(i)`` for i = 0..n-1, where a row looks at n tokens: in blocks that stay in the cache."""
    return jax.lax.map(row, jnp.arange(n), batch_size=max(1, BLOCK_PAIRS // n))


@cache
def physical_memory() -> float:
    """Bytes of this machine; unbounded where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):
        return math.inf


class Description(msgspec.Struct, frozen=True):
    """A model for people: how to build it, its equation, what one sees, values to start from, whence it comes."""

    build: Callable[..., Model]
    title: str
    equation: str
    sees: str
    good_values: str
    papers: tuple[Paper, ...]

    @property
    def parameters(self) -> type[Setting]:
        """The record of what ``build`` takes: meanings, symbols, bounds and defaults."""
        return record_of(self.build)


MODELS: Registry[Description] = Registry("model", "pathlines.model")
