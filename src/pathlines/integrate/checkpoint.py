"""Checkpoints of a journey: plain arrays from which an interrupted run continues bit for bit."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from pathlines.integrate.journey import Journey

Arrays = dict[str, np.ndarray]


def capture(journey: Journey) -> Arrays:
    """The carry, the rows recorded so far, and the states at which the form changed."""
    arrays: Arrays = {"fresh": np.asarray(journey.fresh)}
    arrays |= {f"carry_{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(journey.carry))}
    for i, column in enumerate(zip(*journey.rows, strict=True)):
        arrays[f"rows_{i}"] = np.stack(column)
    for k, (t, at_horizon, state) in enumerate(journey.trail):
        arrays[f"trail_{k}"] = np.asarray([t, at_horizon])
        arrays |= {f"trail_{k}_state_{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(state))}
    return arrays


def restore(journey: Journey, arrays: Arrays) -> None:
    """Put a fresh journey where the captured one was."""
    k = 0
    while f"trail_{k}" in arrays:
        t, at_horizon = arrays[f"trail_{k}"]
        state = _filled(journey.carry.state, arrays, f"trail_{k}_state")
        journey.carry = journey.carry._replace(t=jnp.asarray(t, journey.carry.t.dtype), state=state)
        journey.consider_handover(bool(at_horizon))
        k += 1
    journey.carry = _filled(journey.carry, arrays, "carry")
    journey.fresh = bool(arrays["fresh"])
    columns = [arrays[f"rows_{i}"] for i in range(sum(name.startswith("rows_") for name in arrays))]
    journey.rows = list(zip(*columns, strict=True))


def _filled(like: Any, arrays: Arrays, prefix: str) -> Any:
    leaves, shape = jax.tree.flatten(like)
    return jax.tree.unflatten(
        shape, [jnp.asarray(arrays[f"{prefix}_{i}"], leaf.dtype) for i, leaf in enumerate(leaves)]
    )
