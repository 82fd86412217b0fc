"""What delays collapse: temperature and context length (Homogenized Transformers, arXiv:2604.01978; numbers derived).

From orthogonal tokens to mean overlap ½ takes the diffusive time τ_½ = log(n+1) at b = 0, and a power of n when every
token attends to one other only (b = ∞). Gram-only chains, whose cost does not depend on d, against the layer map.
"""

from __future__ import annotations

import math
from typing import Annotated

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.slopes import several
from pathlines.claim.tolerance import standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.chain import chain
from pathlines.integrate.run import Run
from pathlines.limit.homogenized.collapse import collapse_time
from pathlines.limit.homogenized.overlap_curve import layer_map_curve
from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.observable.analysis import crossing_time

ERRORS = 5.0


class Orthogonal(Setting):
    """Chains from orthogonal tokens."""

    d: of.Dimension = 1024
    v: of.LayerTime = 0.04
    heads: of.Heads = 8
    runs: of.Runs = 24
    seed: of.Seed = 15


def _orthogonal(n: int, b: float, v: float, depth: int, s: Orthogonal, seed: int) -> Run:
    """The mean overlap of n orthogonal tokens, by the sampler of Gram matrices."""
    model = RandomTransformer(s.d, heads=s.heads, step=math.sqrt(v * s.heads), logit_scale=b, qk_dim=math.inf)
    start, key = np.eye(n, min(n, s.d)), jax.random.key(seed)
    return chain(model, start, depth=depth, key=key, runs=s.runs, record="mean_overlap", sampler="gram")


class HardAttention(Orthogonal):
    """One chain at a large logit scale."""

    n: of.Tokens = 16
    b: of.LogitScale = 100.0
    layers: of.Depth = 136


def simulate_hard(s: HardAttention) -> Evidence:
    """One chain."""
    run = _orthogonal(s.n, s.b, s.v, s.layers, s, s.seed)
    mean, error = mean_and_error(run["mean_overlap"].values)
    return Evidence(
        {"overlap": mean[-1]},
        {"overlap": error[-1]},
        (Curve(f"chain, b = {s.b:g}", run.data["tau"], mean, error),),
        (run,),
    )


def predict_hard(s: HardAttention) -> Evidence:
    """The layer map with f, g at this logit scale and p = ∞."""
    curve = layer_map_curve(s.layers, s.n, s.b, s.v, d=s.d).overlap
    return Evidence(
        {"overlap": curve[-1]},
        {"overlap": (s.v / s.heads + 3 / s.d) / ERRORS},
        curves=(Curve("layer map", s.v * np.arange(s.layers + 1), curve),),
    )


claim(
    "homogenized/C15",
    HOMOGENIZED,
    "hard attention (derived)",
    "At very low temperature (b ≫ √(2 log n)) every token attends to one other, f → 1 and g → P(same argmax), and "
    "the overlap of finitely many tokens follows the layer map γ′ = (γ+vS)/(1+vP): slow, but collapse all the same.",
    where="derived; finitely many tokens at low temperature",
    models=("random",),
    quick=HardAttention(),
    full=HardAttention(d=16384, heads=16, runs=96, b=400.0),
    within={
        "overlap": standard_errors(
            ERRORS,
            "standard errors over runs, v/H for the noise of the scores, absent from the map (0.8 v/H in 200 "
            "runs at b = 100), and 3/d for the curvature in the fluctuations",
        )
    },
    simulate=simulate_hard,
    predict=predict_hard,
    axes=Axes("diffusive time τ", "mean overlap γ"),
)


def _half_time(curve: np.ndarray, v: float) -> float:
    return crossing_time(v * np.arange(len(curve)), curve, 0.5)


class CollapseTimes(Orthogonal):
    """Collapse times over n and b."""

    d: of.Dimension = 100_000
    v: of.LayerTime = 0.1
    runs: of.Runs = 16
    seed: of.Seed = 56
    ns: of.Sizes = (8, 32)
    bs: Annotated[tuple[of.NonNegative, ...], means("logit scales", "b")] = (0.0, 30.0)
    horizon: Annotated[of.Positive, means("where the runs end, over n^{3/4}", unit="diffusive time")] = 1.0


def _depth(n: int, v: float, s: CollapseTimes) -> int:
    """Layers enough to pass the level ½ with hard attention: the power of n is below ¾."""
    return math.ceil(s.horizon * n**0.75 / v)


def _cases(s: CollapseTimes) -> list[tuple[float, int, float]]:
    """(b, n, v): every length at every b, with layers of time v and v/2."""
    several("ns", s.ns)
    return [(b, n, v) for b in s.bs for n in s.ns for v in (s.v, s.v / 2)]


def _measured_time(run: Run, v: float) -> tuple[float, float]:
    """When the mean overlap over runs passes ½; error by the spread of single runs."""
    paths = run["mean_overlap"].values
    return _half_time(paths.mean(axis=0), v), float(mean_and_error([_half_time(path, v) for path in paths])[1])


