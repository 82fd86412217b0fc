"""Forms that a model offers: other states that obey exactly its equation, and what they cost."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
from jaxtyping import Array

from pathlines.foundation.module import Module


class Form(msgspec.Struct, frozen=True):
    """The form in force from a time on, and why."""

    name: str
    since: float
    reason: str


class Posed(msgspec.Struct, frozen=True):
    """A problem in its form: the model and start to integrate, and the map back to ambient tokens."""

    model: Any
    tokens: Any
    form: Form
    lift: Callable[[Array], Array] | None = None


class Wanted(msgspec.Struct, frozen=True):
    """What is asked of a form: a start, and the recorded observables that need coordinates, or ambient ones.

    ``asked`` is the name of the form that the user wants; without it the cheapest is taken.
    """

    tokens: Any
    coordinates: tuple[str, ...]
    ambient: tuple[str, ...]
    asked: str | None

    @property
    def shape(self) -> tuple[int, int]:
        """(n, d)."""
        n, d = self.tokens.shape[-2:]
        return n, d


class Offer(msgspec.Struct, frozen=True):
    """A form with the predicted cost of a drift, in multiply-adds; ``obstacle`` says why it cannot serve (or nothing).

    One that is not taken ``unasked`` keeps other digits, at a cost that does not pay from the start.
    """

    name: str
    cost: float
    pose: Callable[[], Posed]
    obstacle: str | None = None
    unasked: bool = True


class OffersForms(Module):
    """A model that can be posed in other forms than its own state."""

    @abstractmethod
    def forms(self, wanted: Wanted) -> Iterator[Offer]:
        """The forms, those first that win ties."""
