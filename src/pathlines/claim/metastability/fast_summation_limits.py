"""What sums by harmonics cost, and below which force they are noise (derived).

Settings are those of Emergence of meta-stable clustering in mean-field transformer models, arXiv:2410.23228.
"""

from __future__ import annotations

import time
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

from pathlines.attention import SoftmaxAttention
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.fitting import Mistake
from pathlines.claim.metastability.slow_phase import attention_model
from pathlines.claim.tolerance import at_most, exactly, relative
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers import METASTABLE_EMERGENCE
from pathlines.foundation.setting import Setting, means
from pathlines.kernels import attend
from pathlines.kernels.spectral import degree, noise_floor, spectral_attend
from pathlines.kernels.spectral.attend import portable_attention, start_of

# --- F3: linear cost


class LinearCost(Setting):
    """Random tokens in growing numbers."""

    sizes: of.Sizes = (100_000, 1_000_000)
    beta: of.Beta = 9.0
    tolerance: of.KernelTolerance = 1e-12
    rounds: Annotated[of.Count, means("timings, of which the shortest counts")] = 6
    seed: of.Seed = 2


def _seconds(s: LinearCost, n: int) -> float:
    """Of the quickest of ``rounds`` drifts of n tokens, compiled before."""
    x = Sphere(2).uniform(jax.random.key(s.seed), n)
    masses = jnp.full(n, 1 / n)
    drift = eqx.filter_jit(lambda x: spectral_attend(SoftmaxAttention(), x, x, s.beta, masses, s.tolerance)[0])
    jax.block_until_ready(drift(x))
    times = []
    for _ in range(s.rounds):
        began = time.perf_counter()
        jax.block_until_ready(drift(x))
        times.append(time.perf_counter() - began)
    return min(times)


def _operations(s: LinearCost, n: int) -> int:
    """Numbers written by the portable formula of one SA drift of n tokens, from its program: no clock, no machine."""
    beta, modes = jnp.asarray(s.beta), degree(s.beta, 2, s.tolerance)
    tokens, masses = (jax.ShapeDtypeStruct(shape, beta.dtype) for shape in ((n, 2), (n,)))
    sums = lambda x, m: portable_attention(SoftmaxAttention(), x, x, m, beta, modes, start_of(s.beta, 2), False)  # noqa: E731
    return _written(jax.make_jaxpr(sums)(tokens, masses).jaxpr)


def _written(program: Any) -> int:
    """Σ of the sizes of all results, loops as often as they run."""
    total = 0
    for step in program.eqns:
        inner = [getattr(v, "jaxpr", v) for v in step.params.values()]
        inner = [v for v in inner if hasattr(v, "eqns")]
        if inner:
            total += step.params.get("length", 1) * sum(_written(v) for v in inner)
        else:
            total += sum(int(np.prod(v.aval.shape)) for v in step.outvars)
    return total


def simulate_cost(s: LinearCost) -> Evidence:
    """How the operations of a drift grow from size to size, over the growth of n; and the time of the largest."""
    sizes = np.asarray(s.sizes)
    require(bool(np.all(np.diff(sizes) > 0)), "sizes", "increase", s.sizes)
    work = np.array([_operations(s, int(n)) for n in sizes], float)
    growth = (work[1:] / work[:-1]) / (sizes[1:] / sizes[:-1])
    values = {"growth": growth, "seconds": _seconds(s, int(sizes[-1])), "modes": degree(s.beta, 2, s.tolerance)}
    return Evidence(values, curves=(Curve("one SA drift", s.sizes, work),))


def predict_cost(s: LinearCost) -> Evidence:
    """Linear; the number of modes from the tail of the Skellam law, which does not know n."""
    k = np.arange(60 + int(12 * np.sqrt(s.beta)))
    tails = 2 * np.append(np.cumsum(special.ive(k, s.beta)[:0:-1])[::-1], 0.0)
    modes = int(np.argmax(tails <= s.tolerance))
    seconds = SECONDS * max(1.0, s.sizes[-1] * modes / (1e6 * MODES))
    return Evidence({"growth": np.ones(len(s.sizes) - 1), "seconds": seconds, "modes": modes})


