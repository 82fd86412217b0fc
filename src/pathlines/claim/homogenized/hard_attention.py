"""What delays collapse: temperature and context length (Homogenized Transformers, arXiv:2604.01978; numbers derived).

From orthogonal tokens to mean overlap ½ takes the diffusive time τ_½ = log(n+1) at b = 0, and a power of n when every
token attends to one other only (b = ∞). Gram-only chains, whose cost does not depend on d, against the layer map.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute, relative, standard_errors
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.integrate.chain import chain
from pathlines.integrate.run import Run
from pathlines.limit.homogenized.collapse import collapse_time
from pathlines.limit.homogenized.overlap_curve import layer_map_curve
from pathlines.model.random_transformer import RandomTransformer
from pathlines.observable.analysis import crossing_time, mean_and_error


def _orthogonal(n: int, b: float, depth: int, s: Any, every: int = 1) -> Run:
    """The mean overlap of n orthogonal tokens, by the sampler of Gram matrices."""
    model = RandomTransformer(s.d, heads=s.heads, step=math.sqrt(s.v * s.heads), logit_scale=b, qk_dim=math.inf)
    key = jax.random.key(s.seed)
    start = np.eye(n, min(n, s.d))
    return chain(model, start, depth=depth, every=every, key=key, runs=s.runs, record="mean_overlap", sampler="gram")


def simulate_hard(s: Any) -> Evidence:
    """One chain."""
    run = _orthogonal(s.n, s.b, s.layers, s)
    mean, error = mean_and_error(run["mean_overlap"])
    return Evidence(
        {"overlap": mean[-1]},
        {"overlap": error[-1]},
        (Curve(f"chain, b = {s.b:g}", run.data["tau"], mean, error),),
        (run,),
    )


def predict_hard(s: Any) -> Evidence:
    """The layer map with f, g at this logit scale and p = ∞."""
    curve = layer_map_curve(s.layers, s.n, s.b, s.v, d=s.d).overlap
    return Evidence(
        {"overlap": curve[-1]},
        {"overlap": (s.v / s.heads + 3 / s.d) / 4},
        curves=(Curve("layer map", s.v * np.arange(s.layers + 1), curve),),
    )


claim(
    "homogenized/C15",
    HOMOGENIZED,
    "hard attention (derived)",
    "At very low temperature (b ≫ √(2 log n)) every token attends to one other, f → 1 and g → P(same argmax), and "
    "the overlap of finitely many tokens follows the layer map γ′ = (γ+vS)/(1+vP): slow, but collapse all the same.",
    models=("random",),
    quick={"n": 16, "d": 1024, "b": 100.0, "v": 0.04, "heads": 4, "layers": 136, "runs": 12, "seed": 15},
    full={"b": 400.0, "runs": 96},
    within={
        "overlap": standard_errors(
            4.0,
            "four standard errors over runs, v/H for the noise of the scores, absent from the map (0.8 v/H in 200 "
            "runs at b = 100), and 3/d for the curvature in the fluctuations",
        )
    },
    simulate=simulate_hard,
    predict=predict_hard,
    axes=Axes("diffusive time τ", "mean overlap γ"),
)


def _half_time(curve: np.ndarray, v: float) -> float:
    return crossing_time(v * np.arange(len(curve)), curve, 0.5)


def _depth(n: int, s: Any) -> int:
    """Layers enough to pass the level ½ with hard attention: the power of n is below ¾."""
    return math.ceil(s.horizon * n**0.75 / s.v)


def simulate_times(s: Any) -> Evidence:
    """When the mean overlap over runs passes ½, for each b (rows) and n; error by the spread of single runs."""
    times, errors, curves, runs = [], [], [], []
    for b in s.bs:
        for n in s.ns:
            run = _orthogonal(n, b, _depth(n, s), s)
            paths = run["mean_overlap"].values
            singles = np.array([_half_time(path, s.v) for path in paths])
            times.append(_half_time(paths.mean(axis=0), s.v))
            errors.append(singles.std(ddof=1) / math.sqrt(len(singles)))
            runs.append(run)
        curves.append(Curve(f"b = {b:g}", s.ns, times[-len(s.ns) :], errors[-len(s.ns) :]))
    found, spread = np.array(times).reshape(len(s.bs), -1), np.array(errors).reshape(len(s.bs), -1)
    length = math.log(s.ns[-1] / s.ns[0])
    share = np.hypot(spread[:, 0] / found[:, 0], spread[:, -1] / found[:, -1])
    return Evidence(
        {
            "half_time": found.ravel(),
            "map_time": found.ravel(),
            "exponent": np.log(found[:, -1] / found[:, 0]) / length,
        },
        {"half_time": spread.ravel(), "map_time": spread.ravel(), "exponent": share / length},
        tuple(curves),
        tuple(runs),
    )


def predict_times(s: Any) -> Evidence:
    """τ_½ of the ODE at d = ∞, the crossing of the layer map at this v, and the exponent between the smallest and
    largest n.
    """
    ode = np.array([[collapse_time(n, b) for n in s.ns] for b in s.bs])
    steps = [[_half_time(layer_map_curve(_depth(n, s), n, b, s.v, d=s.d).overlap, s.v) for n in s.ns] for b in s.bs]
    exponent = np.log(ode[:, -1] / ode[:, 0]) / math.log(s.ns[-1] / s.ns[0])
    curves = tuple(Curve(f"limit, b = {b:g}", s.ns, row) for b, row in zip(s.bs, ode, strict=True))
    return Evidence({"half_time": ode.ravel(), "map_time": np.ravel(steps), "exponent": exponent}, curves=curves)


claim(
    "homogenized/T1",
    HOMOGENIZED,
    "collapse times (derived)",
    "From orthogonal tokens the overlap ½ is reached at τ½ = log(n+1) at b = 0 and hardly later below b ≈ √(2 log "
    "n); with hard attention (b → ∞) the logarithm becomes a power of n. Chains of Gram matrices pass ½ at the "
    "predicted times.",
    models=("random",),
    quick={
        "ns": [8, 32],
        "bs": [0.0, 30.0],
        "d": 100000,
        "v": 0.1,
        "heads": 2,
        "horizon": 1.0,
        "runs": 8,
        "seed": 56,
    },
    full={"ns": [16, 64], "bs": [0.0, 2.0, 4.0, 400.0]},
    within={
        "half_time": relative(0.12, "v/2 between layers and the ODE, and the spread of the runs"),
        "map_time": standard_errors(4.0, "spread of the runs; the noise of the scores, O(v/H), is smaller"),
        "exponent": absolute(0.08, "standard errors of the two times"),
    },
    simulate=simulate_times,
    predict=predict_times,
    axes=Axes("context length n", "τ½", "log", "log"),
)
