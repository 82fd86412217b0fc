"""The exceptional set: antipodally symmetric starts stay symmetric and never reach one point.

"Almost every" is essential in the convergence theorems of A mathematical perspective on Transformers,
arXiv:2312.10794: x ↦ -x commutes with the flow, so {±y_i} stays of that form, and an antipodal pair
does not move at all.
"""

from __future__ import annotations

from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.fitting import Mistake
from pathlines.claim.tolerance import absolute, exactly
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import Run, flow
from pathlines.integrate.observe import Observable
from pathlines.limit.clustering.clusters import antipodal_escape_rate
from pathlines.model import MODELS, Snapshot
from pathlines.observable.clusters import cluster_count


def _asymmetry(snapshot: Snapshot) -> jax.Array:
    """max_i |x_i + x_{i+n/2}|."""
    first, second = jnp.split(snapshot.tokens, 2)
    return jnp.max(jnp.linalg.norm(first + second, axis=-1))


ASYMMETRY = Observable("asymmetry", "distance from antipodal symmetry", "max|xᵢ+xᵢ₊ₘ|", _asymmetry, needs_tokens=True)


class Antipodal(Setting):
    """Pairs ±y."""

    pairs: Annotated[of.Count, means("pairs of opposite tokens")] = 10
    d: of.Dimension = 3
    beta: of.Beta = 3.0
    kind: of.Kind = "sa"
    seed: of.Seed = 13
    until: of.Until = 4.0
    records: of.Records = 41
    rtol: of.Rtol = 1e-12


def _symmetric_run(s: Antipodal) -> Run:
    half = Sphere(s.d).uniform(jax.random.key(s.seed), s.pairs)
    times = np.linspace(0.0, s.until, s.records)
    record = (ASYMMETRY, cluster_count)
    start = jnp.concatenate([half, -half])
    return flow(
        MODELS[s.kind].build(s.beta), start, times=times, record=record, method="dop853", rtol=s.rtol, form="tokens"
    )


def simulate_symmetry(s: Antipodal) -> Evidence:
    """How far ± pairs are from being antipodal."""
    run = _symmetric_run(s)
    gap = run["asymmetry"].values
    curve = Curve("max|xᵢ+xᵢ₊ₘ|", run.time, np.maximum(gap, 1e-18))
    return Evidence({"asymmetry": gap.max()}, curves=(curve,), runs=(run,))


def predict_symmetry(s: Antipodal) -> Evidence:
    """Zero; rounding grows at most at the escape rate of an antipodal pair, e^{2t/(1+e^{2β})} for SA."""
    times = np.linspace(0.0, s.until, s.records)
    growth = 1e-16 * np.exp(antipodal_escape_rate(s.beta) * times)
    return Evidence({"asymmetry": 0.0}, curves=(Curve("rounding × escape of a pair", times, growth),))


claim(
    "clustering/CL-44",
    PERSPECTIVE,
    "antipodal symmetry is preserved",
    "A start {±yᵢ} keeps the form {±xᵢ(t)} under SA and USA.",
    where="derived; the exceptional starts of the theorems on a single cluster (§4–6)",
    models=("sa", "usa"),
    quick=Antipodal(),
    within={"asymmetry": absolute(1e-13, "rounding, grown by the instability of the symmetric set")},
    simulate=simulate_symmetry,
    predict=predict_symmetry,
    axes=Axes("depth-time t", "max|xᵢ+xᵢ₊ₘ|", y_scale="log"),
    mistakes=(
        Mistake(
            "drift", "a constant of {:g} in the drift", lambda right, size: lambda *a: right(*a) + size, (1e-9, 1e-3)
        ),
    ),
)


def simulate_every_start(s: Antipodal) -> Evidence:
    """Clusters at the end of a run from a symmetric start."""
    run = _symmetric_run(s)
    counts = run["cluster_count"].values
    escaped = {"clusters": "a smaller until: rounding has broken the symmetry of the start"}
    return Evidence(
        {"clusters": counts[-1]},
        curves=(Curve("clusters", run.time, counts),),
        runs=(run,),
        undecided=escaped if counts[-1] == 1 else {},
    )


def predict_every_start(s: Antipodal) -> Evidence:
    """One point."""
    return Evidence({"clusters": 1.0}, curves=(Curve("one point", [0.0, s.until], [1.0, 1.0]),))


claim(
    "clustering/ER-01",
    PERSPECTIVE,
    'convergence to one point, without "almost every"',
    "From every initial configuration, tokens of SA and USA converge to one point.",
    where="theorems on a single cluster (§4–6), read without “almost every”",
    models=("sa", "usa"),
    quick=Antipodal(beta=1.0, until=40.0),
    within={"clusters": exactly("a symmetric start can end in two antipodal clusters at best")},
    simulate=simulate_every_start,
    predict=predict_every_start,
    expected="refuted",
    corrected_by="clustering/CL-18",
    axes=Axes("depth-time t", "clusters"),
    note="Symmetric starts have measure zero. pairs = 1 is the antipodal pair, which is stationary for every β and "
    "d. Run far longer than (1+e^{2β})/2·ln(1e16) and rounding lets the symmetric state escape.",
)