SECONDS, MODES = 5.0, 24
"""For a million tokens, and the modes of β = 9 to 1e-12 that they were stated for."""

claim(
    "metastability/F3",
    METASTABLE_EMERGENCE,
    "cost is linear in the number of tokens",
    "The number of Fourier modes depends on β and the tolerance only, and the operations of a drift grow like n: "
    "a million tokens take less than five seconds.",
    where="derived; numerical methods, no statement in the paper",
    models=("sa",),
    quick=LinearCost(),
    full=LinearCost(sizes=(10000, 100_000, 1_000_000)),
    within={
        "growth": relative(0.02, "the last chunk of tokens is filled up"),
        "seconds": at_most("the stated time"),
        "modes": exactly("the first mode whose tail is below the tolerance"),
    },
    simulate=simulate_cost,
    predict=predict_cost,
    axes=Axes("number of tokens n", "numbers written", "log", "log"),
    note="Operations are counted, since the time of ten times the tokens depends on caches and on who else computes; "
    "times are measured in the benchmarks.",
    blind={"seconds": "a time on this machine, a hundred times below the stated one; `growth` counts the operations"},
)


# --- F5: noise floor


class NoiseFloor(Setting):
    """Two clusters far apart."""

    beta: of.Beta = 81.0
    gap: of.ClusterAngle = 2.0


def simulate_floor(s: NoiseFloor) -> Evidence:
    """The pull of one cluster of mass 1/2 on the other: directly, by harmonics, and whether the floor says so."""
    x, y = (jnp.asarray([[np.cos(a), np.sin(a)]]) for a in (0.0, s.gap))
    half, kind = jnp.asarray([0.5]), attention_model("usa", s.beta).attention
    direct, _ = attend(kind, s.beta * x, y, y, half)
    fast, _ = spectral_attend(kind, x, y, s.beta, half, 4 * noise_floor(s.beta, 2, "float64"))
    force, noisy = (float(Sphere(2).tangent(x, out)[0, 1]) for out in (direct, fast))
    floor = noise_floor(s.beta, 2, "float64")
    values = {"force": force, "guard": int(force < floor), "off": abs(noisy - force)}
    curve = Curve("by harmonics", [s.gap], [abs(noisy)])
    return Evidence(values, curves=(curve, Curve("directly", [s.gap], [force])))


def predict_floor(s: NoiseFloor) -> Evidence:
    """½ e^{β(cos φ - 1)} sin φ; the noise of sums by harmonics is ε(1 + √β) times a few."""
    gaps = np.linspace(0.05, 3.1, 200)
    pull = lambda gap: 0.5 * np.exp(-2 * s.beta * np.sin(gap / 2) ** 2) * np.sin(gap)  # noqa: E731
    floor = np.finfo(float).eps * (1 + np.sqrt(s.beta))
    values = {"force": pull(s.gap), "guard": int(pull(s.gap) < floor), "off": 4 * floor}
    curves = (Curve("½e^{β(cos φ−1)} sin φ", gaps, pull(gaps)), Curve("ε(1 + √β)", gaps, np.full(200, floor)))
    return Evidence(values, curves=curves)


claim(
    "metastability/F5",
    METASTABLE_EMERGENCE,
    "sums by harmonics have a noise floor",
    "Two clusters at β = 81 and angle 2 pull each other with force 6.93·10⁻⁵¹; harmonics return noise of either sign, "
    "bounded by the floor ε(1 + √β) which the choice of summation knows. The slow phase needs other means.",
    where="derived; numerical methods, no statement in the paper",
    models=("usa",),
    quick=NoiseFloor(),
    within={
        "force": relative(1e-12, "roundings of one exponential whose exponent is about −100"),
        "guard": exactly("the force is below the floor or not"),
        "off": at_most("the stated tolerance of the kernel, four floors"),
    },
    simulate=simulate_floor,
    predict=predict_floor,
    axes=Axes("angle φ between clusters", "force", y_scale="log"),
    mistakes=(
        Mistake(
            "spectral_attend",
            "sums cut at {:g} times the tolerance",
            lambda right, size: lambda *a: right(*a[:-1], size * a[-1]),
            (10, 100, 1e3, 1e6),
        ),
    ),
)
