"""When two antipodal groups are stable (Spectral Selection in Symmetric Self-Attention Dynamics, arXiv:2604.26085)."""

from __future__ import annotations

from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, TwoSlopeNorm
from matplotlib.figure import Figure

from pathlines.draw.gallery import picture
from pathlines.draw.layout import colour_bar, legend_below
from pathlines.draw.style import COLOURS, THEORY, new_figure, theory_line
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import SPECTRAL_SELECTION
from pathlines.foundation.setting import Setting, means
from pathlines.limit.clustering.symmetric import polarisation_factor, pure_state_growth
from pathlines.model import SelfAttention
from pathlines.weights import FixedWeights

BALANCE = LinearSegmentedColormap.from_list("balance", [COLOURS[0], "#9cc3e0", "#fbfbfb", "#eeb4bb", COLOURS[1]])
"""Diverging: blue decays, red grows."""


@eqx.filter_jit
def _largest_rates(model: SelfAttention, state: Array, betas: Array, others: Array, own: float) -> Array:
    """Largest real part of the Jacobian of the drift at ``state``, tangent directions, for each (β, λ_k)."""

    def block(beta: Array, other: Array) -> Array:
        value = jnp.diag(jnp.stack([jnp.asarray(own), other]))[None]
        where = lambda m: (m.beta, m.weights.value, m.weights.query)  # noqa: E731
        changed = eqx.tree_at(where, model, (beta, value, value))
        return jax.jacfwd(lambda x: changed.drift(x, jnp.zeros(())))(state)[:, 1, :, 1]

    blocks = jax.vmap(block)(betas, others)
    return jnp.max(jnp.linalg.eigvals(blocks).real, axis=-1)


def _probes(own: float, plus: int, minus: int, betas: np.ndarray, ratios: np.ndarray) -> np.ndarray:
    """Stable or not, by automatic differentiation of the simulated field itself; shape (ratios, betas)."""
    signs = np.concatenate([np.ones(plus), -np.ones(minus)])
    state = jnp.stack([jnp.asarray(signs), jnp.zeros(plus + minus)], axis=1)
    model = SelfAttention(1.0, weights=FixedWeights(np.eye(2), query=np.eye(2)))
    b, q = (a.ravel() for a in np.meshgrid(betas, ratios))
    rates = _largest_rates(model, state, jnp.asarray(b), jnp.asarray(own * q), float(own))
    return (np.asarray(rates) < 0).reshape(len(ratios), len(betas))


class Poles(Setting):
    """Numbers of tokens at both poles, and the map."""

    cases: Annotated[
        tuple[tuple[float, of.Count, of.Count], ...], means("eigenvalue, tokens at e_p and at −e_p", "λ_p, n₊, n₋")
    ] = ((1.0, 3, 3), (1.0, 4, 2), (-1.0, 3, 3))
    beta_max: of.HighestBeta = 3.0
    grid: of.MapSide = 90
    probes: Annotated[of.Count, means("dots along each side of the map")] = 9


def _region(axes: Axes, own: float, plus: int, minus: int, s: Poles) -> Any:
    betas, ratios = np.linspace(0.02, s.beta_max, s.grid), np.linspace(-1.25, 1.25, s.grid)
    growth = np.array([[pure_state_growth([own, own * q], 0, b, plus, minus) for b in betas] for q in ratios])
    norm = TwoSlopeNorm(0.0, -1.0, 1.0)
    shown = axes.pcolormesh(betas, ratios, growth, cmap=BALANCE, norm=norm, shading="gouraud", rasterized=True)
    theory_line(axes, betas, polarisation_factor(own, betas, plus / minus), label=r"$\lambda_k/\lambda_p = \sigma$")
    edge = abs(np.log(plus / minus)) / (2 * abs(own))
    if edge > 0:
        axes.axvline(edge, color=THEORY, ls=":", lw=1.2, label=r"$2\beta|\lambda_p| = |\ln r|$")
    if own < 0:
        axes.axhline(1.0, color=THEORY, ls="-.", lw=1.1, label=r"$\lambda_k = \lambda_p$")
    at_beta, at_ratio = np.linspace(0, s.beta_max, s.probes + 2)[1:-1], np.linspace(-1.1, 1.1, s.probes)
    stable = _probes(own, plus, minus, at_beta, at_ratio)
    b, q = np.meshgrid(at_beta, at_ratio)
    axes.plot(b[stable], q[stable], "o", ms=4.2, mfc=COLOURS[0], mec="white", mew=0.6, label="Jacobian: stable")
    axes.plot(b[~stable], q[~stable], "o", ms=4.2, mfc="white", mec=COLOURS[1], mew=1.0, label="Jacobian: unstable")
    sign = "1" if own > 0 else "−1"
    axes.set(xlabel=r"inverse temperature $\beta$", ylabel=r"eigenvalue ratio $\lambda_k/\lambda_p$")
    axes.set(title=f"λₚ = {sign}, {plus} : {minus} tokens", xlim=(0, s.beta_max), ylim=(-1.25, 1.25))
    axes.grid(False)
    return shown


@picture(
    "clustering/bipolar-stability",
    SPECTRAL_SELECTION,
    "Linear stability of n₊ tokens at e_p and n₋ at −e_p for QᵀK = V symmetric: largest growth rate (blue decays, red "
    "grows) over β and λ_k/λ_p with the exact boundary σ. Dots are the eigenvalues of the Jacobian of the simulated "
    "vector field. Left and middle λ_p > 0, right λ_p < 0.",
    quick=Poles(),
    full=Poles(grid=360, probes=15),
)
def bipolar_stability(s: Poles) -> Figure:
    """One region a case."""
    figure, (panels,) = new_figure(1, len(s.cases), width=3.3, height=3.2)
    for axes, (own, plus, minus) in zip(panels, s.cases):
        shown = _region(axes, own, plus, minus, s)
    bar = colour_bar(figure, shown, panels.tolist(), "largest growth rate", extend="both")
    bar.set_ticks([-1, -0.5, 0, 0.5, 1])
    legend_below(figure, panels)
    return figure
