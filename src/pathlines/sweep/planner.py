"""Depth planning: layers until tokens are alike, for each normalisation scheme."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import msgspec
import numpy as np

from pathlines.domain import Sphere
from pathlines.foundation.errors import ArgumentError, finite_number, positive_integer
from pathlines.foundation.progress import Progress
from pathlines.integrate import layers
from pathlines.limit.clustering.layers import layers_to_deficit
from pathlines.limit.clustering.schemes import time_to_deficit_scheme
from pathlines.model.clustering.normalised import NormalisedAttention
from pathlines.model.clustering.schemes import NGPT, SCHEMES, MixLN, Scheme
from pathlines.observable.pairs import u_mean

DEEPEST_CONFIRMATION = 20_000


class Plan(msgspec.Struct, frozen=True):
    """Layers until 1 - ρ < δ by the exact discrete map, the flow's depth-time, and a Monte-Carlo confirmation."""

    scheme: str
    layers: int | None
    layer_time: float | None
    flow_time: float | None
    measured_layers: float | None = None
    measured_error: float | None = None


class PlannedArchitecture(msgspec.Struct, frozen=True):
    """What decides collapse in the equiangular theory, with the paper's symbols n, d, β, η, ρ₀, α, τ."""

    n: int
    d: int
    beta: float
    step: float
    overlap: float = 0.0
    alpha: float = 1.0
    switch: float = 2.0

    def check(self) -> None:
        """Raise on values outside their ranges."""
        positive_integer("n", self.n, least=2)
        positive_integer("d", self.d)
        finite_number("beta", self.beta, low=0.0)
        finite_number("step", self.step, low=0.0, open_low=True)
        finite_number("overlap", self.overlap, low=-1.0 / (self.n - 1), high=1.0)
        finite_number("alpha", self.alpha, low=0.0, open_low=True)
        finite_number("switch", self.switch, low=0.0)


def plan_collapse(
    architecture: PlannedArchitecture,
    scheme: str = "all",
    delta: float = 1e-3,
    *,
    max_layers: int = 100_000,
    confirm: int = 0,
    seed: int = 0,
    progress: bool | None = None,
) -> list[Plan]:
    """Plan one scheme or all six (Normalization in Attention Dynamics, arXiv:2510.22026)."""
    architecture.check()
    delta = finite_number("delta", delta, low=0.0, high=1.0, open_low=True)
    for name, count, least in (("max_layers", max_layers, 1), ("confirm", confirm, 0), ("seed", seed, 0)):
        positive_integer(name, count, least)
    names = ["post", "pre", "mix", "peri", "ngpt", "sqrt"] if scheme == "all" else [scheme]
    for name in names:
        SCHEMES[name]
    plans = []
    with Progress("collapse", len(names), show=progress) as bar:
        for done, name in enumerate(names):
            bar.update(done, name)
            plan = _predict(architecture, name, delta, max_layers)
            plans.append(_confirm(architecture, plan, delta, confirm, seed) if confirm else plan)
    return plans


def _predict(a: PlannedArchitecture, name: str, delta: float, max_layers: int) -> Plan:
    shared: dict[str, Any] = {"start": a.overlap, "alpha": a.alpha, "switch": a.switch}
    depth = layers_to_deficit(name, a.n, a.beta, a.step, delta, max_layers=max_layers, **shared)
    time = float(time_to_deficit_scheme(name, delta, a.n, a.beta, **shared))
    finite = lambda x: x if np.isfinite(x) else None  # noqa: E731
    return Plan(name, depth.layers, finite(depth.time), finite(time))


def _confirm(a: PlannedArchitecture, plan: Plan, delta: float, runs: int, seed: int) -> Plan:
    """Random tokens with mean overlap ρ₀: layers until their mean pair deficit is below δ."""
    if plan.layers is None or plan.layers > DEEPEST_CONFIRMATION:
        return plan
    if a.overlap < 0:
        raise ArgumentError("Argument `confirm` needs overlap ≥ 0: random tokens have no negative common overlap.")
    model = NormalisedAttention(a.beta, _scheme(a, plan.scheme))
    depth = int(1.5 * plan.layers) + 50
    found = []
    for number in range(runs):
        tokens = _start(a, jax.random.fold_in(jax.random.key(seed), number))
        curve = layers(model, tokens, depth=depth, step=a.step, record=u_mean)["u_mean"].values
        below = np.nonzero(curve <= delta)[0]
        found.append(float(below[0]) if len(below) else np.nan)
    if np.isnan(found).any():
        return plan
    error = float(np.std(found, ddof=1) / np.sqrt(runs)) if runs > 1 else 0.0
    return Plan(plan.scheme, plan.layers, plan.layer_time, plan.flow_time, float(np.mean(found)), error)


def _scheme(a: PlannedArchitecture, name: str) -> Scheme:
    if name == "ngpt":
        return NGPT(a.alpha)
    return MixLN(a.switch) if name == "mix" else SCHEMES[name]()


def _start(a: PlannedArchitecture, key: Any) -> Any:
    sphere = Sphere(a.d)
    if a.overlap == 0 and a.d >= a.n:
        return sphere.uniform_span(key, a.n)
    free = sphere.uniform(key, a.n)
    common = jnp.zeros(a.d).at[0].set(np.sqrt(a.overlap))
    return sphere.retract(common + np.sqrt(1 - a.overlap) * free)
