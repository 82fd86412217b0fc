"""Is USA, the surrogate of A mathematical perspective on Transformers (arXiv:2312.10794), a time change of SA?

One orbit is a time change of another exactly when the two velocities are parallel all along it: the angle between the
velocities of SA and USA at one configuration X, both seen as vectors of R^{nd}, is zero.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering import perspective_direct as direct
from pathlines.claim.tolerance import absolute, exactly, relative
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import Run, flow
from pathlines.integrate.observe import Observable
from pathlines.limit.clustering.equiangular import phase_curve
from pathlines.model import MODELS, Snapshot
from pathlines.observable.pairs import u_max

_USA = MODELS["usa"].build(0.0).attention  # type: ignore[attr-defined]


def _parting(snapshot: Snapshot) -> jax.Array:
    """Angle between the velocities of SA and USA at the present tokens."""
    x, beta = snapshot.tokens, snapshot.model.beta  # type: ignore[attr-defined]
    masses = snapshot.model.normalised_masses(x.shape[0], x.dtype)
    pull = _USA.normalise(beta * x @ x.T, masses)[0] @ x
    surrogate = Sphere(x.shape[-1]).tangent(x, pull)
    velocity = snapshot.model.drift(snapshot.state, snapshot.time)
    norms = jnp.sqrt(jnp.sum(velocity**2) * jnp.sum(surrogate**2))
    return jnp.arccos(jnp.clip(jnp.sum(velocity * surrogate) / norms, -1.0, 1.0))


PARTING = Observable("parting", "angle between the SA and USA velocities", "∠(ẊSA, ẊUSA)", _parting, needs_tokens=True)
RECORD = (u_max, PARTING)


class Orbit(Setting):
    """One orbit of SA."""

    n: of.Tokens = 8
    d: of.Dimension = 8
    beta: of.Beta = 4.0
    seed: of.Seed = 3
    until: of.Until = 3.0
    records: of.Records = 31


def _times(s: Orbit) -> np.ndarray:
    return np.linspace(0.0, s.until, s.records)


def _along_orbit(s: Orbit) -> Run:
    """SA from i.i.d. uniform tokens, with the angle to the USA velocity recorded."""
    tokens = Sphere(s.d).uniform(jax.random.key(s.seed), s.n)
    return flow(
        MODELS["sa"].build(s.beta), tokens, times=_times(s), record=RECORD, method="dop853", rtol=1e-11, form="tokens"
    )


def simulate_time_change(s: Orbit) -> Evidence:
    """The largest angle along one orbit of SA."""
    run = _along_orbit(s)
    angle = run["parting"].values
    return Evidence({"largest_angle": angle.max()}, curves=(Curve("measured", run.time, angle),), runs=(run,))


def predict_time_change(s: Orbit) -> Evidence:
    """Parallel velocities."""
    return Evidence({"largest_angle": 0.0}, curves=(Curve("time change", _times(s), np.zeros(s.records)),))


claim(
    "clustering/ER-09",
    PERSPECTIVE,
    "USA as surrogate of SA, read as a time change",
    "From the same start, USA runs through the same configurations as SA, only with another clock.",
    where="§3.3, USA as a surrogate of SA",
    models=("sa", "usa"),
    quick=Orbit(),
    within={"largest_angle": absolute(1e-6, "arccos of a cosine rounded to 1e-16, and solver tolerance 1e-11")},
    simulate=simulate_time_change,
    predict=predict_time_change,
    expected="refuted",
    corrected_by="clustering/ER-09b",
    axes=Axes("depth-time t", "angle between velocities"),
    note="For one-parameter families (equiangular starts, two clusters) orbits do coincide; generic orbits do not, "
    "and even there no clock independent of β exists: SA slows down with β, USA speeds up.",
)


class PhaseTimes(Orbit):
    """One orbit of SA, and clustering times over β."""

    tokens: Annotated[of.Count, means("tokens of the equiangular starts", "n")] = 8
    betas: of.Betas = (1.0, 4.0, 6.0)
    delta: of.Nearness = 0.001
    zooms: Annotated[of.Whole, means("times that the bracket of a clustering time is narrowed")] = 4


def _phase_time(kind: str, beta: float, s: PhaseTimes) -> tuple[float, Run]:
    """Time at which the common deficit of an equiangular start reaches δ: bracket, then zoom in on the crossing."""
    model, start = MODELS[kind].build(beta), Sphere(s.tokens).simplex(s.tokens, 0.0)
    low, high, zooms = 0.0, 0.25, 0
    while True:
        times = np.linspace(low, high, 32)
        run = flow(model, start, times=times, record=RECORD, method="dop853", rtol=1e-11, form="tokens")
        below = np.nonzero(run["u_max"].values <= s.delta)[0]
        if len(below) == 0:
            low, high = high, 2 * high
            continue
        low, high = times[below[0] - 1 : below[0] + 1]
        zooms += 1
        if zooms == s.zooms:
            return (low + high) / 2, run


def simulate_separation(s: PhaseTimes) -> Evidence:
    """Angles along a generic orbit; phase times of equiangular particles for a few β."""
    along = _along_orbit(s)
    found = {kind: [_phase_time(kind, beta, s) for beta in sorted(s.betas)] for kind in ("sa", "usa")}
    times = {kind: np.array([t for t, _ in pairs]) for kind, pairs in found.items()}
    values = {
        "angle": along["parting"].values,
        "sa_time": times["sa"],
        "usa_time": times["usa"],
        "trend": [np.sign(np.diff(times["sa"])).mean(), np.sign(np.diff(times["usa"])).mean()],
    }
    curves = (
        Curve("measured", along.time, along["parting"].values, panel="angle"),
        Curve("SA particles", sorted(s.betas), times["sa"], panel="phase time against β"),
        Curve("USA particles", sorted(s.betas), times["usa"], panel="phase time against β"),
    )
    wide = 31.0**-s.zooms > BRACKET
    advice = dict.fromkeys(("sa_time", "usa_time"), "zooms=4 or more: the last bracket is too wide") if wide else {}
    runs = (along, *(run for pairs in found.values() for _, run in pairs))
    return Evidence(values, curves=curves, runs=runs, undecided=advice)


BRACKET = 1e-5
"""Relative width of the last bracket around a phase time."""


def predict_separation(s: PhaseTimes) -> Evidence:
    """The angle along SciPy's orbit, and the closed form Γ."""
    start = np.asarray(Sphere(s.d).uniform(jax.random.key(s.seed), s.n))
    orbit = direct.trajectory(partial(direct.velocity, beta=s.beta), start, _times(s), 1e-11)
    angle = np.array([_angle(direct.velocity(x, s.beta), direct.velocity(x, s.beta, "usa")) for x in orbit])
    betas, fine = np.sort(np.asarray(s.betas, float)), np.linspace(min(s.betas), max(s.betas), 100)
    values = {"angle": angle, "trend": [1.0, -1.0]}
    curves = [Curve("NumPy", _times(s), angle, panel="angle")]
    for kind in ("sa", "usa"):
        values[f"{kind}_time"] = phase_curve(betas, s.tokens, s.delta, kind)
        gamma = phase_curve(fine, s.tokens, s.delta, kind)
        curves.append(Curve(f"Γ, {kind.upper()}", fine, gamma, panel="phase time against β"))
    return Evidence(values, curves=tuple(curves))


