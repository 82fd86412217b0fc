"""Convergence orders of the integrators on the sphere, measured by halving the step."""

from __future__ import annotations

from typing import Annotated, Any

import jax
import numpy as np
from jaxtyping import Array

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering import perspective_direct as direct
from pathlines.claim.tolerance import absolute
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import METHODS, flow, layers
from pathlines.integrate.observe import positions
from pathlines.model import SelfAttention


class Orders(Setting):
    """Methods at several numbers of steps."""

    methods: Annotated[tuple[str, ...], means("methods of the engine, or layer")] = ("layer", "euler", "heun", "rk4")
    n: of.Tokens = 12
    d: of.Dimension = 4
    beta: of.Beta = 3.0
    until: of.Until = 4.0
    steps: Annotated[tuple[of.Count, ...], means("numbers of steps")] = (80, 160, 320)
    seed: of.Seed = 0
    reference_rtol: Annotated[of.Positive, means("relative tolerance of the reference")] = 1e-13
    guide: Annotated[of.Positive, means("height of the guide lines")] = 0.01


def _start(s: Orders) -> Array:
    return Sphere(s.d).uniform(jax.random.key(s.seed), s.n)


def _final_tokens(method: str, s: Orders, steps: int) -> np.ndarray:
    """Tokens at the end: ``steps`` layers of step h = until/steps, or as many steps of a method."""
    model, h = SelfAttention(s.beta), s.until / steps
    if method == "layer":
        run = layers(model, _start(s), depth=steps, step=h, record=positions, every=steps)
    else:
        run = flow(model, _start(s), times=[s.until], method=method, step=h, form="tokens")
    return run["tokens"].values[-1]


def simulate(s: Orders) -> Evidence:
    """Root-mean-square error against an adaptive run of order eight; order from the last halving."""
    options: dict[str, Any] = {"method": "dop853", "rtol": s.reference_rtol, "form": "tokens"}
    reference = flow(SelfAttention(s.beta), _start(s), times=[s.until], **options)
    exact = reference["tokens"].values[-1]
    orders, curves = [], []
    for method in s.methods:
        errors = np.array([np.sqrt(np.mean((_final_tokens(method, s, steps) - exact) ** 2)) for steps in s.steps])
        orders.append(float(np.log(errors[-2] / errors[-1]) / np.log(s.steps[-1] / s.steps[-2])))
        curves.append(Curve(method, s.until / np.asarray(s.steps), errors))
    return Evidence({"order": orders, "reference": exact}, curves=tuple(curves), runs=(reference,))


def predict(s: Orders) -> Evidence:
    """The order each method promises, one for the layer map; the reference point from SciPy."""
    orders = [1 if method == "layer" else METHODS[method].order for method in s.methods]
    exact = direct.trajectory(lambda x: direct.velocity(x, s.beta), np.asarray(_start(s)), [s.until], s.reference_rtol)
    h = s.until / np.asarray(s.steps)
    curves = tuple(Curve(f"h^{p}", h, (h / h[0]) ** p * s.guide) for p in sorted(set(orders)))
    return Evidence({"order": orders, "reference": exact[-1]}, curves=curves)


claim(
    "clustering/CL-45",
    PERSPECTIVE,
    "orders of the integrators on the sphere (derived)",
    "With every stage retracted, explicit Runge–Kutta keeps its order on the sphere: Euler, geodesic Euler 1, "
    "Heun 2, RK4 (stages or end retracted) and RKMK4 4; the layer map N(x+hA), read as an integrator of SA, has 1.",
    where="derived; numerical methods, no statement in the paper",
    models=("sa",),
    quick=Orders(),
    full=Orders(
        methods=("layer", "euler", "geodesic-euler", "heun", "rk4", "rk4-end", "rkmk4"), steps=(40, 80, 160, 320, 640)
    ),
    within={
        "order": absolute(0.1, "the next order of the error at the last halving"),
        "reference": absolute(1e-11, "two solvers at tolerance 1e-13"),
    },
    simulate=simulate,
    predict=predict,
    axes=Axes("step h", "root-mean-square error at the end", x_scale="log", y_scale="log"),
)
