"""Tokens in a hemisphere: the cone never grows, everything meets in one point, and how fast.

If some w has <x_i(0), w> > 0 for all i, then min_i <x_i(t), w> never decreases and all tokens converge to one point
exponentially (A mathematical perspective on Transformers, arXiv:2312.10794, for SA, USA, and SA with V = I, any Q, K).
Next to that point token differences decay at rate exactly 1 (SA) or e^β (USA) (derived).
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering import perspective_direct as direct
from pathlines.claim.clustering.perspective_phase import uniform_law
from pathlines.claim.estimate import mean_and_error, share_and_error
from pathlines.claim.fitting import Mistake
from pathlines.claim.tolerance import absolute, at_least, at_most, exactly
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import ensemble, flow
from pathlines.integrate.observe import positions
from pathlines.limit.clustering.clusters import antipodal_escape_rate
from pathlines.limit.clustering.cone import cone_excess, hemisphere, wendel_probability
from pathlines.model import MODELS, SelfAttention
from pathlines.observable.clusters import cluster_count


def half_sphere(seed: int, n: int, d: int, lift: float = 1.0) -> jax.Array:
    """N(u_i + lift·e_1) with u_i i.i.d. uniform: for lift ≥ 1 all tokens are in the hemisphere <x, e_1> > 0."""
    sphere = Sphere(d)
    return sphere.retract(sphere.uniform(jax.random.key(seed), n) + lift * jnp.eye(d)[:1])


# --- CL-13: monotone margin, shrinking cone


class Hemisphere(Setting):
    """Tokens in a hemisphere."""

    n: of.Tokens = 12
    d: of.Dimension = 4
    beta: of.Beta = 4.0
    seed: of.Seed = 4
    kind: of.Kind = "sa"
    until: of.Until = 20.0
    records: of.Records = 41
    rtol: of.Rtol = 1e-12


def simulate_cone(s: Hemisphere) -> Evidence:
    """min_i <x_i, w> for w = e_1 and for the best w of the start; distance from the initial cone."""
    start = half_sphere(s.seed, s.n, s.d)
    run = flow(
        MODELS[s.kind].build(s.beta),
        start,
        times=np.linspace(0.0, s.until, s.records),
        record=positions,
        method="dop853",
        rtol=s.rtol,
    )
    tokens = run["tokens"].values
    margin, best = hemisphere(np.asarray(start))
    heights = [np.min(tokens @ w, axis=1) for w in (np.eye(s.d)[0], best)]
    values = {
        "margin": margin,
        "heights": np.concatenate(heights),
        "largest_decrease": [float(np.max(-np.diff(h))) for h in heights],
        "cone_residual": max(cone_excess(x, tokens[0]) for x in tokens[1:]),
    }
    curves = tuple(Curve(f"minᵢ⟨xᵢ,w⟩, w = {w}", run.time, h) for w, h in zip(("e₁", "best"), heights, strict=True))
    return Evidence(values, curves=curves, runs=(run,))


def predict_cone(s: Hemisphere) -> Evidence:
    """A positive margin, no decrease, no excursion out of the cone; the heights themselves from SciPy's solution."""
    start = np.asarray(half_sphere(s.seed, s.n, s.d))
    field = partial(direct.velocity, beta=s.beta, kind=s.kind)
    tokens = direct.trajectory(field, start, np.linspace(0.0, s.until, s.records), s.rtol)
    heights = np.concatenate([np.min(tokens @ w, axis=1) for w in (np.eye(s.d)[0], hemisphere(start)[1])])
    return Evidence({"margin": 0.0, "heights": heights, "largest_decrease": np.zeros(2), "cone_residual": 0.0})


claim(
    "clustering/CL-13",
    PERSPECTIVE,
    "cone collapse",
    "If all tokens start in an open hemisphere ⟨x,w⟩ > 0, minᵢ⟨xᵢ(t),w⟩ never decreases, and the tokens never leave "
    "the cone spanned by the initial ones.",
    where="§6, lemma on cone collapse",
    models=("sa", "usa"),
    quick=Hemisphere(),
    full=Hemisphere(n=40, d=6, until=60.0, records=241),
    within={
        "margin": at_least("the start is in an open hemisphere"),
        "heights": absolute(1e-9, "two solvers at tolerance 1e-12, errors magnified by the unstable early flow"),
        "largest_decrease": at_most("solver tolerance 1e-12", slack=1e-12),
        "cone_residual": at_most("solver tolerance 1e-12", slack=1e-12),
    },
    simulate=simulate_cone,
    predict=predict_cone,
    axes=Axes("depth-time t", "minᵢ⟨xᵢ,w⟩"),
)


# --- CL-16: Wendel


class Wendel(Setting):
    """Shares of starts in a hemisphere."""

    sizes: of.Clouds = ((6, 3), (8, 4), (10, 5), (4, 3), (5, 3), (8, 3), (3, 3))
    draws: of.Draws = 3
    reflections: Annotated[of.Count, means("reflections of each draw")] = 512
    seed: of.Seed = 8


def simulate_wendel(s: Wendel) -> Evidence:
    """Share of positive margins among i.i.d. uniform tokens, averaged over reflections x_i -> ±x_i.

    Reflections do not change the law of the tokens, and of the 2^{n-1} reflections of tokens in general position a
    fixed number lies in a hemisphere: with all of them, every draw gives Wendel's number without noise.
    """
    found = [_share(s, n, d) for n, d in s.sizes]
    shares, errors = [p for p, _ in found], [e for _, e in found]
    curves = tuple(Curve(f"d={d}", *_by_size(s, d, shares), _by_size(s, d, errors)[1]) for d in _dims(s))
    return Evidence({"frequency": shares}, {"frequency": errors}, curves=curves)