def _angle(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.arctan2(np.sqrt(max(np.sum(a * a) * np.sum(b * b) - np.sum(a * b) ** 2, 0.0)), np.sum(a * b)))


claim(
    "clustering/ER-09b",
    PERSPECTIVE,
    "USA and SA have different orbits and opposite trends in β (derived)",
    "Along a generic orbit of SA the velocities of SA and USA at the same configuration are not parallel, and from "
    "equiangular starts the time to overlap 1−δ grows with β for SA and falls with β for USA, as given by Γ.",
    where="derived; on §3.3, USA as a surrogate of SA",
    models=("sa", "usa"),
    quick=PhaseTimes(),
    full=PhaseTimes(tokens=32, betas=(0.5, 1.0, 2.0, 4.0, 6.0, 9.0), zooms=5),
    within={
        "angle": absolute(1e-8, "two solvers at tolerance 1e-11, over the angle itself"),
        "sa_time": relative(BRACKET, "width of the last bracket: 31⁻⁴ of the first"),
        "usa_time": relative(BRACKET, "width of the last bracket: 31⁻⁴ of the first"),
        "trend": exactly("signs"),
    },
    simulate=simulate_separation,
    predict=predict_separation,
    axes=Axes("depth-time t, or β", "angle, or time to 1−δ", y_scale="log"),
)
