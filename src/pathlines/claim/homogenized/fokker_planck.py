"""The stochastic Fokker-Planck equation on the circle: its generator and noise, and its two discretisations."""

from __future__ import annotations

import math
from typing import Annotated, Any

import jax
import msgspec
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.homogenized.mean_field_chaos import OnTheCircle, circle_chain
from pathlines.claim.slopes import several
from pathlines.claim.tolerance import absolute, relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import means
from pathlines.integrate.coupling import coupled_chains
from pathlines.integrate.observe import Observable
from pathlines.limit.homogenized.fokker_planck import mode_covariances, mode_rates
from pathlines.limit.homogenized.mean_field import von_mises_nodes as quantiles
from pathlines.model.base import Snapshot
from pathlines.model.homogenized.circle_measure import CircleMeasure
from pathlines.model.homogenized.transported_measure import TransportedMeasure, von_mises_distribution, von_mises_nodes

MODES = 3
COMPARED = 4
FEWEST = 8
GRID_NOISE = 1e-5
"""Second moments that the grid makes where symmetry forbids them."""
RESOLVED = 1e-4
"""Difference of modes on the finest grid above which it is not in the range of its order."""
LONGEST_LAYER = 2e-3
PLAIN = ([0, 0, 1], [0, 1, 1])
"""Entries of E[dM_k dM_l] that are compared; the others are smaller than 0.002."""


def _looked_at(snapshot: Snapshot, largest: int) -> Any:
    return snapshot.model.modes(snapshot.state, largest)  # type: ignore[attr-defined]


def modes_up_to(largest: int) -> Observable:
    """(∫cos kθ dμ, ∫sin kθ dμ) of a measure on a grid."""
    return Observable(
        "modes", "Fourier modes", "M_k", _looked_at, ("mode", "component"), parameters=(("largest", largest),)
    )


def _grid(s: OnTheCircle, cells: int, stretch: float = 1.0) -> tuple[CircleMeasure, Any]:
    """The Eulerian form, with steps longer by ``stretch``, and the masses of its start."""
    chain = circle_chain(msgspec.structs.replace(s, v=s.v * stretch**2))
    model = CircleMeasure(chain, cells)
    return model, model.masses_of(lambda angle: von_mises_distribution(angle, s.concentration))


class Generator(OnTheCircle):
    """One layer of a density on a grid."""

    v: of.LayerTime = 0.0005
    runs: of.Runs = 20000
    cells: Annotated[of.Count, means("cells of the grid", "N")] = 48


def simulate_noise(s: Generator) -> Evidence:
    """dM_k of one layer: second moments over v, and the mean from steps η and 2η with the same heads.

    dM = ηL + η²Q + O(η³) with L linear and Q quadratic in V, so (dM(2η) - 2dM(η))/(2v) is Q without the noise of L.
    """
    moved = []
    for stretch in (1.0, 2.0):
        model, start = _grid(s, s.cells, stretch)
        run = model_run(model, start, s)
        found = run["modes"].values[..., 0] + 1j * run["modes"].values[..., 1]
        moved.append(found[:, 1] - found[:, 0])
    first, second = moved
    rates, off = mean_and_error(((second - 2 * first) / (2 * s.v)).real)
    products = (first[:, :, None] * first.conj()[:, None, :]).real / s.v
    with_conjugate = products[:, *np.triu_indices(MODES)]
    plain = (first[:, :, None] * first[:, None, :]).real[:, *PLAIN] / s.v
    noise, error = mean_and_error(np.concatenate([with_conjugate, plain], axis=1))
    k = np.arange(1, MODES + 1)
    curves = (
        Curve("mean", k, rates, off, panel="E dM_k/dτ"),
        Curve("variance", k, products.mean(axis=0).diagonal(), panel="E|dM_k|²/dτ"),
    )
    return Evidence(
        {"generator": rates, "noise": noise}, {"generator": off, "noise": error}, curves, undecided=_coarse(s)
    )


def model_run(model: CircleMeasure, start: Any, s: Generator) -> Any:
    """One layer of every run."""
    return coupled_chains(
        [model], [start], depth=1, key=jax.random.key(s.seed), runs=s.runs, record=modes_up_to(MODES)
    )[0]


def _coarse(s: Generator) -> dict[str, str]:
    """Grids and steps whose own error is beyond the tolerance."""
    cells = math.ceil(24 * math.sqrt(1 + s.concentration))
    if s.cells < cells:
        return dict.fromkeys(("generator", "noise"), f"the grid does not resolve the start: take cells ≥ {cells}")
    if s.v > LONGEST_LAYER:
        text = f"a layer is no small step: take v ≤ {LONGEST_LAYER:g}"
        return dict.fromkeys(("generator", "noise"), text)
    return {}


