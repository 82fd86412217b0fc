"""The layer map x ← N(x + ηA) is not an integrator of SA: it moves by η/(1+ηh), h = <x, A> (derived).

Layers and phase curve: A mathematical perspective on Transformers, arXiv:2312.10794.
"""

from __future__ import annotations

from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering import perspective_direct as direct
from pathlines.claim.tolerance import absolute, relative
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import Run, flow, layers
from pathlines.limit.clustering.equiangular import phase_curve
from pathlines.limit.clustering.layers import layers_to_deficit
from pathlines.model import SelfAttention
from pathlines.observable.analysis import crossing_time
from pathlines.observable.pairs import u_mean


class Stack(Setting):
    """Layers from orthogonal tokens."""

    n: of.Tokens = 32
    betas: of.Betas = (1.0, 4.0, 9.0)
    step: of.Step = 0.1
    delta: of.Nearness = 0.001
    depth: Annotated[of.Count, means("layers that are tried first", "L")] = 2000
    most_layers: Annotated[of.Count, means("layers that are tried at most")] = 100_000


def _layer_time(beta: float, s: Stack) -> tuple[float, Run]:
    """Depth ηℓ at which the simplex reaches 1-ρ = δ under layers; the depth is doubled until it does."""
    depth = s.depth
    while True:
        run = layers(SelfAttention(beta), Sphere(s.n).simplex(s.n), depth=depth, step=s.step, record=u_mean)
        time = crossing_time(run.time, run["u_mean"].values, s.delta)
        if np.isfinite(time) or depth >= s.most_layers:
            return time, run
        depth = 2 * depth


def _layer_times(s: Stack) -> tuple[list[float], list[Run]]:
    found = [_layer_time(beta, s) for beta in s.betas]
    return [time for time, _ in found], [run for _, run in found]


# --- CL-46: what a layer does


class LayerMap(Stack):
    """Layers beside the flow, and one layer of random tokens."""

    records: of.Records = 64
    rtol: of.Rtol = 1e-10
    one_n: Annotated[of.Count, means("tokens of the single layer")] = 12
    one_d: Annotated[of.Count, means("dimension of the single layer")] = 4
    seed: of.Seed = 0


def _flow_time(beta: float, about: float, s: LayerMap) -> tuple[float, Run]:
    """The same crossing under SA: between which records, then within them, where ln u is straight to 1/records²."""
    require(bool(np.isfinite(about)), "most_layers", "be enough for the layers to reach δ", s.most_layers)
    model, start, last = SelfAttention(beta), Sphere(s.n).simplex(s.n), np.linspace(0.0, about, s.records)
    options: dict[str, Any] = {"record": u_mean, "method": "dop853", "rtol": s.rtol, "form": "tokens"}
    coarse = flow(model, start, times=last, **options)
    after = int(np.argmax(coarse["u_mean"].values < s.delta))
    run = flow(model, start, times=np.linspace(last[after - 1], last[after], s.records), **options) if after else coarse
    return crossing_time(run.time, np.log(run["u_mean"].values), np.log(s.delta)), run


def _one_layer(s: LayerMap) -> np.ndarray:
    x = Sphere(s.one_d).uniform(jax.random.key(s.seed), s.one_n)
    layer = eqx.filter_jit(SelfAttention(s.betas[0]).layer)
    return np.asarray(layer(x, jnp.zeros(()), jnp.asarray(s.step)))


def simulate_layers(s: LayerMap) -> Evidence:
    """Layers and flow on the tokens of a simplex; one layer on uniform tokens."""
    layer_times, layer_runs = _layer_times(s)
    flow_times, flow_runs = zip(*(_flow_time(b, t, s) for b, t in zip(s.betas, layer_times, strict=True)), strict=True)
    values = {"layer_time": layer_times, "flow_time": flow_times, "one_layer": _one_layer(s)}
    curves = (
        Curve(f"layers, η = {s.step:g}", s.betas, layer_times),
        Curve("flow of SA", s.betas, flow_times),
    )
    return Evidence(values, curves=curves, runs=(*layer_runs, *flow_runs))


