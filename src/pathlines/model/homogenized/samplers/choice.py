"""Which sampler draws a layer: the cheapest of those that are exact for what was asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.registry import Registry
from pathlines.model.capability import HasRandomLayers, Sampled

NORMAL, ENTRY, MULTIPLY, CHOLESKY, PIECE = 15.0, 3.0, 0.1, 0.3, 15e3
"""Nanoseconds on one core for a normal variate, for a logit through the softmax, for a multiply-add of a matrix product
and of a Cholesky factorisation, and for one more piece that a layer is put together from (what full matrices cost least
of: they win for a handful of tokens in few dimensions)."""


class Sampler(msgspec.Struct, frozen=True):
    """A way to draw a layer of a ``RandomTransformer``.

    ``build(model, n)`` is the model that a chain runs; ``obstacle(model, n, ambient)`` says why it cannot serve (or
    nothing); ``cost(model, n)`` predicts nanoseconds per layer. One that is not ``exact`` in law must be asked for.
    """

    build: Callable[[Any, int], HasRandomLayers]
    obstacle: Callable[[Any, int, bool], str | None]
    cost: Callable[[Any, int], float]
    note: str
    exact: bool = True


SAMPLERS: Registry[Sampler] = Registry("sampler", "pathlines.model.homogenized.samplers")


def choose_sampler(model: Any, n: int, ambient: bool, sampler: str = "auto") -> Sampled:
    """(model to run, name, reason) for n tokens; ``ambient`` records look at coordinates in R^d."""
    if sampler != "auto":
        if sampler not in list(SAMPLERS):
            raise ArgumentError(
                f"Argument `sampler` must be 'auto' or one of {', '.join(SAMPLERS)}, but is {sampler!r}."
            )
        obstacle = SAMPLERS[sampler].obstacle(model, n, ambient)
        if obstacle is not None:
            raise ArgumentError(f"The {sampler} sampler is not available: {obstacle}.")
        return SAMPLERS[sampler].build(model, n), sampler, f"asked for; {SAMPLERS[sampler].note}"
    able = [(s.cost(model, n), name) for name, s in SAMPLERS.items() if s.exact and not s.obstacle(model, n, ambient)]
    cost, best = min(able)
    others = ", ".join(f"{name} {c / 1e6:.2g}" for c, name in sorted(able)[1:])
    size = f"n = {n}, d = {model.d}, H = {model.heads}: predicted {cost / 1e6:.2g} ms per layer"
    reason = f"{SAMPLERS[best].note}; {size}" + (f" ({others})" if others else "")
    return SAMPLERS[best].build(model, n), best, reason
