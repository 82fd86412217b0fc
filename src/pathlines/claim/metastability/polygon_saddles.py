"""Regular polygons of clusters: saddles, and how long the first pattern lives.

Rates derived for Dynamic metastability in the self-attention model (arXiv:2410.06833) and the patterns of Emergence of
meta-stable clustering in mean-field transformer models (arXiv:2410.23228).
"""

from __future__ import annotations

from typing import Annotated

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.metastability.slow_phase import angles_from, attention_model, circle_tokens, padded_polygon
from pathlines.claim.tolerance import relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers import METASTABILITY, METASTABLE_EMERGENCE
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.limit.metastability.growth import law_of_dominant_degree
from pathlines.limit.metastability.slow_laws import lifetime_ratio, lifetime_ratio_limit, polygon_rates
from pathlines.model import SelfAttention

KINDS = ("sa", "usa")

# --- M2: growth rates of a perturbed polygon


FOLDS = float(np.log(10.0))
"""e-folds a perturbation is followed: linear theory then errs by β·amplitude²."""
FEWEST = 0.1
"""e-folds below which the solver tolerance would show in a rate."""


class Polygons(Setting):
    """Regular polygons of clusters, perturbed."""

    corners: Annotated[tuple[of.Count, ...], means("corners", "k")] = (4, 7)
    betas: of.Betas = (9.0, 25.0)
    modes: Annotated[tuple[of.Count, ...], means("modes of the perturbations, one for each polygon", "l")] = (2, 3)
    amplitude: Annotated[of.Positive, means("size of the perturbations", unit="radians")] = 1e-5
    until: of.Until = 300.0
    kinds: of.Kinds = ("sa", "usa")


def _until(s: Polygons, k: int, beta: float, mode: int, kind: str) -> float:
    """The depth asked for, or that of ``FOLDS`` e-folds."""
    return float(min(s.until, FOLDS / max(abs(polygon_rates(k, beta, kind)[mode]), 1e-300)))


def simulate_saddle(s: Polygons) -> Evidence:
    """k tokens displaced by ε cos(2πlr/k), followed by the particle solver."""
    for k, mode in zip(s.corners, s.modes, strict=True):
        require(1 <= mode < k, "modes", f"be from 1 to {k - 1} for {k} corners", mode)
    rates, curves, runs = [], [], []
    for kind in s.kinds:
        for k, beta, mode in zip(s.corners, s.betas, s.modes, strict=True):
            corners, multiplicities = padded_polygon(k, max(s.corners))
            shape = np.cos(mode * corners)
            until = _until(s, k, beta, mode, kind)
            times = np.linspace(0, until, 31)
            run = flow(
                attention_model(kind, beta, multiplicities),
                circle_tokens(corners + s.amplitude * shape),
                times=times,
                record="tokens",
                method="dop853",
                rtol=1e-12,
                form="tokens",
            )
            # every corner counts once, or the projection would see other modes of second order
            wave = multiplicities * shape
            size = angles_from(run["tokens"].values, corners) @ wave / (wave @ shape)
            rates.append(np.log(size[-1] / size[0]) / until)
            curves.append(Curve(f"k = {k}, β = {beta:g}, l = {mode}", times, size / size[0], panel=kind.upper()))
            runs.append(run)
    return Evidence({"rate": rates}, curves=tuple(curves), runs=tuple(runs))


def predict_saddle(s: Polygons) -> Evidence:
    """The linearised cluster equations; undecided where a perturbation hardly moves in the depth asked for."""
    rows = [(k, b, mode, kind) for kind in s.kinds for k, b, mode in zip(s.corners, s.betas, s.modes, strict=True)]
    rates = [polygon_rates(k, beta, kind)[mode] for k, beta, mode, kind in rows]
    ends = [_until(s, *row) for row in rows]
    curves = tuple(
        Curve("e^{σt}", np.linspace(0, end, 60), np.exp(rate * np.linspace(0, end, 60)), panel=row[-1].upper())
        for rate, end, row in zip(rates, ends, rows, strict=True)
    )
    least = FEWEST / max(min(np.abs(rates)), 1e-300)
    short = {"rate": f"until={least:.3g} lets every mode grow by {FEWEST} e-folds"} if s.until < least else {}
    return Evidence({"rate": rates}, curves=curves, undecided=short)


claim(
    "metastability/M2",
    METASTABILITY,
    "regular polygons of clusters are saddles (derived)",
    "A regular k-gon of equal clusters is unstable: its perturbation of mode l grows at "
    "σ_l = −(1/D) Σᵣ h′(2πr/k)(1−cos(2πlr/k)), h′(θ) = e^{β(cos θ−1)}(cos θ−β sin²θ), D = k (USA), "
    "Σᵣ e^{β(cos(2πr/k)−1)} (SA).",
    where="derived; no statement in the paper",
    models=("sa", "usa"),
    quick=Polygons(),
    full=Polygons(corners=(4, 3, 7, 5, 5), betas=(9.0, 5.0, 25.0, 9.0, 9.0), modes=(2, 1, 3, 1, 2)),
    within={"rate": relative(1e-6, "solver tolerance 1e-12 over the amplitude 1e-5, over σT ≥ 0.1")},
    simulate=simulate_saddle,
    predict=predict_saddle,
    axes=Axes("depth-time t", "amplitude over its start", y_scale="log"),
)  # fmt: skip


# --- M3: the first pattern lives a fixed number of formation times


