"""β = 0 and near it: a conformal flow with conserved cross-ratios, and the first-order response to β.

At β = 0 SA and USA are x_i' = P_{x_i} x̄ (A mathematical perspective on Transformers, arXiv:2312.10794): all tokens
feel one pull, so u_ij u_kl/(u_ik u_jl) with u_ij = 1-<x_i,x_j> is constant for any four of them (derived).
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering import perspective_direct as direct
from pathlines.claim.tolerance import relative
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.integrate.observe import positions
from pathlines.limit.clustering.conformal import deficit_cross_ratios as invariants
from pathlines.model import MODELS
from pathlines.observable.pairs import cross_ratios

# --- CL-23: cross-ratios


class CrossRatios(Setting):
    """A run at β = 0."""

    n: of.Tokens = 8
    d: of.Dimension = 5
    beta: of.Beta = 0.0
    kind: of.Kind = "sa"
    seed: of.Seed = 11
    until: of.Until = 8.0
    records: of.Records = 33
    rtol: of.Rtol = 1e-13


class Response(Setting):
    """Small β at one time."""

    n: of.Tokens = 10
    d: of.Dimension = 3
    kind: of.Kind = "sa"
    time: Annotated[of.NonNegative, means("when the tokens are compared", "t", unit="depth-time")] = 2.0
    betas: of.Betas = (0.1, 0.01, 0.001)
    seed: of.Seed = 12
    rtol: of.Rtol = 1e-12


def _uniform(s: CrossRatios | Response) -> jax.Array:
    return Sphere(s.d).uniform(jax.random.key(s.seed), s.n)


def simulate_invariants(s: CrossRatios) -> Evidence:
    """Cross-ratios of consecutive quadruples along the β = 0 flow."""
    times = np.linspace(0.0, s.until, s.records)
    model = MODELS[s.kind].build(s.beta)
    run = flow(model, _uniform(s), times=times, record=cross_ratios, method="dop853", rtol=s.rtol, form="tokens")
    ratios = run["cross_ratios"].values
    curves = tuple(Curve(f"tokens {k + 1}–{k + 4}", times, ratios[:, k]) for k in range(ratios.shape[1]))
    return Evidence({"cross_ratios": ratios.ravel()}, curves=curves, runs=(run,))


def predict_invariants(s: CrossRatios) -> Evidence:
    """The values at the start, at all times; nothing is conserved when β > 0."""
    x = np.asarray(_uniform(s))
    first = np.arange(s.n - 3)
    ratios = invariants(1 - x @ x.T, np.stack([first, first + 1, first + 2, first + 3], axis=1))
    curves = tuple(Curve(f"constant, {k + 1}–{k + 4}", [0.0, s.until], [r, r]) for k, r in enumerate(ratios))
    return Evidence({"cross_ratios": np.tile(ratios, s.records)}, curves=curves)


claim(
    "clustering/CL-23",
    PERSPECTIVE,
    "conserved cross-ratios at β = 0 (derived)",
    "At β = 0 the cross-ratios uᵢⱼuₖₗ/(uᵢₖuⱼₗ) of any four tokens, uᵢⱼ = 1−⟨xᵢ,xⱼ⟩, are constant in time.",
    where="derived; the flow is that of Theorem 4.1 (β = 0)",
    models=("sa", "usa"),
    quick=CrossRatios(),
    full=CrossRatios(n=32, records=129),
    within={"cross_ratios": relative(4e-11, "solver tolerance 1e-13 against the smallest deficits at the last time")},
    simulate=simulate_invariants,
    predict=predict_invariants,
    axes=Axes("depth-time t", "uᵢⱼuₖₗ/(uᵢₖuⱼₗ)", y_scale="log"),
    note="Set beta > 0 to see the claim refuted: conservation is special to β = 0.",
)


# --- CL-24: continuity in β


def simulate_response(s: Response) -> Evidence:
    """max_i |x_i^β(t) - x_i^0(t)|/β for a few small β."""
    times = [float(s.time)]
    betas = sorted(s.betas, reverse=True)
    runs = [
        flow(
            MODELS[s.kind].build(b),
            _uniform(s),
            times=times,
            record=positions,
            method="dop853",
            rtol=s.rtol,
            form="tokens",
        )
        for b in (0.0, *betas)
    ]
    still, *moved = (run["tokens"].values[-1] for run in runs)
    slopes = [_largest(x - still) / b for x, b in zip(moved, betas, strict=True)]
    last, before = betas[-1], betas[-2]
    extrapolated = (before * slopes[-1] - last * slopes[-2]) / (before - last)
    values = {"slope": slopes[-1], "extrapolated": extrapolated}
    return Evidence(values, curves=(Curve("max|xᵝ−x⁰|/β", betas, slopes),), runs=tuple(runs))


def _largest(difference: np.ndarray) -> float:
    return float(np.linalg.norm(difference, axis=-1).max())


def predict_response(s: Response) -> Evidence:
    """∂x/∂β at β = 0 as the imaginary part of SciPy's solution at β = iε: exact to rounding, no difference quotient."""
    tiny = 1e-30
    field = partial(direct.velocity, beta=1j * tiny, kind=s.kind)
    end = direct.trajectory(field, np.asarray(_uniform(s)).astype(complex), [0.0, s.time], s.rtol)[-1]
    slope = _largest(end.imag / tiny)
    curve = Curve("max|∂x/∂β| at β=0", s.betas, np.full(len(s.betas), slope))
    return Evidence({"slope": slope, "extrapolated": slope}, curves=(curve,))


claim(
    "clustering/CL-24",
    PERSPECTIVE,
    "continuity at β = 0",
    "At a fixed time, solutions for small β differ from the β = 0 solution by O(β): max|xᵝ−x⁰|/β tends to max|∂x/∂β|.",
    where="Theorem 4.3 (β ≪ 1), continuity in β that its proof rests on",
    models=("sa", "usa"),
    quick=Response(),
    within={
        "slope": relative(0.01, "the next term is of relative size β ≤ 0.001 times a constant"),
        "extrapolated": relative(1e-3, "the two smallest β, extrapolated: the next term is their product, 1e-5"),
    },
    simulate=simulate_response,
    predict=predict_response,
    axes=Axes("β", "max|xᵝ−x⁰|/β", x_scale="log"),
)
