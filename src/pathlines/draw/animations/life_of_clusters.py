"""Formation, metastability, coarsening: the whole life of clusters on the circle, in logarithmic time.

Emergence of meta-stable clustering in mean-field transformer models, arXiv:2410.23228, for how clusters form; Dynamic
metastability in the self-attention model, arXiv:2410.06833, for how long they live.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection

from pathlines.domain.circle_law import QuietMoments, circle_quantiles, on_circle
from pathlines.draw.animation import Reel, animation
from pathlines.draw.style import COLOURS, GRID, INK, MUTED, new_figure
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import METASTABILITY
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import flow
from pathlines.integrate.cluster_flow import cluster_flow
from pathlines.integrate.staircase import Staircase
from pathlines.limit.metastability.growth import dominant_degree
from pathlines.model.metastability.circle import CircleAttention
from pathlines.observable.clusters import linked

RIM, TALLEST = 1.07, 0.48
HOLD = 12
"""Frames for which the last one stays."""


class Course(NamedTuple):
    """Frame by frame: angles of all tokens, log₁₀ t, energy, number of clusters, and the phase in words."""

    angles: np.ndarray
    log_time: np.ndarray
    energy: np.ndarray
    clusters: np.ndarray
    phase: list[str]


class Life(Setting):
    """A quiet start, and the frames."""

    beta: of.Beta = 16.0
    n: of.Tokens = 2000
    crowd: of.Crowd = 100000.0
    noisy: of.NoisyModes = 16
    until: of.Until = 20.0
    forming: Annotated[of.Count, means("frames of the formation")] = 60
    coarsening: Annotated[of.Count, means("frames of the coarsening")] = 100
    bins: Annotated[of.Count, means("directions of the ring")] = 120
    seed: of.Seed = 3


def _formation(s: Life) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(times, angles, energies) of the particle system, at even times up to ``until``."""
    key = jax.random.key(s.seed)
    start = on_circle(circle_quantiles(QuietMoments(s.crowd, s.noisy)(key), s.n))
    model = CircleAttention(s.beta)
    times = np.linspace(0.0, s.until, s.forming)
    run = flow(model, start, times=times, record="tokens", rtol=1e-7, form="tokens")
    tokens = run["tokens"].values
    angles = np.unwrap(np.arctan2(tokens[..., 1], tokens[..., 0]), axis=0)
    deficit = jax.jit(jax.vmap(lambda a: model.energy_deficit(a, jnp.zeros(()))))
    return times, angles, 1 + 2 * s.beta * np.asarray(deficit(jnp.asarray(angles)))


def groups(angles: np.ndarray, gap: float) -> np.ndarray:
    """The cluster of each token, numbered from zero: single linkage around the circle."""
    return np.unique(linked(on_circle(jnp.asarray(angles)), gap), return_inverse=True)[1]


def _coarsening(angles: np.ndarray, labels: np.ndarray, s: Life) -> Staircase:
    """The clusters of the last particle state as points with masses, until one is left."""
    masses = np.bincount(labels) / len(labels)
    centres = [np.angle(np.exp(1j * angles[labels == q]).sum()) for q in range(len(masses))]
    return cluster_flow(np.array(centres), s.beta, masses=masses, kind="sa", log_start=np.log(s.until), rtol=1e-9)