@eqx.filter_jit
def _growth(model: SelfAttention, angles: Array, waves: Array) -> Array:
    """<w, Jw>/<w, w> of each wave w of angles, J the Jacobian of the particle drift."""

    def drift(angles: Array) -> Array:
        x = jnp.stack([jnp.cos(angles), jnp.sin(angles)], axis=-1)
        velocity = model.drift(x, jnp.zeros(()))
        return velocity[:, 1] * x[:, 0] - velocity[:, 0] * x[:, 1]

    grown = jax.vmap(lambda wave: jax.jvp(drift, (angles,), (wave,))[1])(waves)
    return jnp.sum(grown * waves, axis=1) / jnp.maximum(jnp.sum(waves**2, axis=1), 1e-300)


class FirstPattern(Setting):
    """The first pattern over β."""

    betas: of.Betas = (25.0, 100.0, 400.0, 1600.0)
    tokens: Annotated[of.Count, means("tokens that resolve the pattern, at least")] = 512


def _measured_ratios(s: FirstPattern, kind: str) -> list[float]:
    """λ of an even lattice of tokens over the largest rate of the polygon, at every β."""
    degrees = law_of_dominant_degree(s.betas, 2)
    # modes that the lattice takes for k have g ~ e^{-(count-k)²/2β}
    count = max(s.tokens, int(degrees.max() + 9 * np.sqrt(max(s.betas))) + 1)
    lattice, ratios = 2 * np.pi * np.arange(count) / count, []
    for k, beta in zip(degrees.tolist(), s.betas, strict=True):
        formation = _growth(attention_model(kind, beta), jnp.asarray(lattice), jnp.sin(k * lattice)[None])
        angles, multiplicities = padded_polygon(k, int(degrees.max()))
        model = attention_model(kind, beta, multiplicities)
        waves = np.cos(np.outer(np.arange(degrees.max() // 2 + 1) % k, angles))
        ratios.append(float(formation[0] / _growth(model, jnp.asarray(angles), jnp.asarray(waves)).max()))
    return ratios


def simulate_life(s: FirstPattern) -> Evidence:
    """Growth of the pattern and decay of the polygon, both linearised by automatic differentiation."""
    ratios = [_measured_ratios(s, kind) for kind in KINDS]
    curves = tuple(Curve(f"{k.upper()} particles", s.betas, r) for k, r in zip(KINDS, ratios, strict=True))
    flat = np.ravel(ratios)
    return Evidence({"ratio": flat, "log_ratio": np.log(flat)}, curves=curves)


def predict_life(s: FirstPattern) -> Evidence:
    """Bessel functions over the polygon sum, and the limit β → ∞."""
    ratios = [lifetime_ratio(beta, kind) for kind in KINDS for beta in s.betas]
    betas = np.geomspace(min(s.betas), max(s.betas), 120)
    lines = [Curve(f"λ/σ, {k.upper()}", betas, [lifetime_ratio(b, k) for b in betas]) for k in KINDS]
    ends = [Curve(f"β → ∞, {k.upper()}", betas[[0, -1]], [lifetime_ratio_limit(k)] * 2) for k in KINDS]
    return Evidence({"ratio": ratios, "log_ratio": np.log(ratios)}, curves=(*lines, *ends))


def predict_exponential_life(s: FirstPattern) -> Evidence:
    """ln(λ/σ) proportional to β, from the first β on."""
    betas = np.asarray(s.betas, float)
    first = {kind: np.log(lifetime_ratio(betas[0], kind)) for kind in KINDS}
    logs = np.concatenate([first[kind] * betas / betas[0] for kind in KINDS])
    shown = np.geomspace(betas[0], min(betas[-1], 4 * betas[0]), 40)
    lines = tuple(Curve(f"e^(cβ), {k.upper()}", shown, np.exp(first[k] * shown / betas[0])) for k in KINDS)
    return Evidence({"log_ratio": logs}, curves=lines, source="exponential law through the first β")


_LIFE_AXES = Axes("inverse temperature β", "growth rate over decay rate", x_scale="log", y_scale="log")

claim(
    "metastability/M3",
    METASTABLE_EMERGENCE,
    "life of the first pattern (derived)",
    "The pattern of k* ≃ √(2β) clusters that forms first decays only a fixed factor more slowly than it forms: "
    "λ_{k*}/σ_max → (2/e)/(4e^{−π²}(2π²−1)) = 189.8 under SA and 107.1 under USA as β → ∞.",
    where="derived; metastable phase of k* clusters",
    models=("sa", "usa"),
    quick=FirstPattern(),
    full=FirstPattern(betas=(9.0, 25.0, 49.0, 100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0), tokens=1024),
    within={"ratio": relative(1e-9, "rounding of sums of 512 terms, over σ ~ 4e-3, some times")},
    simulate=simulate_life,
    predict=predict_life,
    axes=_LIFE_AXES,
    note="Exponentially long lives begin after the first halvings, when the number of clusters no longer grows with β.",
)

claim(
    "metastability/ER-03",
    METASTABLE_EMERGENCE,
    "life of the first pattern, read as exponential in β",
    "The metastable state of k* clusters outlives its formation by a factor exponential in β.",
    where="derived; metastable phase of k* clusters, read together with arXiv:2410.06833",
    models=("sa", "usa"),
    quick=FirstPattern(),
    within={"log_ratio": relative(0.1, "an exponential law would change the logarithm in proportion to β")},
    simulate=simulate_life,
    predict=predict_exponential_life,
    expected="refuted",
    corrected_by="metastability/M3",
    axes=_LIFE_AXES,
    note="True of a fixed number of clusters; k* itself grows like √(2β), which keeps neighbours at βw → π².",
)
