"""The drift of a deep chain to second order in the step: which correction is right for which update.

A chain with one fixed head (V, A) is deterministic, so its distance from dX/dt = D(X) at the grid times t = ηℓ shows
the order of D in η without statistics (Homogenized Transformers, arXiv:2604.01978, regimes ODE I and ODE II).
"""

from __future__ import annotations

from typing import Annotated

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.homogenized import direct
from pathlines.claim.slopes import limiting_order, several, unreadable
from pathlines.claim.tolerance import absolute, relative
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import chain, flow
from pathlines.model.homogenized.drift import HomogenizedODE
from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.weights.mixture import fixed_heads

_NAMES = {"none": "b", "paper": "b − (η/2)∇_b b", "full": "b − (η/2)∇_b b − η⟨x,B⟩b"}


Correctors = Annotated[tuple[str, ...], means("drifts: none (b), paper (printed), full (boxed)")]


class CorrectedDrift(Setting):
    """A chain of one fixed head at several steps."""

    n: of.Tokens = 4
    d: of.Dimension = 3
    beta: of.Beta = 1.0
    seed: of.Seed = 1
    until: of.Until = 1.0
    steps: of.Steps = (0.1, 0.05, 0.025)
    correctors: Correctors = ("none", "paper", "full")
    update: of.Update = "ambient"
    rtol: of.Rtol = 1e-11


def _head(s: CorrectedDrift) -> tuple[np.ndarray, np.ndarray]:
    """V and A of the claim: normal entries of variance 1/d."""
    return tuple(np.random.default_rng(s.seed).standard_normal((2, s.d, s.d)) / np.sqrt(s.d))


def _depths(s: CorrectedDrift) -> list[int]:
    return [round(s.until / eta) for eta in s.steps]


def simulate(s: CorrectedDrift) -> Evidence:
    """Chain against flow at all grid times, both by the engine."""
    several("steps", s.steps)
    law, start = fixed_heads(*_head(s)), Sphere(s.d).sines(s.n)
    deepest, key = max(_depths(s)), jax.random.key(0)
    errors, runs = [], []
    for corrector in s.correctors:
        for eta, depth in zip(s.steps, _depths(s), strict=True):
            net = RandomTransformer(law=law, beta=s.beta, step=eta, update=s.update)
            ode = HomogenizedODE(law, s.beta, step=eta, corrector=corrector, update=s.update)
            layers = chain(net, start, depth=deepest, key=key)["tokens"].values[: depth + 1]
            run = flow(ode, start, times=eta * np.arange(depth + 1), method="dop853", rtol=s.rtol, form="tokens")
            errors.append(np.linalg.norm(layers - run["tokens"].values, axis=-1).max())
            runs.append(run)
    table = np.reshape(errors, (len(s.correctors), -1))
    slopes, spread = zip(*(limiting_order(s.steps, row) for row in table), strict=True)
    curves = tuple(Curve(_NAMES[c], s.steps, row) for c, row in zip(s.correctors, table, strict=True))
    return Evidence({"order": slopes, "errors": errors}, {"order": spread}, curves=curves, runs=tuple(runs))


def _errors(s: CorrectedDrift, corrector: str) -> list[float]:
    """The same distances by NumPy and SciPy."""
    head, start = (*_head(s), s.beta), np.asarray(Sphere(s.d).sines(s.n))
    found = []
    for eta, depth in zip(s.steps, _depths(s), strict=True):
        layers = direct.fixed_layers(start, head, eta, depth, s.update)
        states = direct.fixed_flow(start, head, eta, corrector, s.update, eta * np.arange(depth + 1), s.rtol)
        found.append(float(np.linalg.norm(layers - states, axis=-1).max()))
    return found


def _predicted(s: CorrectedDrift, orders: list[int]) -> Evidence:
    errors = [_errors(s, c) for c in s.correctors]
    guides = tuple(
        Curve(f"order {p}", s.steps, row[-1] * (np.asarray(s.steps) / s.steps[-1]) ** p)
        for p, row in zip(orders, errors, strict=True)
    )
    return Evidence(
        {"order": orders, "errors": np.ravel(errors)},
        curves=guides,
        source="order; NumPy and SciPy",
        undecided=unreadable("order", s.steps, s.until),
    )


def predict_right(s: CorrectedDrift) -> Evidence:
    """Second order where the correction fits the update, first order elsewhere."""
    fits = "paper" if s.update == "tangent" else "full"
    return _predicted(s, [2 if c == fits or (c == "full" and s.update == "tangent") else 1 for c in s.correctors])


def predict_printed(s: CorrectedDrift) -> Evidence:
    """Second order, as printed."""
    return _predicted(s, [2] * len(s.correctors))


_AXES = Axes("step η", "largest distance of a token from the chain at t = ηℓ", x_scale="log", y_scale="log")
_ORDER = absolute(0.05, "second next order of the error at these steps; the next is fitted")
_SECOND_OPINION = relative(1e-5, "two programs with solvers at rtol; the smallest error is 1e-6 and more")

claim(
    "homogenized/C01",
    HOMOGENIZED,
    "modified drift, second order at grid times (derived)",
    "For the chain x ← N(x + ηB) with ambient increments the drift b − (η/2)∇_b b − η⟨x,B⟩b is second order in η at "
    "t = ηℓ; without the last term, which comes from dividing the tangent step by 1 + η⟨x,B⟩, it is first order, "
    "as b alone is.",
    where="derived; correction of the modified drift of ODE II",
    models=("random", "homogenized-ode"),
    quick=CorrectedDrift(),
    full=CorrectedDrift(steps=(0.1, 0.05, 0.025, 0.0125, 0.00625)),
    within={"order": _ORDER, "errors": _SECOND_OPINION},
    simulate=simulate,
    predict=predict_right,
    axes=_AXES,
)

claim(
    "homogenized/ER-03",
    HOMOGENIZED,
    "modified drift of ODE II as printed",
    "For the chain x ← N(x + ηB) with ambient increments, as defined in the paper, the drift b − (η/2)∇_b b is second "
    "order in η at grid times.",
    where="modified drift of ODE II, as printed",
    models=("random", "homogenized-ode"),
    quick=CorrectedDrift(correctors=("paper",)),
    full=CorrectedDrift(steps=(0.1, 0.05, 0.025, 0.0125, 0.00625), correctors=("paper",)),
    within={"order": _ORDER},
    simulate=simulate,
    predict=predict_printed,
    expected="refuted",
    corrected_by="homogenized/C01",
    axes=_AXES,
    note="It is first order. The printed drift belongs to the tangent update (ER-03b).",
)

claim(
    "homogenized/ER-03b",
    HOMOGENIZED,
    "modified drift of ODE II, tangent update",
    "If increments are projected on the tangent space before normalising, x ← N(x + ηP_xB), the printed drift "
    "b − (η/2)∇_b b is second order in η at grid times, and b alone first order.",
    where="modified drift of ODE II, for tangent increments",
    models=("random", "homogenized-ode"),
    quick=CorrectedDrift(correctors=("none", "paper"), update="tangent"),
    full=CorrectedDrift(steps=(0.1, 0.05, 0.025, 0.0125, 0.00625), correctors=("none", "paper"), update="tangent"),
    within={"order": _ORDER, "errors": _SECOND_OPINION},
    simulate=simulate,
    predict=predict_right,
    axes=_AXES,
)