def predict_noise(s: Generator) -> Evidence:
    """-(k²/4) s_μ(1) M_k and the double integrals of s_μ(cos Δ) cos Δ, with s_μ by Hermite coefficients."""
    angles = quantiles(256, s.concentration)
    rates = mode_rates(angles, s.b, MODES).real
    with_conjugate, plain = (c.real for c in mode_covariances(angles, s.b, MODES))
    k = np.arange(1, MODES + 1)
    curves = (
        Curve("−k² s_μ(1) M_k/4", k, rates, panel="E dM_k/dτ"),
        Curve("∬", k, with_conjugate.diagonal(), panel="E|dM_k|²/dτ"),
    )
    noise = np.concatenate([with_conjugate[np.triu_indices(MODES)], plain[PLAIN]])
    floor = {"noise": GRID_NOISE}
    return Evidence({"generator": rates, "noise": noise}, floor, curves, source="Hermite expansion of s_μ")


claim(
    "homogenized/C27c",
    HOMOGENIZED,
    "generator and noise of the stochastic Fokker-Planck equation (derived)",
    "On the circle (Gaussian weights, p = ∞) the modes M_k = ⟨μ,e^{ikθ}⟩ of the transported density have E dM_k = "
    "−(k²/4)s_μ(1)M_k dτ and covariances (kl/2)∬ s_μ(cos Δ) cos Δ e^{ikθ−ilθ′} μμ dτ: the noise too, not only the "
    "transport.",
    where="mean field with common noise: stochastic Fokker–Planck equation; modes derived",
    models=("circle-measure",),
    quick=Generator(),
    full=Generator(runs=200_000, cells=64),
    within={
        "generator": absolute(3e-4, "the grid's own error, 0.3 % of the largest rate", errors=4.5),
        "noise": relative(0.003, "O(v) and the grid's own error", errors=4.5),
    },
    simulate=simulate_noise,
    predict=predict_noise,
    axes=Axes("mode k", ""),
    note="One layer from one density. A law with a mean (a drift of the density) and d > 2 are not compared.",
)


class TwoForms(OnTheCircle):
    """A density on grids and at quantile nodes."""

    v: of.LayerTime = 0.0125
    runs: of.Runs = 96
    cells: Annotated[tuple[of.Count, ...], means("cells of the grids", "N")] = (64, 128, 256)
    nodes: Annotated[of.Count, means("quantile nodes")] = 512
    tau: of.Tau = 0.5


def simulate_forms(s: TwoForms) -> Evidence:
    """Modes 1 to 4 of the density on grids of each size and of quantile nodes, moved by the same heads."""
    several("cells", s.cells)
    key, depth = jax.random.key(s.seed), round(s.tau / s.v)
    grids = [_grid(s, cells) for cells in s.cells]
    options: dict[str, Any] = {"depth": depth, "every": depth, "key": key, "runs": s.runs}
    nodes = coupled_chains(
        [TransportedMeasure(circle_chain(s))], [von_mises_nodes(s.nodes, s.concentration)], **options
    )
    x = nodes[0]["tokens"].values[:, -1]
    k = np.arange(1, COMPARED + 1)
    waves = np.exp(1j * np.arctan2(x[..., 1], x[..., 0])[..., None] * k).mean(axis=1)
    runs = coupled_chains(*zip(*grids, strict=True), **options, record=modes_up_to(COMPARED))
    found = [r["modes"].values[:, -1, :, 0] + 1j * r["modes"].values[:, -1, :, 1] for r in runs]
    gaps = np.array([np.abs(f - waves).max(axis=1) for f in found])
    smooth = runs[-1].data["folds"].values == 0
    orders = -np.log(gaps[-1] / gaps[-2])[smooth] / math.log(s.cells[-1] / s.cells[-2])
    advice = {} if smooth.sum() >= FEWEST else {"order": f"fewer than {FEWEST} runs do not fold: take a smaller v"}
    if not advice and np.median(gaps[-1][smooth]) > RESOLVED:
        advice = {"order": "the density is narrower than some cells: take more cells or a smaller tau"}
    curves = (Curve("typical run without folds", s.cells, np.median(gaps[:, smooth], axis=1)),)
    return Evidence({"order": np.median(orders)}, curves=curves, runs=tuple(runs), undecided=advice)


def predict_forms(s: TwoForms) -> Evidence:
    """Fourth order."""
    n = np.asarray(s.cells, float)
    return Evidence({"order": 4.0}, curves=(Curve("∝ N⁻⁴", n, 5e-4 * (n / n[0]) ** -4.0),), source="order of the grid")


claim(
    "homogenized/C27d",
    HOMOGENIZED,
    "Eulerian and Lagrangian forms of the mean field (derived)",
    "A density on a grid of N cells and quantile nodes, moved by the same heads, have the same Fourier modes up to "
    "O(N⁻⁴) as long as no layer folds the circle.",
    where="derived; numerical methods for the stochastic Fokker–Planck equation",
    models=("circle-measure", "transported-measure"),
    quick=TwoForms(),
    full=TwoForms(runs=128, cells=(128, 256, 512), nodes=1024),
    within={"order": absolute(0.3, "the next order, 0.07 at quick size, and five standard errors of a median of 96")},
    simulate=simulate_forms,
    predict=predict_forms,
    axes=Axes("cells N", "largest difference of modes 1…4", x_scale="log", y_scale="log"),
    blind={"order": "orders of single runs scatter by 0.4; fourth order is told from its neighbours, 25 % away"},
    note="Unknown: d > 2, laws with a mean, and the supremum of the error beyond τ = 2.",
)