def _even_motion(stairs: Staircase, frames: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(log₁₀ t, energy, positions) at even steps of a length to which motion, energy and ln t all contribute."""
    places = np.unwrap(stairs.positions, axis=0)
    moved = np.abs(np.diff(places, axis=0)) @ stairs.masses
    risen, passed = np.abs(np.diff(stairs.energy)), np.abs(np.diff(stairs.log_time))
    step = moved / max(moved.sum(), 1e-12) + risen / max(risen.sum(), 1e-12) + passed / max(passed.sum(), 1e-12)
    length = np.append(0.0, np.cumsum(step))
    at = np.linspace(0, length[-1], frames)
    own = [np.interp(at, length, column) for column in places.T]
    return np.interp(at, length, stairs.log_time) / np.log(10), np.interp(at, length, stairs.energy), np.stack(own, 1)


def compute(s: Life) -> Course:
    """Both phases joined; the frames of coarsening begin where the particles end."""
    times, angles, energy = _formation(s)
    labels = groups(angles[-1], 0.5 / np.sqrt(s.beta))
    stairs = _coarsening(angles[-1], labels, s)
    log_time, slow_energy, centres = _even_motion(stairs, s.coarsening)
    first = np.log10(np.maximum(times, times[1] / 2))
    counts = [len(np.unique(groups(row, 0.5 / np.sqrt(s.beta)))) for row in (*angles, *centres)]
    formed = int(np.argmax(energy > 0.95 * energy[-1]))
    phase = (
        ["formation"] * formed + ["metastable clusters"] * (len(times) - formed) + ["coarsening"] * (s.coarsening - 1)
    )
    return Course(
        np.concatenate([angles, centres[:, labels]]),
        np.concatenate([first, log_time]),
        np.concatenate([energy, slow_energy]),
        np.array(counts),
        [*phase, "consensus"],
    )


class _Ring:
    """Tokens on the circle, the share of each direction as bars around it."""

    def __init__(self, axes: Axes, bins: int) -> None:
        axes.set_aspect("equal")
        axes.set_axis_off()
        axes.set(xlim=(-1.6, 1.6), ylim=(-1.6, 1.6))
        turn = np.linspace(0, 2 * np.pi, 400)
        axes.plot(np.cos(turn), np.sin(turn), color=GRID, lw=1.0, zorder=1)
        self.edges = np.linspace(0, 2 * np.pi, bins + 1)
        middle = (self.edges[1:] + self.edges[:-1]) / 2
        self.ways = np.stack([np.cos(middle), np.sin(middle)], axis=-1)
        self.bars = LineCollection([], colors=COLOURS[0], linewidths=440 / bins, alpha=0.6, capstyle="butt")
        axes.add_collection(self.bars)
        (self.dots,) = axes.plot([], [], "o", ms=4.5, color=COLOURS[1], alpha=0.35, mec="none", zorder=3)
        self.title = axes.text(0, 0.16, "", ha="center", va="center", fontsize=12, color=INK, weight="bold")
        self.count = axes.text(0, -0.12, "", ha="center", va="center", fontsize=11, color=INK)
        self.clock = axes.text(0, -0.38, "", ha="center", va="center", fontsize=11, color=MUTED)

    def show(self, film: Course, k: int) -> None:
        """Frame k."""
        angles = film.angles[k]
        self.dots.set_data(np.cos(angles), np.sin(angles))
        share = np.histogram(np.mod(angles, 2 * np.pi), self.edges)[0] / len(angles)
        tips = RIM + TALLEST * np.sqrt(share)[:, None]
        self.bars.set_segments(list(np.stack([RIM * self.ways, tips * self.ways], axis=1)))
        self.title.set_text(film.phase[k])
        known = film.phase[k] != "formation"
        number = int(film.clusters[k])
        self.count.set_text(f"{number} cluster{'s' if number > 1 else ''}" if known else "")
        power = film.log_time[k]
        self.clock.set_text(f"t = {10**power:.1f}" if power < 3 else f"t = $10^{{{power:.1f}}}$")


class _Stairs:
    """Energy against log t, growing; the whole course as a shadow."""

    def __init__(self, axes: Axes, film: Course, s: Life) -> None:
        axes.plot(film.log_time, film.energy, color=GRID, lw=1.2, zorder=1)
        (self.line,) = axes.plot([], [], color=COLOURS[0], lw=2.0)
        (self.point,) = axes.plot([], [], "o", color=COLOURS[1], ms=6, zorder=5)
        axes.set(
            xlabel=r"$\log_{10}$ of depth-time $t$", ylabel=r"energy $\iint e^{\beta(\langle x,y\rangle-1)}$, at most 1"
        )
        axes.set(ylim=(0, 1.05), xlim=(film.log_time[0] - 0.3, film.log_time[-1] + 0.5))
        number = dominant_degree(s.beta, 2)
        axes.set_title(f"β = {s.beta:g}, n = {s.n}; fastest mode k* = {number}")

    def show(self, film: Course, k: int) -> None:
        """Frame k."""
        self.line.set_data(film.log_time[: k + 1], film.energy[: k + 1])
        self.point.set_data(film.log_time[k : k + 1], film.energy[k : k + 1])


@animation(
    "metastability/life-of-clusters",
    METASTABILITY,
    "Tokens on the circle under softmax attention from a nearly uniform start: the fastest harmonic grows, about √(2β) "
    "clusters form, stay for a long time, and merge one pair after another, each time exponentially later. Bars around "
    "the circle: square root of the share of tokens in each direction. Right: the energy climbs a staircase in log t. "
    "Particles are summed by Fourier series until their clusters are tight, then clusters move as points with masses.",
    quick=Life(),
    full=Life(beta=25.0, noisy=24, forming=150, coarsening=250),
)
def life_of_clusters(s: Life) -> Reel:
    """Ring on the left, staircase on the right."""
    film = compute(s)
    figure, ((left, right),) = new_figure(1, 2, width=4.4, height=4.0)
    ring, stairs = _Ring(left, s.bins), _Stairs(right, film, s)

    def show(k: int) -> None:
        frame = min(k, len(film.log_time) - 1)
        ring.show(film, frame)
        stairs.show(film, frame)

    return Reel(figure, len(film.log_time) + HOLD, show)
