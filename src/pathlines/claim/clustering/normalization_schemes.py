"""Six normalisation schemes as one speed regulation (Normalization in Attention Dynamics, arXiv:2510.22026).

θ_j' = P_{θ_j} A_j/s_j with s = 1 (Post), r (Pre), 1 then r (Mix), r|A| (Peri), |A|/α (nGPT), √(t+1) (sqrt-scaling).
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering import perspective_direct as direct
from pathlines.claim.clustering.normalization_direct import scheme_trajectory
from pathlines.claim.tolerance import absolute
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers import NORMALIZATION
from pathlines.foundation.setting import Setting
from pathlines.integrate import Run, flow
from pathlines.limit.clustering.schemes import reduced_trajectory
from pathlines.model.clustering.normalised import NormalisedAttention
from pathlines.model.clustering.schemes import NGPT, SCHEMES, MixLN, OneOf
from pathlines.observable.energy import energy_fraction
from pathlines.observable.pairs import deficits
from pathlines.observable.sphere import magnitude

NAMES = ("post", "pre", "mix", "peri", "ngpt", "sqrt")
MODEL_NAMES = ("post-ln", "pre-ln", "mix-ln", "peri-ln", "ngpt", "sqrt")


class Scheme(Setting):
    """What every normalisation scheme needs."""

    n: of.Tokens = 10
    beta: of.Beta = 2.0
    magnitude: of.Magnitude = 1.0
    alpha: of.NgptStep = 0.7
    switch: of.MixSwitch = 1.0
    records: of.Records = 25
    rtol: of.Rtol = 1e-12


def scheme_model(name: str, s: Scheme) -> NormalisedAttention:
    """The engine's model of scheme ``name`` at β, α, switch and magnitude of the setting."""
    require(name in NAMES, "schemes", f"hold names among {', '.join(NAMES)}", name)
    special = {"mix": MixLN(s.switch), "ngpt": NGPT(s.alpha)}
    members = tuple(special[k] if k in special else SCHEMES[k]() for k in NAMES)
    return NormalisedAttention(s.beta, OneOf(members, jnp.asarray(NAMES.index(name))), magnitudes=s.magnitude)


class RandomScheme(Scheme):
    """Uniform tokens under a scheme."""

    d: of.Dimension = 5
    seed: of.Seed = 0


def uniform_start(s: RandomScheme) -> Array:
    """n i.i.d. uniform directions."""
    return Sphere(s.d).uniform(jax.random.key(s.seed), s.n)


# --- CL-03: the energy identity with the speeds s_i


class SchemeEnergy(RandomScheme):
    """All schemes from uniform tokens."""

    n: of.Tokens = 12
    records: of.Records = 26
    schemes: of.Schemes = ("post", "pre", "mix", "peri", "ngpt", "sqrt")
    until: of.Until = 5.0


def _identity_times(s: SchemeEnergy) -> np.ndarray:
    return np.linspace(0.0, s.until, s.records)


def simulate_identity(s: SchemeEnergy) -> Evidence:
    """One run a scheme; the work ∫D is carried by the solver as one more component."""
    options: dict[str, Any] = {
        "times": _identity_times(s),
        "record": energy_fraction,
        "method": "dop853",
        "rtol": s.rtol,
    }
    runs = tuple(flow(scheme_model(name, s), uniform_start(s), form="tokens", **options) for name in s.schemes)
    heights = [run["energy_fraction"].values for run in runs]
    values = {
        "residual": [float(np.abs(run["dissipation_residual"].values).max()) for run in runs],
        "energy": np.concatenate(heights),
    }
    curves = tuple(Curve(name, run.time, h) for name, run, h in zip(s.schemes, runs, heights, strict=True))
    return Evidence(values, curves=curves, runs=runs)


def predict_identity(s: SchemeEnergy) -> Evidence:
    """No residual; the energy itself from tokens solved in Cartesian coordinates."""
    times, start = _identity_times(s), np.asarray(uniform_start(s))
    heights = []
    for name in s.schemes:
        x, _ = scheme_trajectory(name, start, times, s.beta, s.magnitude, s.alpha, s.switch, s.rtol)
        heights.append(np.array([direct.energy_fraction(y, s.beta) for y in x]))
    curves = tuple(Curve(f"{name}, Cartesian", times, h) for name, h in zip(s.schemes, heights, strict=True))
    return Evidence({"residual": np.zeros(len(s.schemes)), "energy": np.concatenate(heights)}, curves=curves)


