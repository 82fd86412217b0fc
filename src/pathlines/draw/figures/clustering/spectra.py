"""Which eigenvectors win (Spectral Selection in Symmetric Self-Attention Dynamics, arXiv:2604.26085)."""

from __future__ import annotations

from typing import Annotated

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.figure import Figure

from pathlines.domain import Sphere
from pathlines.draw.gallery import picture
from pathlines.draw.layout import legend_below
from pathlines.draw.style import COLOURS, band, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import SPECTRAL_SELECTION
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.side_by_side import side_by_side
from pathlines.model import SelfAttention
from pathlines.observable.sphere import mode_mass, mode_signs
from pathlines.weights import FixedWeights


class Spectra(Setting):
    """Uniform starts, and patterns of signs."""

    n: of.Tokens = 12
    beta: of.Beta = 1.0
    until: of.Until = 4.0
    frames: of.Records = 81
    runs: of.Runs = 32
    single: Annotated[of.Whole, means("single runs shown")] = 6
    rtol: of.Rtol = 1e-06
    seed: of.Seed = 0
    patterns: Annotated[of.Matrix, means("eigenvalues of QᵀK = V, one row a panel", "λ")] = (
        (3.0, 2.0, 1.0),
        (3.0, 1.0, -2.0),
        (1.0, -1.0, -3.0),
        (-0.5, -1.0, -3.0),
    )


@picture(
    "clustering/spectra",
    SPECTRAL_SELECTION,
    "Symmetric weights QᵀK = V = diag(λ): the mass n⁻¹Σ⟨xᵢ,eₖ⟩² of each eigenvector over time, mean ± 2 standard "
    "errors over uniform starts and a few single runs (thin), for each pattern of signs of λ. A leading positive "
    "eigenvalue takes everything; without one, the most negative does, in two antipodal groups.",
    quick=Spectra(),
    full=Spectra(runs=512, frames=241),
)
def spectra(s: Spectra) -> Figure:
    """One panel a sign pattern."""
    d = len(s.patterns[0])
    times = np.linspace(0, s.until, s.frames)
    keys = jax.random.split(jax.random.key(s.seed), s.runs)
    starts = jax.vmap(lambda key: Sphere(d).uniform(key, s.n))(keys)
    models = [SelfAttention(s.beta, weights=FixedWeights(np.diag(p), query=np.diag(p))) for p in s.patterns]
    batch = [m for m in models for _ in range(s.runs)]
    tokens = jnp.tile(starts, (len(models), 1, 1))
    data = side_by_side(batch, tokens, times=times, record=[mode_mass, mode_signs], rtol=s.rtol)
    mass = data["mode_mass"].values.reshape(len(models), s.runs, len(times), d)
    signs = data["mode_signs"].values[:, -1].reshape(len(models), s.runs, d)
    figure, (panels,) = new_figure(1, len(models), width=2.75, height=2.9)
    for axes, pattern, runs, positive in zip(panels, s.patterns, mass, signs):
        ascending = np.sort(pattern)
        for k in range(d):
            mode = d - 1 - k
            values = runs[..., mode]
            error = values.std(axis=0, ddof=1) / np.sqrt(s.runs)
            axes.plot(times, values[: s.single].T, color=COLOURS[k], lw=0.5, alpha=0.35)
            band(axes, times, values.mean(axis=0), error, COLOURS[k], label=f"mode {k + 1}")
        winner = int(np.argmax(runs[:, -1].mean(axis=0)))
        split = float(np.mean((positive[:, winner] > 0) & (positive[:, winner] < s.n)))
        note = f"mode {d - winner} wins,\nboth signs in {100 * split:.0f} % of runs"
        axes.text(0.97, 0.5, note, transform=axes.transAxes, ha="right", va="center", fontsize=8)
        numbers = ", ".join(f"{v:g}".replace("-", "−") for v in ascending[::-1])
        axes.set(xlabel="depth-time $t$", ylabel="mass of the mode", title=f"λ = ({numbers})", ylim=(-0.03, 1.03))
    panels[0].plot([], [], color="#59636e", lw=0.6, label="single runs")
    panels[0].set_title(f"n = {s.n}, β = {s.beta:g}, " + panels[0].get_title(loc="left"))
    legend_below(figure, [panels[0]])
    return figure