def _extrapolated(times: np.ndarray) -> np.ndarray:
    """2T(v/2) - T(v): the time for v → 0 up to O(v²), the noise of the scores, O(v/H), removed as well."""
    return 2 * times[..., 1] - times[..., 0]


def _exponent(times: np.ndarray, s: CollapseTimes) -> np.ndarray:
    """Between the first and the last n, for each b."""
    return np.log(times[:, -1] / times[:, 0]) / math.log(s.ns[-1] / s.ns[0])


def simulate_times(s: CollapseTimes) -> Evidence:
    """τ_½ of chains with layers v and v/2 for each b and n, and what they tend to as v → 0."""
    runs = [_orthogonal(n, b, v, _depth(n, v, s), s, s.seed + k) for k, (b, n, v) in enumerate(_cases(s))]
    found = [_measured_time(run, v) for run, (_, _, v) in zip(runs, _cases(s), strict=True)]
    times, errors = np.moveaxis(np.reshape(found, (len(s.bs), len(s.ns), 2, 2)), -1, 0)
    limit, spread = _extrapolated(times), np.hypot(2 * errors[..., 1], errors[..., 0])
    share = np.hypot(spread[:, 0] / limit[:, 0], spread[:, -1] / limit[:, -1])
    curves = [Curve(f"b = {b:g}", s.ns, limit[k], spread[k]) for k, b in enumerate(s.bs)]
    return Evidence(
        {"half_time": limit.ravel(), "map_time": times.ravel(), "exponent": _exponent(limit, s)},
        {
            "half_time": spread.ravel(),
            "map_time": errors.ravel(),
            "exponent": share / abs(math.log(s.ns[-1] / s.ns[0])),
        },
        tuple(curves),
        tuple(runs),
    )


def predict_times(s: CollapseTimes) -> Evidence:
    """τ_½ of the ODE at d = ∞ and its exponent, each known up to what extrapolation misses for the layer map (O(v²))
    and 2/d; and the crossings of the layer map, up to v/H for the noise of the scores.
    """
    ode = np.array([[collapse_time(n, b) for n in s.ns] for b in s.bs])
    mapped = [_half_time(layer_map_curve(_depth(n, v, s), n, b, v, d=s.d).overlap, v) for b, n, v in _cases(s)]
    steps = np.reshape(mapped, (*ode.shape, 2))
    rest = np.abs(_extrapolated(steps) - ode) + 2 * ode / s.d
    share = np.abs(_exponent(_extrapolated(steps), s) - _exponent(ode, s))
    noise = [v / s.heads if b > 0 else 0.0 for b, _, v in _cases(s)]
    curves = tuple(Curve(f"limit, b = {b:g}", s.ns, row) for b, row in zip(s.bs, ode, strict=True))
    late = {}
    if not np.isfinite(steps).all():
        need = 1.5 * s.horizon * float(np.max(ode / [_depth(n, s.v, s) * s.v for n in s.ns]))
        late = dict.fromkeys(("half_time", "map_time", "exponent"), f"horizon={need:.2g} would reach the overlap ½")
    return Evidence(
        {"half_time": ode.ravel(), "map_time": steps.ravel(), "exponent": _exponent(ode, s)},
        {
            "half_time": 1.5 * rest.ravel() / ERRORS,
            "map_time": (np.array(noise) + 2 * steps.ravel() / s.d) / ERRORS,
            "exponent": 1.5 * share / ERRORS,
        },
        curves=curves,
        source="quadrature; layer map",
        undecided=late,
    )


claim(
    "homogenized/T1",
    HOMOGENIZED,
    "collapse times (derived)",
    "From orthogonal tokens the overlap ½ is reached at τ½ = log(n+1) at b = 0 and hardly later below b ≈ √(2 log "
    "n); with hard attention (b → ∞) the logarithm becomes a power of n. Chains of Gram matrices pass ½ at the "
    "times of the layer map, and at the predicted ones as v → 0.",
    where="derived; trade-offs between n, d and temperature on the simplex (§2.3.4)",
    models=("random",),
    quick=CollapseTimes(),
    full=CollapseTimes(runs=24, ns=(16, 64), bs=(0.0, 2.0, 4.0, 400.0)),
    within={
        "half_time": standard_errors(ERRORS, "standard errors over runs; 1.5 times what the layer map leaves, and 2/d"),
        "map_time": standard_errors(ERRORS, "standard errors over runs, and v/H for the noise of the scores"),
        "exponent": standard_errors(ERRORS, "those of the two times"),
    },
    simulate=simulate_times,
    predict=predict_times,
    axes=Axes("context length n", "τ½", "log", "log"),
    blind={"exponent": "of two times that are known to 1 %, over a range of n of four: 3 % takes twice the runs"},
)
