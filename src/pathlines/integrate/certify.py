"""What a run says about its own trustworthiness."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from pathlines.foundation.schedule import varies
from pathlines.integrate.journey import Journey
from pathlines.integrate.run import Certificate
from pathlines.model.base import Model
from pathlines.model.capability import identity_of
from pathlines.model.clustering.normalised import NormalisedAttention

QUADRUPLES = 64
"""Of tokens, whose cross-ratios are compared: those of the first ``QUADRUPLES`` + 3 tokens, in lexical order."""


def certificates(model: Model, journey: Journey, data: xr.Dataset, rtol: float | None) -> tuple[Certificate, ...]:
    """All certificates that apply; thresholds exist only for adaptive runs, where a tolerance was promised."""
    carry = journey.carry
    steps = int(carry.accepted)
    slack = None if rtol is None else max(1e3 * rtol, 1e4 * float(jnp.finfo(carry.t.dtype).eps))
    found = [
        Certificate("accepted_steps", steps, None, None, f"{int(carry.rejected)} rejected"),
        Certificate("off_domain", float(carry.off_domain), None, None, "distance from the domain before retraction"),
    ]
    if rtol is not None:
        meaning = "sum of the local error estimates of all steps"
        found.append(Certificate("local_error", float(carry.local_error), None, None, meaning))
    if "dissipation_residual" in data:
        found.append(_energy(model, data, slack))
    found += _cross_ratios(model, journey, slack)
    return tuple(found)


def _energy(model: Model, data: xr.Dataset, slack: float | None) -> Certificate:
    worst = float(np.max(np.abs(data["dissipation_residual"].values), initial=0.0))
    identity = identity_of(model)
    if identity != "holds" or slack is None:
        why = identity if identity != "holds" else "fixed step"
        return Certificate("energy_identity", worst, None, None, f"|E(t) - E(0) - ∫D|/E_max, not asserted: {why}")
    return Certificate("energy_identity", worst, slack, worst <= slack, "|E(t) - E(0) - ∫D|/E_max")


def _cross_ratios(model: Model, journey: Journey, slack: float | None) -> list[Certificate]:
    """At β = 0 the flow is conformal: u_ij u_kl/(u_ik u_jl) is constant (only while the deficits keep digits).

    Under a normalisation scheme tokens may move at speeds of their own, and then it is not.
    """
    beta = getattr(model, "beta", None)
    scheme = isinstance(model, NormalisedAttention)
    if beta is None or varies(beta) or float(beta) != 0 or identity_of(model) != "holds" or scheme:
        return []
    posed = journey.posed.model
    start = _first_deficits(posed, posed.initial(journey.posed.tokens), jnp.zeros(()))
    end = _first_deficits(journey.model, journey.carry.state, journey.carry.t)
    apart = end[~np.eye(len(end), dtype=bool)]
    worst = _worst_drift(start, end) if apart.size and apart.min() > 1e-26 else None
    if worst is None:
        return []
    ok = None if slack is None else worst <= 100 * slack
    return [Certificate("cross_ratios", worst, None if slack is None else 100 * slack, ok, "relative drift, β = 0")]


def _first_deficits(model: Model, state: Any, t: Any) -> np.ndarray:
    """Pair deficits of the tokens that ``_worst_drift`` looks at."""
    if jax.tree.leaves(state)[0].shape[0] <= QUADRUPLES + 3:
        return np.asarray(model.deficits(state, t))
    rows = jax.vmap(lambda i: model.deficits_of(state, t, i))(jnp.arange(QUADRUPLES + 3))
    return np.asarray(rows)[:, : QUADRUPLES + 3]


def _worst_drift(start: np.ndarray, end: np.ndarray) -> float | None:
    changes: list[Any] = []
    for i, j, k, m in itertools.islice(itertools.combinations(range(len(start)), 4), QUADRUPLES):
        ratios = [u[i, j] * u[k, m] / (u[i, k] * u[j, m]) for u in (start, end) if u[i, k] * u[j, m] > 0]
        if len(ratios) == 2 and ratios[0] > 0:
            changes.append(abs(ratios[1] / ratios[0] - 1))
    return float(max(changes)) if changes else None