def _share(s: Wendel, n: int, d: int) -> tuple[float, float]:
    """(share, standard error): zero error where all reflections are tried, up to ``reflections`` of them."""
    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(s.seed), d), n)
    draws = np.asarray(Sphere(d).uniform(key, s.draws * n)).reshape(s.draws, n, d)
    complete = 2 ** (n - 1) <= s.reflections
    if complete:
        signs = np.array([[1.0, *p] for p in product((1.0, -1.0), repeat=n - 1)])
    else:
        signs = np.random.default_rng([s.seed, n, d]).choice([1.0, -1.0], (s.reflections, n))
    shares = [np.mean([hemisphere(p[:, None] * x)[0] > 0 for p in signs]) for x in draws]
    share = float(np.mean(shares))
    return share, 0.0 if complete else float(share_and_error(share * len(signs), len(signs))[1])


def _dims(s: Wendel) -> list[int]:
    return sorted({d for _, d in s.sizes})


def _by_size(s: Wendel, d: int, values: Any) -> tuple[np.ndarray, np.ndarray]:
    """(n, value) of the sizes with that d, sorted by n."""
    rows = np.array(sorted((n, v) for (n, e), v in zip(s.sizes, values, strict=True) if e == d))
    return rows[:, 0], rows[:, 1]


def predict_wendel(s: Wendel) -> Evidence:
    """2^{-(n-1)} Σ_{k<d} C(n-1, k)."""
    exact = np.array([wendel_probability(n, d) for n, d in s.sizes])
    fine = range(1, max(n for n, _ in s.sizes) + 2)
    curves = tuple(Curve(f"Wendel, d={d}", list(fine), [wendel_probability(n, d) for n in fine]) for d in _dims(s))
    return Evidence({"frequency": exact}, curves=curves)


claim(
    "clustering/CL-16",
    PERSPECTIVE,
    "Wendel's probability of a hemisphere",
    "n i.i.d. uniform tokens lie in an open hemisphere with probability 2^{−(n−1)}Σ_{k<d}C(n−1,k).",
    where="§6.1, remark on Wendel's theorem",
    models=("sa",),
    quick=Wendel(),
    full=Wendel(draws=20),
    within={
        "frequency": absolute(
            1e-12, "an exact count where all reflections are tried, else binomial errors of one draw", errors=5.0
        )
    },
    simulate=simulate_wendel,
    predict=predict_wendel,
    axes=Axes("tokens n", "P(hemisphere)"),
)


# --- CL-17: n ≤ d


class Halves(Setting):
    """Random starts with n ≤ d."""

    n: of.Tokens = 16
    d: of.Dimension = 16
    beta: of.Beta = 1.0
    runs: of.Runs = 64
    until: of.Until = 40.0
    records: of.Records = 17
    delta: of.Nearness = 0.001
    seed: of.Seed = 9


def simulate_collapse(s: Halves) -> Evidence:
    """Independent starts: margin, and clusters at the end."""
    law, key = uniform_law(s.d, s.n), jax.random.key(s.seed)
    count = cluster_count.at(delta=s.delta)
    times = np.linspace(0.0, s.until, s.records)
    run = ensemble(SelfAttention(s.beta), law, runs=s.runs, key=key, times=times, record=count)
    starts = (np.asarray(law(jax.random.fold_in(key, r))) for r in range(s.runs))
    values = {
        "smallest_margin": min(hemisphere(x)[0] for x in starts),
        "largest_count": run[count.name].values[:, -1].max(),
    }
    mean, error = mean_and_error(run[count.name].transpose("run", ...))
    return Evidence(values, curves=(Curve("mean over runs", times, mean, error),), runs=(run,))


def predict_collapse(s: Halves) -> Evidence:
    """A hemisphere for sure if n ≤ d, hence one cluster once the run outlasts the escape of an antipodal pair."""
    sure = s.n <= s.d
    told = sure and s.until > np.log(1 / s.delta) / antipodal_escape_rate(s.beta)
    return Evidence({"smallest_margin": 0.0 if sure else None, "largest_count": 1.0 if told else None})


claim(
    "clustering/CL-17",
    PERSPECTIVE,
    "collapse for n ≤ d",
    "For n ≤ d almost every start lies in an open hemisphere, and all tokens converge to one point.",
    where="§6, theorem for n ≤ d",
    models=("sa",),
    quick=Halves(),
    full=Halves(runs=200),
    within={
        "smallest_margin": at_least("positive margin: hemisphere() returns 0 when there is none", slack=-1e-12),
        "largest_count": exactly("clusters at the end of every run"),
    },
    simulate=simulate_collapse,
    predict=predict_collapse,
    axes=Axes("depth-time t", "clusters"),
    note="Inconclusive if the run is shorter than ln(1/δ)(1+e^{2β})/2, the time in which even an antipodal pair "
    "would meet.",
    mistakes=(
        Mistake(
            "uniform_law",
            "starts of {:.0f} dimensions fewer",
            lambda right, size: lambda d, n: right(d - int(size), n),
            (2, 4, 6, 8),
        ),
    ),
)