def _retraction_step(s: LayerMap) -> np.ndarray:
    """N(x + η/(1+ηh) P_x A), in NumPy."""
    x = np.asarray(Sphere(s.one_d).uniform(jax.random.key(s.seed), s.one_n))
    a = direct.attention_vectors(x, s.betas[0])
    h = np.sum(a * x, axis=1, keepdims=True)
    moved = x + s.step / (1 + s.step * h) * (a - h * x)
    return moved / np.linalg.norm(moved, axis=1, keepdims=True)


def predict_layers(s: LayerMap) -> Evidence:
    """The discrete map of ρ, the curve Γ, and the retraction of length η/(1+ηh)."""
    grid = np.linspace(min(s.betas), max(s.betas), 31)
    discrete = lambda b: layers_to_deficit("post", s.n, float(b), s.step, s.delta).time  # noqa: E731
    values = {
        "layer_time": [discrete(b) for b in s.betas],
        "flow_time": phase_curve(np.asarray(s.betas), s.n, s.delta),
        "one_layer": _retraction_step(s),
    }
    curves = (
        Curve("discrete map", grid, [discrete(b) for b in grid]),
        Curve("Γ", grid, phase_curve(grid, s.n, s.delta)),
    )
    return Evidence(values, curves=curves)


_STACK_AXES = Axes("β", "depth-time to 1−ρ = δ", y_scale="log")

claim(
    "clustering/CL-46",
    PERSPECTIVE,
    "the layer map is slower than SA by the factor 1+ηh (derived)",
    "N(x+ηA) is exactly the retraction step of length η/(1+ηh), h = ⟨x,A⟩, so a stack of layers integrates "
    "ẋ = PA/(1+ηh), not SA: from a simplex it follows its own map of ρ and reaches 1−ρ = δ later than SA does on Γ.",
    where="derived; the layer map that SA is the limit of, read as its integrator",
    models=("sa", "post-ln"),
    quick=LayerMap(),
    full=LayerMap(betas=(0.5, 1.0, 2.0, 4.0, 6.0, 9.0), records=256),
    within={
        "layer_time": relative(1e-9, "one map of ρ, by all tokens and by the formula"),
        "flow_time": relative(1e-6, "interpolation of ln u between recorded times, twice refined, and the solver"),
        "one_layer": absolute(1e-14, "rounding: the identity is exact"),
    },
    simulate=simulate_layers,
    predict=predict_layers,
    axes=_STACK_AXES,
)


# --- ER-08d: layers used as an integrator


def simulate_boundary(s: Stack) -> Evidence:
    """Where a stack of layers puts the phase boundary."""
    times, runs = _layer_times(s)
    return Evidence(
        {"boundary": times},
        curves=(Curve(f"layers, η = {s.step:g}", s.betas, times),),
        runs=tuple(runs),
        undecided={} if np.all(np.isfinite(times)) else {"boundary": "a larger most_layers, or a smaller β"},
    )


def predict_boundary(s: Stack) -> Evidence:
    """Γ, the boundary of SA."""
    grid = np.linspace(min(s.betas), max(s.betas), 61)
    curve = Curve("Γ", grid, phase_curve(grid, s.n, s.delta))
    return Evidence({"boundary": phase_curve(np.asarray(s.betas), s.n, s.delta)}, curves=(curve,))


claim(
    "clustering/ER-08d",
    PERSPECTIVE,
    "phase diagrams computed with layers of η = 0.1",
    "A stack of layers with η = 0.1 has its phase boundary on the curve Γ of SA.",
    where="phase diagrams and the released script behind them",
    models=("sa", "post-ln"),
    quick=Stack(),
    full=Stack(betas=(0.5, 1.0, 2.0, 4.0, 6.0, 9.0)),
    within={"boundary": relative(0.01, "one percent, about the width of a line in a phase diagram")},
    simulate=simulate_boundary,
    predict=predict_boundary,
    expected="refuted",
    corrected_by="clustering/CL-46",
    axes=_STACK_AXES,
    note="The layers are late by 5 to 10 percent.",
)
