"""What can be recorded inside a run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array

from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.registry import Registry
from pathlines.model.base import Model, Snapshot


@dataclass(frozen=True)
class Observable:
    """A named pure function of a ``Snapshot``, evaluated inside the loop so that trajectories need not be stored.

    ``dims`` names the axes of its value; ``needs_tokens`` says that pair deficits are not enough; ``ambient`` that it
    is not invariant under rotations (so the span form d > n cannot serve it). ``check(model, dtype)`` raises where the
    numbers of the model rule it out, which nothing inside the loop can.
    """

    name: str
    label: str
    symbol: str
    function: Callable[..., Array]
    dims: tuple[str, ...] = ()
    needs_tokens: bool = False
    ambient: bool = False
    parameters: tuple[tuple[str, Any], ...] = ()
    check: Callable[[Model, Any], None] | None = None

    def __call__(self, snapshot: Snapshot) -> Array:
        """Evaluate."""
        return jnp.asarray(self.function(snapshot, **dict(self.parameters)))

    def at(self, **parameters: Any) -> Observable:
        """The same observable with other parameters: ``p_clustered.at(delta=1e-2)``."""
        known = dict(self.parameters)
        for name in parameters:
            if name not in known:
                raise ArgumentError(f"Observable `{self.name}` has no parameter `{name}`; it has {sorted(known)}.")
        changed = tuple(sorted({**known, **parameters}.items()))
        base = self.name.split("[")[0]
        inside = ", ".join(f"{k}={v}" for k, v in changed)
        return replace(self, parameters=changed, name=f"{base}[{inside}]")

    @property
    def attributes(self) -> dict[str, str]:
        """Label and symbol for plots."""
        return {"long_name": self.label, "symbol": self.symbol}


OBSERVABLES: Registry[Observable] = Registry("observable", "pathlines.observable")


def observable(
    name: str,
    label: str,
    symbol: str,
    *,
    dims: tuple[str, ...] = (),
    needs_tokens: bool = False,
    ambient: bool = False,
    check: Callable[[Model, Any], None] | None = None,
    **parameters: Any,
) -> Callable[[Callable[..., Array]], Observable]:
    """Turn a function of a snapshot into a registered observable; keywords are its default parameters."""

    def wrap(function: Callable[..., Array]) -> Observable:
        given = tuple(sorted(parameters.items()))
        entry = Observable(name, label, symbol, function, dims, needs_tokens, ambient, given, check)
        return OBSERVABLES.register(name, entry)

    return wrap


def checked_observables(entries: Any, models: Iterable[Model] = (), dtype: Any = None) -> tuple[Observable, ...]:
    """Accept observables, their names, or one of either; each is checked against the models that it will look at."""
    if isinstance(entries, (Observable, str)) or not isinstance(entries, Iterable):
        entries = (entries,)
    chosen = tuple(OBSERVABLES[e] if isinstance(e, str) else e for e in entries)
    for entry in chosen:
        if not isinstance(entry, Observable):
            raise ArgumentError(f"Argument `record` must hold observables or their names, but holds {entry!r}.")
    checks = [entry.check for entry in chosen if entry.check is not None]
    for model in models if checks else ():
        for check in checks:
            check(model, dtype)
    return chosen


positions = observable("tokens", "tokens", "x", dims=("token", "component"), needs_tokens=True, ambient=True)(
    lambda snapshot: snapshot.tokens
)
