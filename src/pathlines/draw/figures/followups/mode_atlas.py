"""The states of a symmetric V: growth, stable β, three groups, ends (Spectral Selection, arXiv:2604.26085)."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pathlines.draw.gallery import picture
from pathlines.draw.layout import colour_bar
from pathlines.draw.style import COLOURS, MUTED, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import SPECTRAL_SELECTION
from pathlines.foundation.setting import Setting, means
from pathlines.limit.followups.mode_atlas import Atlas, mode_atlas
from pathlines.sweep.generic_ends import End, generic_ends

LONGEST = 12
"""Rows that a panel has room for."""


class Matrix(Setting):
    """A symmetric V = QᵀK."""

    value: of.ValueMatrix = ((1.0, 0.0, 0.0), (0.0, 0.4, 0.0), (0.0, 0.0, -1.6))
    beta: of.Beta = 1.0
    n: of.Tokens = 12
    starts: Annotated[of.Count, means("random starts whose ends are counted")] = 128
    seed: of.Seed = 0


@picture(
    "followups/mode-atlas",
    SPECTRAL_SELECTION,
    "The states of a symmetric V = QᵀK. Top left: growth rate of n₊ tokens at an eigenvector and n₋ at its opposite, "
    "with eigenvalues in rows (blue decays, red grows, from −1 to 1 of the largest |eigenvalue|). Top right: the β at "
    "which these states are stable, between the lines of one colour, and β (dotted). Bottom left: three-group "
    "equilibria, m tokens at u and k each at qu ± sv, filled where stable. Bottom right: where simulated random starts "
    "end.",
    quick=Matrix(),
    full=Matrix(starts=1024),
)
def atlas_figure(s: Matrix) -> Figure:
    """The atlas of V and the ends of its starts."""
    value = np.array(s.value)
    return draw_atlas(mode_atlas(value, s.beta, s.n), generic_ends(value, s.beta, s.n, s.starts, s.seed))


def draw_atlas(found: Atlas, ends: list[End]) -> Figure:
    """Four panels."""
    figure, ((growth, ranges), (mixed, places)) = new_figure(2, 2, width=4.4, height=3.0)
    _growth(figure, growth, found)
    _ranges(ranges, found)
    _mixed(mixed, found)
    _ends(places, found, ends)
    return figure


def shown_modes(found: Atlas) -> list[int]:
    """All eigenvectors, or those at both ends of the spectrum."""
    d = len(found.eigenvalues)
    half = LONGEST // 2
    return list(range(d)) if d <= LONGEST else [*range(half), *range(d - half, d)]


def _growth(figure: Figure, axes: Axes, found: Atlas) -> None:
    rows = shown_modes(found)
    splits = found.n // 2 + 1
    table = np.array([m.growth for m in found.pure]).reshape(-1, splits)[rows]
    scale = float(np.abs(found.eigenvalues).max()) or 1.0
    with np.errstate(invalid="ignore"):
        shown = axes.imshow(table / scale, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
    stable = np.array([m.stable for m in found.pure]).reshape(-1, splits)[rows]
    for row, column in np.argwhere(stable):
        axes.plot(column, row, "o", ms=3, color="white", mec="black", mew=0.5)
    axes.set(
        xlabel="tokens at the opposite end $n_-$", ylabel=r"eigenvalue $\lambda_p$", title="pure modes (dot: stable)"
    )
    axes.set_yticks(range(len(rows)), [f"{found.eigenvalues[p]:.3g}".replace("-", "−") for p in rows])
    axes.grid(visible=False)
    colour_bar(figure, shown, axes, r"growth rate / max$|\lambda|$")


def _ranges(axes: Axes, found: Atlas) -> None:
    """Lowest and highest stable β over the minority, one colour an eigenvector."""
    largest = 10 * max(found.beta, 0.1)
    drawn = 0
    for p in shown_modes(found):
        bars = [
            (m.n_minus, max(low, 1e-3), min(high, largest))
            for m in found.pure
            if m.p == p
            for low, high in m.stable_betas
        ]
        if not bars:
            continue
        x, low, high = np.array([b for b in bars if b[1] < b[2]] or np.empty((0, 3))).T
        shift = 0.12 * drawn
        axes.vlines(
            x + shift,
            low,
            high,
            color=COLOURS[drawn % len(COLOURS)],
            lw=2.5,
            label=f"λ = {found.eigenvalues[p]:.3g}".replace("-", "−"),
        )
        drawn += 1
    if found.beta > 0:
        axes.axhline(found.beta, color=MUTED, ls=":", lw=1.2)
    axes.set(yscale="log", ylim=(1e-3, largest), xlim=(-0.5, found.n // 2 + 0.8))
    axes.set(xlabel="tokens at the opposite end $n_-$", ylabel=r"inverse temperature $\beta$", title="where stable")
    if drawn:
        axes.legend(loc="lower right", fontsize=7)
    else:
        axes.text(0.5, 0.5, "no pure mode is stable\nat any β", transform=axes.transAxes, ha="center", color=MUTED)


def _mixed(axes: Axes, found: Atlas) -> None:
    q, growth = (np.array([getattr(m, name) for m in found.mixed]) for name in ("q", "growth"))
    stable = np.array([m.stable for m in found.mixed], bool)
    axes.axhline(0.0, color=MUTED, lw=0.8)
    axes.plot(
        q[~stable], growth[~stable], "o", ms=3.5, mfc="white", mec=COLOURS[1], label=f"unstable ({(~stable).sum()})"
    )
    axes.plot(q[stable], growth[stable], "o", ms=4.5, color=COLOURS[0], label=f"stable ({stable.sum()})")
    axes.set(xlabel="overlap $q$ of $u$ with the pair", ylabel="growth rate", title="three groups", xlim=(-1.05, 1.05))
    axes.legend(loc="best", fontsize=7)


def _ends(axes: Axes, found: Atlas, ends: list[End]) -> None:
    kept = ends[:LONGEST]
    axes.barh(range(len(kept)), [100 * e.share for e in kept], color=[_colour(e) for e in kept])
    axes.set_yticks(range(len(kept)), [end_words(found, e) for e in kept])
    axes.invert_yaxis()
    axes.set(xlabel="random starts that end there (%)", ylabel="state", title=rf"ends at $\beta$ = {found.beta:g}")


def _colour(end: End) -> str:
    return COLOURS[0] if end.kind == "pure" else COLOURS[1] if end.kind == "mixed" else MUTED


def end_words(found: Atlas, end: End) -> str:
    """λ = 2, 7+5."""
    if end.kind == "pure":
        return f"λ = {found.eigenvalues[end.p]:.3g}, {end.n_plus}+{end.n_minus}".replace("-", "−")
    return "other groups" if end.kind == "mixed" else "still moving"