claim(
    "clustering/CL-03",
    NORMALIZATION,
    "energy identity under speed regulation (derived)",
    "Under every scheme the energy of the directions obeys dE_β/dt = n⁻¹ΣᵢZ̄ᵢsᵢ|θ̇ᵢ|², "
    "with s = 1, r, 1 then r, r|A|, |A|/α, √(t+1) for Post-, Pre-, Mix-, Peri-LN, nGPT and sqrt-scaling.",
    where="derived; for the schemes of the paper's table of speed regulation",
    models=MODEL_NAMES,
    quick=SchemeEnergy(),
    full=SchemeEnergy(records=101),
    within={
        "residual": absolute(1e-11, "ten times the solver tolerance 1e-12, in units of E_max"),
        "energy": absolute(1e-11, "two solvers at tolerance 1e-12"),
    },
    simulate=simulate_identity,
    predict=predict_identity,
    axes=Axes("depth-time t", "E_β/E_max"),
)


# --- CL-07: the equiangular reduction


class EqualScheme(Scheme):
    """Equiangular tokens under a scheme."""

    magnitude: of.Magnitude = 1.3
    overlap: of.Overlap = 0.05


def simplex_run(name: str, s: EqualScheme, times: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray, Run]:
    """(mean deficit 1-ρ, its spread over pairs, mean magnitude, run) of a scheme from an equiangular start."""
    tokens = Sphere(s.n).simplex(s.n, s.overlap)
    run = flow(scheme_model(name, s), tokens, times=times, record=(deficits, magnitude), method="dop853", rtol=s.rtol)
    pairs = run["deficits"].values[:, *np.triu_indices(s.n, 1)]
    return pairs.mean(axis=1), np.ptp(pairs, axis=1), run["magnitude"].values.mean(axis=1), run


def _picture_times(s: Clock | Reduction) -> np.ndarray:
    return np.union1d(np.linspace(0.0, max(s.times), s.records), s.times)


class Reduction(EqualScheme):
    """All schemes from one common overlap."""

    schemes: of.Schemes = ("post", "pre", "mix", "peri", "ngpt", "sqrt")
    times: of.Times = (0.5, 1.0, 3.0, 6.0)


def simulate_reduction(s: Reduction) -> Evidence:
    """All n tokens in R^n, every scheme."""
    grid = _picture_times(s)
    at = np.searchsorted(grid, s.times)
    found = {name: simplex_run(name, s, grid) for name in s.schemes}
    values = {
        "deficit": np.concatenate([y[at] for y, _, _, _ in found.values()]),
        "magnitude": np.concatenate([r[at] for _, _, r, _ in found.values()]),
        "spread": [float(spread.max()) for _, spread, _, _ in found.values()],
    }
    curves = tuple(Curve(name, grid, y, panel="1 − ρ") for name, (y, _, _, _) in found.items())
    curves += tuple(Curve(name, grid, r, panel="r") for name, (_, _, r, _) in found.items())
    return Evidence(values, curves=curves, runs=tuple(run for *_, run in found.values()))


def reduced(name: str, s: EqualScheme, times: Any) -> tuple[np.ndarray, np.ndarray]:
    """(1-ρ, r) of the two-variable reduction."""
    return reduced_trajectory(name, times, s.n, s.beta, s.overlap, s.magnitude, s.alpha, s.switch)


def predict_reduction(s: Reduction) -> Evidence:
    """Closed forms and quadratures of the reduced equations."""
    grid = np.linspace(0.0, max(s.times), 121)
    at_times = [reduced(name, s, np.asarray(s.times)) for name in s.schemes]
    lines = [(name, *reduced(name, s, grid)) for name in s.schemes]
    values = {
        "deficit": np.concatenate([y for y, _ in at_times]),
        "magnitude": np.concatenate([r for _, r in at_times]),
        "spread": np.zeros(len(s.schemes)),
    }
    curves = tuple(Curve(f"{name}, reduced", grid, y, panel="1 − ρ") for name, y, _ in lines)
    curves += tuple(Curve(f"{name}, reduced", grid, r, panel="r") for name, _, r in lines)
    return Evidence(values, curves=curves)


