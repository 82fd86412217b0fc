"""Weak error of the centred chain: two tokens with uniform attention.

The mean overlap at fixed diffusive time τ = vℓ is compared with that of the diffusion; the error is O(v) (Homogenized
Transformers, arXiv:2604.01978; the rate derived).
"""

from __future__ import annotations

from typing import Annotated, Any

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.slopes import log_slope, several
from pathlines.claim.tolerance import standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import chain
from pathlines.limit.homogenized.two_token_chain import uniform_chain_expectation
from pathlines.limit.homogenized.two_tokens import uniform_expectation
from pathlines.model.homogenized.random_transformer import RandomTransformer

ERRORS = 5.0


LayerTimes = Annotated[tuple[of.Positive, ...], means("times of one layer, descending", "v", unit="diffusive time")]


class WeakError(Setting):
    """Pairs after layers of several lengths."""

    d: of.Dimension = 16
    overlap: Annotated[of.Cosine, means("overlap at the start", "R₀")] = 0.0
    tau: of.Tau = 1.0
    layer_times: LayerTimes = (1.0, 0.5, 0.25, 0.125)
    fitted: Annotated[of.Count, means("shortest layers that the order is fitted to")] = 3
    runs: of.Runs = 200_000
    seed: of.Seed = 3


def _layers(s: WeakError) -> list[int]:
    """τ/v, whole numbers; and enough of them for the fit."""
    counts = [s.tau / v for v in s.layer_times]
    whole = all(abs(count - round(count)) < 1e-9 and count > 0.5 for count in counts)
    require(whole, "layer_times", f"divide tau = {s.tau:g}", s.layer_times)
    several("layer_times", s.layer_times[-s.fitted :])
    return [round(count) for count in counts]


def _at_zero(v: np.ndarray, values: Any, errors: Any) -> tuple[float, float]:
    """The value at v = 0 of a weighted parabola (a line through two), and its standard error."""
    scale = 1 / np.asarray(errors, float)
    design = np.vander(v, min(3, len(v)), increasing=True) * scale[:, None]
    share = np.linalg.pinv(design)[0] * scale
    return float(share @ np.asarray(values, float)), float(np.linalg.norm(share / scale))


def simulate(s: WeakError) -> Evidence:
    """E R of the chain at τ for each v, less the diffusion's value; one compiled program serves all v."""
    gram = np.array([[1.0, s.overlap], [s.overlap, 1.0]])
    limit = float(uniform_expectation(s.tau, s.d, s.overlap))
    means, errors, runs = [], [], []
    for seed, (v, layer) in enumerate(zip(s.layer_times, _layers(s), strict=True)):
        net = RandomTransformer(s.d, step=float(np.sqrt(v)), beta=0.0)
        key = jax.random.key(s.seed + seed)
        run = chain(net, gram, depth=max(_layers(s)), key=key, runs=s.runs, record="pair_overlap")
        mean, error = mean_and_error(run["pair_overlap"].values[:, layer])
        means.append(float(mean))
        errors.append(float(error))
        runs.append(run)
    gap, times = np.array(means) - limit, np.asarray(s.layer_times)
    last = slice(-s.fitted, None)
    order = log_slope(times, gap, np.full(len(times), np.mean(errors)))
    zero = _at_zero(times[last], means[last], errors[last])
    return Evidence(
        {"overlap": means, "limit": zero[0], "order": order[0]},
        {"overlap": errors, "limit": zero[1], "order": order[1]},
        curves=(Curve("chain − diffusion", times, np.abs(gap), errors),),
        runs=tuple(runs),
    )


def predict(s: WeakError) -> Evidence:
    """E R of the chain by quadrature, layer after layer; that of the diffusion, which the parabola through the last
    ones misses by O(v³) (taken from the quadrature); the slope of the quadrature's gaps, one as v → 0.
    """
    limit = float(uniform_expectation(s.tau, s.d, s.overlap))
    exact = [
        uniform_chain_expectation(layer, v, s.d, s.overlap) for v, layer in zip(s.layer_times, _layers(s), strict=True)
    ]
    v, last = np.asarray(s.layer_times), slice(-s.fitted, None)
    gap = np.array(exact) - limit
    bend = abs(_at_zero(v[last], exact[last], np.ones(len(v[last])))[0] - limit)
    return Evidence(
        {"overlap": exact, "limit": limit, "order": log_slope(v, gap, np.ones(len(v)))[0]},
        {"limit": bend / ERRORS},
        curves=(Curve("quadrature of the chain", s.layer_times, np.abs(np.array(exact) - limit)),),
        source="quadrature; order",
        undecided=_undecided(s, gap),
    )


def _undecided(s: WeakError, gap: np.ndarray) -> dict[str, str]:
    """A slope in logarithms needs gaps of one sign, well above their noise (a standard deviation of R is below ½)."""
    least = float(np.min(gap * np.sign(gap[0])))
    if least * np.sqrt(s.runs) > 5:
        return {}
    if least <= 0:
        return {"order": "layer_times beyond the change of sign of the gap would show its order"}
    return {"order": f"runs={int(np.ceil((5 / least) ** 2))} would resolve the smallest gap"}


claim(
    "homogenized/C03",
    HOMOGENIZED,
    "weak error of the centred chain (derived)",
    "With centred Gaussian heads the chain approximates the diffusion at fixed diffusive time τ = vℓ with an error of "
    "order v: for two tokens at β = 0 the gap of E R is first order in v, and E R tends to that of the diffusion.",
    where="§2.3.3, corollary for centred weights; the order in v is derived",
    models=("random",),
    quick=WeakError(),
    full=WeakError(layer_times=(1.0, 0.5, 0.25, 0.125, 0.0625), runs=800_000),
    within={
        "overlap": standard_errors(ERRORS, "standard errors over runs, each v"),
        "limit": standard_errors(ERRORS, "standard error of the parabola at v = 0, and the O(v³) that it misses"),
        "order": standard_errors(ERRORS, "standard error of the slope, propagated from the runs"),
    },
    simulate=simulate,
    predict=predict,
    blind={"order": "gaps of 0.01 with a standard error of 3e-4: 3 % would take 3e6 runs at full size"},
    axes=Axes("diffusive time of a layer v", "|E R(τ), chain − diffusion|", x_scale="log", y_scale="log"),
)
