"""Weak error of the centred chain: two tokens with uniform attention.

The mean overlap at fixed diffusive time τ = vℓ is compared with that of the diffusion; the error is O(v) (Homogenized
Transformers, arXiv:2604.01978; the rate derived).
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.homogenized.rates import log_slope
from pathlines.claim.tolerance import standard_errors
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.integrate import chain
from pathlines.limit.homogenized.two_token_chain import uniform_chain_expectation
from pathlines.limit.homogenized.two_tokens import uniform_expectation
from pathlines.model import RandomTransformer
from pathlines.observable.analysis import mean_and_error


def _layers(s: Any) -> list[int]:
    return [round(s.tau / v) for v in s.layer_times]


def simulate(s: Any) -> Evidence:
    """E R of the chain at τ for each v, less the diffusion's value; one compiled program serves all v."""
    gram = np.array([[1.0, s.overlap], [s.overlap, 1.0]])
    limit = float(uniform_expectation(s.tau, s.d, s.overlap))
    means, errors, runs = [], [], []
    for seed, (v, layer) in enumerate(zip(s.layer_times, _layers(s), strict=True)):
        net = RandomTransformer(s.d, step=float(np.sqrt(v)), beta=0.0)
        key = jax.random.key(s.seed + seed)
        run = chain(net, gram, depth=max(_layers(s)), key=key, runs=s.runs, record="pair_overlap")
        mean, error = mean_and_error(run["pair_overlap"][:, layer])
        means.append(float(mean))
        errors.append(float(error))
        runs.append(run)
    gap, v = np.array(means) - limit, np.asarray(s.layer_times)
    order = log_slope(v[-s.fitted :], gap[-s.fitted :], errors[-s.fitted :])
    return Evidence(
        {"overlap": means, "order": order[0]},
        {"overlap": errors, "order": order[1]},
        curves=(Curve("chain − diffusion", v, np.abs(gap), errors),),
        runs=tuple(runs),
    )


def predict(s: Any) -> Evidence:
    """E R of the chain itself by quadrature, layer after layer; order one."""
    limit = float(uniform_expectation(s.tau, s.d, s.overlap))
    exact = [
        uniform_chain_expectation(layer, v, s.d, s.overlap) for v, layer in zip(s.layer_times, _layers(s), strict=True)
    ]
    return Evidence(
        {"overlap": exact, "order": 1.0},
        curves=(Curve("quadrature of the chain", s.layer_times, np.abs(np.array(exact) - limit)),),
        source="quadrature; order",
    )


claim(
    "homogenized/C03",
    HOMOGENIZED,
    "weak error of the centred chain (derived)",
    "With centred Gaussian heads the chain approximates the diffusion at fixed diffusive time τ = vℓ with an error of "
    "order v: for two tokens at β = 0 the gap of E R is first order in v.",
    models=("random",),
    quick={
        "d": 16,
        "overlap": 0.0,
        "tau": 1.0,
        "layer_times": [0.5, 0.25, 0.125, 0.0625],
        "fitted": 3,
        "runs": 40000,
        "seed": 3,
    },
    full={"d": 4, "layer_times": [1.0, 0.5, 0.25, 0.125, 0.0625], "runs": 400000},
    within={
        "overlap": standard_errors(3.5, "standard errors over runs, each v"),
        "order": standard_errors(3.0, "standard error of the slope over the smallest v, propagated from the runs"),
    },
    simulate=simulate,
    predict=predict,
    axes=Axes("diffusive time of a layer v", "|E R(τ), chain − diffusion|", x_scale="log", y_scale="log"),
)