claim(
    "clustering/CL-07",
    NORMALIZATION,
    "equiangular reduction of the six schemes (derived)",
    "From equal overlaps ρ and magnitudes r every scheme stays in that form and obeys ρ̇ = F/s, "
    "F = 2b(1−ρ)(1+(n−1)ρ), b = 1/(e^{β(1−ρ)}+n−1), (s, ṙ) = (1,0), (r,h), (rm,h/m), (m/α,0), (√(t+1),0) "
    "for Post, Pre, Peri, nGPT, sqrt; Mix is Post up to τ and Pre from there.",
    where="derived; for the schemes of the paper's table of speed regulation",
    models=MODEL_NAMES,
    quick=Reduction(),
    full=Reduction(records=121),
    within={
        "deficit": absolute(1e-11, "ten times the solver tolerance 1e-12"),
        "magnitude": absolute(1e-11, "ten times the solver tolerance 1e-12"),
        "spread": absolute(1e-13, "rounding: the symmetry is exact"),
    },
    simulate=simulate_reduction,
    predict=predict_reduction,
    axes=Axes("depth-time t", "1 − ρ, r"),
)


# --- CL-10: sqrt-scaling is Post-LN on a slower clock


class Clock(RandomScheme):
    """Sqrt-scaling beside Post-LN."""

    magnitude: of.Magnitude = 1.3
    d: of.Dimension = 10
    times: of.Times = (1.0, 5.0, 20.0)


def simulate_clock(s: Clock) -> Evidence:
    """sqrt-scaling from i.i.d. uniform tokens."""
    grid = _picture_times(s)
    model = scheme_model("sqrt", s)
    run = flow(model, uniform_start(s), times=grid, record=(deficits, magnitude), method="dop853", rtol=s.rtol)
    u = run["deficits"].values
    return Evidence(
        {"deficits": u[np.searchsorted(grid, s.times)]},
        curves=(Curve("sqrt-scaling: mean uᵢⱼ", grid, _mean_pair(u)),),
        runs=(run,),
    )


def _mean_pair(u: np.ndarray) -> np.ndarray:
    n = u.shape[-1]
    return u.sum(axis=(-1, -2)) / (n * (n - 1))


def _pair_deficits(x: np.ndarray) -> np.ndarray:
    difference = x[..., :, None, :] - x[..., None, :, :]
    return 0.5 * np.sum(difference**2, axis=-1)


def predict_clock(s: Clock) -> Evidence:
    """Post-LN (SA) of the same tokens at 2(√(t+1)-1), by SciPy."""
    grid, start = _picture_times(s), np.asarray(uniform_start(s))
    x = direct.trajectory(lambda y: direct.velocity(y, s.beta), start, 2 * (np.sqrt(grid + 1) - 1), s.rtol)
    u = _pair_deficits(x)
    return Evidence(
        {"deficits": u[np.searchsorted(grid, s.times)]},
        curves=(Curve("Post-LN at 2(√(t+1)−1)", grid, _mean_pair(u)),),
        source="Post-LN integrated by SciPy",
    )


claim(
    "clustering/CL-10",
    NORMALIZATION,
    "sqrt-scaling as a change of clock (derived)",
    "sqrt-scaling visits the states of Post-LN at time 2(√(t+1)−1), whatever the start.",
    where="derived; no statement in the paper",
    models=("sqrt", "post-ln"),
    quick=Clock(),
    full=Clock(n=32, beta=4.0, records=101, d=5),
    within={"deficits": absolute(1e-10, "two solvers at tolerance 1e-12, errors magnified by the unstable early flow")},
    simulate=simulate_clock,
    predict=predict_clock,
    axes=Axes("depth-time t", "mean uᵢⱼ", y_scale="log"),
)
