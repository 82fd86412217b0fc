"""Every harmonic of a nearly uniform law grows on its own, at a rate in Bessel functions (arXiv:2410.23228)."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import relative
from pathlines.domain.circle_law import density_moments
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import METASTABLE_EMERGENCE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import Run, flow
from pathlines.limit.metastability.growth import growth_rates
from pathlines.model.metastability.circle_density import CircleDensity
from pathlines.model.metastability.zonal import ZonalMeasure
from pathlines.model.metastability.zonal_start import zonal_start
from pathlines.observable.patterns import fourier_moments, zonal_moments

KINDS = ("sa", "usa")
STEPS = 64
"""Of RK4: a relative error (λ/64)⁴/120 < 1e-9 for λ < 1, whatever the size of the bump (no tolerance to choose)."""


FEWEST = 1e-7
"""e-folds below which rounding, 1e-16 of a logarithm, would show in a rate to 1e-8: such a rate counts as zero."""


def _resolved(folds: np.ndarray, until: float) -> np.ndarray:
    return np.where(np.abs(folds) < FEWEST, 0.0, folds) / until


class Modes(Setting):
    """Small modes on the circle."""

    betas: of.Betas = (5.0, 9.0)
    modes: Annotated[of.Count, means("modes that are put in")] = 8
    size: Annotated[of.Positive, means("their size at the start")] = 1e-11
    until: of.Until = 1.0
    degree: of.FourierModes = 48


def _circle(s: Modes, beta: float, kind: str) -> tuple[np.ndarray, Run]:
    """ln(m_k(T)/m_k(0))/T of the modes 1..``modes``, all started at the same small size."""
    look = fourier_moments.at(modes=s.modes)
    model = CircleDensity(beta, s.degree, unnormalised=kind == "usa", shift=beta)
    options: Any = {"times": [s.until], "record": look, "method": "rk4", "step": s.until / STEPS}
    bumps = [density_moments(dict.fromkeys(range(1, s.modes + 1), size), s.modes) for size in (s.size, -s.size)]
    runs = [flow(model, bump, **options) for bump in bumps]
    folds = np.log(_odd_growth([run[look.name].values[-1] / s.size for run in runs]))
    return _resolved(folds, s.until), runs[0]


def _odd_growth(of_both: list[np.ndarray]) -> np.ndarray:
    """Growth from a bump and from its negative, averaged: terms of second order in its size cancel."""
    return np.mean(of_both, axis=0)


def simulate_circle(s: Modes) -> Evidence:
    """Small bumps in all modes at once; they do not see each other."""
    found = {(b, kind): _circle(s, b, kind) for b in s.betas for kind in KINDS}
    degrees = np.arange(1, s.modes + 1)
    return Evidence(
        {kind: np.array([found[b, kind][0] for b in s.betas]) for kind in KINDS},
        curves=tuple(
            Curve(f"{kind.upper()}, β = {b:g}", degrees, rates, panel=kind.upper())
            for (b, kind), (rates, _) in found.items()
        ),
        runs=tuple(run for _, run in found.values()),
    )


def predict_circle(s: Modes) -> Evidence:
    """k² I_k(β)/(β I_0(β)) and k² e^{-β} I_k(β)/β."""
    rates = {
        kind: np.array([_resolved(growth_rates(b, 2, s.modes, kind) * s.until, s.until) for b in s.betas])
        for kind in KINDS
    }
    degrees = np.arange(1, s.modes + 1)
    return Evidence(
        rates,
        curves=tuple(
            Curve(f"λₖ, β = {b:g}", degrees, row, panel=kind.upper())
            for kind in KINDS
            for b, row in zip(s.betas, rates[kind], strict=True)
        ),
    )


claim(
    "metastability/G1",
    METASTABLE_EMERGENCE,
    "growth of modes on the circle",
    "Near the uniform law on the circle the mode mₖ grows like e^{λₖt} with λₖ = k²Iₖ(β)/(βI₀(β)) for SA and "
    "k²e^{−β}Iₖ(β)/β for USA with the scaled kernel: uniform is unstable in every mode, for every β.",
    where="linear phase on the circle: growth rates; constants derived",
    models=("circle-density",),
    quick=Modes(),
    full=Modes(betas=(5.0, 9.0, 25.0), modes=12),
    within={
        kind: relative(1e-8, "64 steps of RK4 give 1e-10; bumps of both signs cancel the coupling of modes")
        for kind in KINDS
    },
    simulate=simulate_circle,
    predict=predict_circle,
    axes=Axes("mode k", "growth rate λₖ"),
)


Cells = Annotated[
    tuple[tuple[of.Count, of.Positive, of.Count], ...], means("dimensions, temperatures, degrees", "d, β, k")
]


class Harmonics(Setting):
    """Small harmonics on spheres."""

    cells: Cells = ((3, 9.0, 4), (8, 16.0, 3))
    size: Annotated[of.Positive, means("size of the harmonic at the start")] = 1e-7
    until: of.Until = 1.0
    nodes: Annotated[of.Count, means("nodes of the zonal measure")] = 100


def _zonal(s: Harmonics, d: int, beta: float, k: int) -> tuple[np.ndarray, np.ndarray, Run]:
    """Times, m_k/m_k(0), and the run of one bump of degree k."""
    look = zonal_moments.at(modes=k)
    times = np.linspace(0, s.until, 9)
    model = ZonalMeasure(d, beta, s.nodes)
    options: Any = {"times": times, "record": look, "method": "rk4", "step": s.until / STEPS}
    runs = [flow(model, zonal_start({k: size}, s.nodes, d), **options) for size in (s.size, -s.size)]
    sizes = [run[look.name].values[:, -1] for run in runs]
    return times, _odd_growth([m / m[0] for m in sizes]), runs[0]


def simulate_zonal(s: Harmonics) -> Evidence:
    """Rings that carry a small bump of one degree."""
    found = [_zonal(s, int(d), beta, int(k)) for d, beta, k in s.cells]
    return Evidence(
        {"rate": [np.log(growth[-1]) / s.until for _, growth, _ in found]},
        curves=tuple(
            Curve(f"d = {d:g}, β = {b:g}, k = {k:g}", t, growth)
            for (d, b, k), (t, growth, _) in zip(s.cells, found, strict=True)
        ),
        runs=tuple(run for *_, run in found),
    )


def predict_zonal(s: Harmonics) -> Evidence:
    """k(k+d-2)/β · I_{k+a}(β)/I_a(β), a = d/2 - 1."""
    rates = [growth_rates(b, int(d), int(k))[-1] for d, b, k in s.cells]
    t = np.linspace(0, s.until, 40)
    curves = tuple(
        Curve(f"e^{{λt}}, d = {d:g}", t, np.exp(rate * t)) for (d, _, _), rate in zip(s.cells, rates, strict=True)
    )
    return Evidence({"rate": rates}, curves=curves)


claim(
    "metastability/G2",
    METASTABLE_EMERGENCE,
    "growth of harmonics in any dimension",
    "Near the uniform law on the sphere of ℝᵈ every harmonic of degree k grows under SA like e^{λₖt}, "
    "λₖ = k(k+d−2)/β · I_{k+d/2−1}(β)/I_{d/2−1}(β).",
    where="linear phase: growth rates of harmonics; constants derived",
    models=("zonal",),
    quick=Harmonics(),
    full=Harmonics(cells=((3, 9.0, 4), (5, 9.0, 3), (8, 16.0, 3), (16, 16.0, 2)), nodes=200),
    within={
        "rate": relative(
            1e-8, "rounding over the size 1e-7 of the bump, over λ < 1; bumps of both signs cancel second order"
        )
    },
    simulate=simulate_zonal,
    predict=predict_zonal,
    axes=Axes("depth-time t", "mₖ(t)/mₖ(0)"),
)
