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
from jaxtyping import Array, Float

from pathlines.domain.space import pair_deficits
from pathlines.foundation.errors import FormError, require
from pathlines.foundation.module import Module
from pathlines.foundation.papers import Paper
from pathlines.foundation.parameters import record_of
from pathlines.foundation.registry import Registry
from pathlines.foundation.setting import Setting
from pathlines.foundation.traceable import is_traced, traceable_array

State = Any

MANY_TOKENS = 512
"""Beyond it n × n numbers per record cost more than the steps between them."""
BLOCK_PAIRS = 1 << 20
"""Pairs of tokens that are looked at side by side."""


class Model(Module):
    """dX/dt = drift(X, t), on a state X that is a pytree of arrays (for most models, the ``(n, d)`` tokens).

    Every class is abstract or final. What else a model has (layers, random layers instead of a drift, an energy, forms)
    it takes from the classes of ``model/capability.py``. ``papers`` are the sources a run of it should cite;
    ``not_swept`` names parameters that decide static fields.
    """

    papers: ClassVar[tuple[Paper, ...]] = ()
    not_swept: ClassVar[tuple[str, ...]] = ()

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

    @property
    def derived(self) -> dict[str, Any]:
        """Numbers that decide the behaviour and follow from the parameters; shown with every run."""
        return {}

    def deficits(self, state: State, t: Array) -> Float[Array, "n n"]:
        """u_ij = ½|x_i - x_j|² of the tokens."""
        return pair_deficits(self.tokens(state, t))

    def deficits_of(self, state: State, t: Array, i: Array) -> Float[Array, " n"]:
        """Row i of ``deficits``, for many tokens."""
        if not self.has_tokens:
            return self.deficits(state, t)[i]
        x = self.tokens(state, t)
        return jnp.sum(0.5 * (x - x[i][None]) ** 2, axis=-1)

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

    @property
    def has_tokens(self) -> bool:
        """Whether states carry token coordinates."""
        return True


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
        return masses @ jnp.sum((x - (masses @ x)[None]) ** 2, axis=-1)

    @property
    def attention(self) -> Float[Array, "n n"]:
        """The attention matrix a_ij."""
        self.require_room("attention matrix")
        matrix = getattr(self.model, "attention_matrix", None)
        if matrix is None:
            raise FormError(f"{type(self.model).__name__} does not expose its attention matrix.")
        found: Float[Array, "n n"] = matrix(self.state, self.time)
        return found

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
    """A model for people: how to build it, its equation, what one sees, values to start from, whence it comes, and how
    well it is known to be the paper's own (``foundation/marks.py``).
    """

    build: Callable[..., Model]
    title: str
    equation: str
    sees: str
    good_values: str
    papers: tuple[Paper, ...]
    marks: tuple[str, ...] = ()
    convention: str = ""

    @property
    def parameters(self) -> type[Setting]:
        """The record of what ``build`` takes: meanings, symbols, bounds and defaults."""
        return record_of(self.build)


MODELS: Registry[Description] = Registry("model", "pathlines.model")
