"""What a model may have besides a state and a drift: each is a class that it derives from, and that engines ask for."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar, Self

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.foundation.errors import ArgumentError, FormError
from pathlines.kernels.choice import Choice
from pathlines.model.base import Model, State


class HasLayers(Model):
    """A discrete stack: a model of its own, not an integrator of ``drift``."""

    @abstractmethod
    def layer(self, state: State, t: Array, step: Array) -> State:
        """One layer of step η at depth-time t."""


Sampled = tuple["HasRandomLayers", str, str]
"""A model, its name as a sampler, and the reason for it."""


class HasRandomLayers(Model):
    """A chain of layers with fresh weights or noise; ``watched`` names and explains what ``watched_layer`` counts."""

    watched: ClassVar[tuple[str, str]] = ("", "")

    @abstractmethod
    def random_layer(self, state: State, number: Array, key: PRNGKeyArray) -> State:
        """Layer ``number`` = 0, 1, … of a chain, with fresh weights (or noise) drawn from ``key``."""

    def watched_layer(self, state: State, number: Array, key: PRNGKeyArray) -> tuple[State, Array | None]:
        """``random_layer``, and whether this layer broke what the model promises; ``None``: nothing is watched."""
        return self.random_layer(state, number, key), None

    @property
    def clocks(self) -> dict[str, float]:
        """Time that passes in one random layer, by name, the clock of the records first; empty: layers are counted."""
        return {}

    def sampler_for(self, shape: tuple[int, ...], ambient: bool, sampler: str = "auto") -> Sampled:
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


class PathModel(HasRandomLayers):
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


class HasHeadAttentions(Model):
    """Attention that can be looked at, head by head."""

    @abstractmethod
    def head_attentions(self, state: State, t: Array, key: PRNGKeyArray) -> Float[Array, "h n n"]:
        """Attention of each head; of one more layer, drawn from ``key``, where heads are random."""


class HasAttention(HasHeadAttentions):
    """One attention matrix at each time."""

    @abstractmethod
    def attention_matrix(self, state: State, t: Array) -> Float[Array, "n n"]:
        """The weights a_ij of one head, diagonal included."""

    def head_attentions(self, state: State, t: Array, key: PRNGKeyArray) -> Float[Array, "h n n"]:
        """That of the one head."""
        return self.attention_matrix(state, t)[None]


class HasFastSums(Model):
    """Sums over tokens that can be taken in several ways."""

    @abstractmethod
    def with_fast_sums(self, n: int, d: int, dtype: Any, relative: float) -> tuple[Self, Choice | None]:
        """This model with sums over tokens in the cheapest way of relative error below ``relative``, and the choice."""


class HasEnergy(Model):
    """An energy, and the identity that its dissipation obeys; ``None`` where there is none at these parameters."""

    @abstractmethod
    def energy_deficit(self, state: State, t: Array) -> Float[Array, ""] | None:
        """F = e^{-c}(E - E_max): finite for every β, and smooth at β = 0."""

    @abstractmethod
    def power(self, state: State, t: Array) -> Float[Array, ""] | None:
        """dF/dt according to the energy identity."""

    def moving(self, state: State, t: Array) -> tuple[State, Array | None, Array | None]:
        """(drift, power, energy deficit); models whose sums serve all three take them once, others give no energy."""
        return self.drift(state, t), self.power(state, t), None

    def energy_identity(self) -> str:
        """Return "holds", or the reason why ``power`` is only reported and not asserted."""
        return "holds"


class HasDomain(Model):
    """States that a run may leave the model's domain from."""

    @abstractmethod
    def admissible(self, state: State) -> Array | None:
        """Whether a state is one the model speaks about; ``None`` when every finite state is."""

    @property
    def inadmissible(self) -> str:
        """What it means that a state is no longer ``admissible``, for the message of a run that stops there."""
        return "the state left the model's domain"


class Decays(Model):
    """States that decay to zero with meaningful digits: step control is purely relative."""


class Pauses(Model):
    """States at which a run should pause, to be looked at or handed over."""

    @abstractmethod
    def should_pause(self, state: State) -> Array | None:
        """Whether a run should pause here; ``None`` when there is no need to watch."""


class HandsOver(Model):
    """Another model, with the same observables, that is more accurate from some state on."""

    @abstractmethod
    def handover(self, state: State, t: float, until: float, at_horizon: bool) -> tuple[Model, State, str] | None:
        """The model that continues from here, its state, and the reason; ``None``: not yet."""


class HasHorizon(Model):
    """Arithmetic that turns into noise after some time."""

    @abstractmethod
    def horizon(self, tokens: Any) -> tuple[float, str]:
        """That time, and why."""


class HasFlowMap(Model):
    """An exact solution."""

    @abstractmethod
    def flow_map(self, state: State, t: float, until: float) -> State:
        """The state at ``until`` from that at t."""


def horizon_of(model: Model, tokens: Any) -> tuple[float, str]:
    """The horizon of the model, infinite for most."""
    return model.horizon(tokens) if isinstance(model, HasHorizon) else (math.inf, "")


def identity_of(model: Model) -> str:
    """``energy_identity`` of the model; nothing speaks against that of one without an energy."""
    return model.energy_identity() if isinstance(model, HasEnergy) else "holds"
