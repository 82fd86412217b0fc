"""Mergers of clusters on the circle by quadrature over the closing gap, and for isolated pairs in closed form.

Another route to the staircase of Dynamic metastability in the self-attention model (arXiv:2410.06833) than stepping in
time: while the gap φ of one pair closes, every other angle and the time are functions of φ,

    dθ_q/dφ = F_q/(F_j - F_i),    dt/dφ = 1/(F_j - F_i),

all forces F scaled by e^{β(1-cos φ)}, so that they are of order one and ln t is β(1-cos φ_0) plus a logarithm.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np
from numpy.typing import ArrayLike
from scipy import integrate

from pathlines.foundation.errors import finite_number, require
from pathlines.foundation.numbers import one_of, real_array
from pathlines.foundation.papers import METASTABILITY
from pathlines.limit.metastability.merging import log_merging_time

SOURCES = (METASTABILITY,)
KINDS = ("sa", "usa")


BALANCED = 1e-12
"""Closing speed, of a pair that alone would close at order one, below which it is rounding."""


class _OpensError(Exception):
    """The gap that was to set the clock does not close."""


class Mergers(msgspec.Struct, frozen=True):
    """ln t of each merger, the plateaus Σ m² from the start on, and the last angle."""

    log_times: np.ndarray
    levels: np.ndarray
    final: float


def _start(angles: ArrayLike, masses: ArrayLike | None, beta: float, kind: str) -> tuple[np.ndarray, np.ndarray]:
    theta = real_array("angles", angles)
    finite_number("beta", beta, 0.0, open_low=True)
    one_of("kind", kind, KINDS)
    m = np.ones(theta.shape) if masses is None else real_array("masses", masses, 0.0, open_low=True)
    require(theta.ndim == 1 and m.shape == theta.shape, "masses", "have one entry an angle", masses)
    order = np.argsort(theta)
    require(theta[order][-1] - theta[order][0] < 2 * np.pi, "angles", "span less than 2π", angles)
    return theta[order], m[order] / m.sum()


def _gap(theta: np.ndarray, i: int) -> float:
    """From cluster i to the next one, around the circle."""
    j = (i + 1) % len(theta)
    return float(theta[j] - theta[i] + (2 * np.pi if j == 0 else 0.0))


def _fused(theta: np.ndarray, m: np.ndarray, i: int, place: float) -> tuple[np.ndarray, np.ndarray]:
    """Clusters i and i+1 as one at ``place``, kept in order."""
    j = (i + 1) % len(theta)
    mass = m[i] + m[j]
    theta, m = np.delete(theta, [i, j]), np.delete(m, [i, j])
    theta, m = np.append(theta, place), np.append(m, mass)
    order = np.argsort(theta)
    return theta[order], m[order]


def staircase(
    angles: ArrayLike, beta: float, masses: ArrayLike | None = None, kind: str = "usa", delta: float = 0.01
) -> Mergers:
    """All mergers at gap ``delta``, at any β and with every influence; NaN from a merger on whose gap opens first.

    ln t to about 1e-10, whatever the masses. Angles within one turn.
    """
    theta, m = _start(angles, masses, beta, kind)
    delta = finite_number("delta", delta, 0.0, 1.0, open_low=True)
    log_t, times, levels = -np.inf, [], [float(np.sum(m**2))]
    while len(theta) > 1:
        order = sorted(range(len(theta) if len(theta) > 2 else 1), key=lambda i: _closing(theta, i))
        solved = next((s for s in (_close(theta, m, beta, kind, delta, i) for i in order) if s is not None), None)
        if solved is None:
            times += [np.nan] * (len(theta) - 1)
            levels += [np.nan] * (len(theta) - 1)
            break
        i, theta, log_stage = solved
        log_t = float(np.logaddexp(log_t, log_stage))
        j = (i + 1) % len(theta)
        theta, m = _fused(theta, m, i, theta[i] + _short(theta, i) * m[j] / (m[i] + m[j]))
        times.append(log_t)
        levels.append(float(np.sum(m**2)))
    return Mergers(np.array(times), np.array(levels), float(theta[0]) if len(theta) == 1 else np.nan)


def _closing(theta: np.ndarray, i: int) -> float:
    return abs(_short(theta, i))


def _short(theta: np.ndarray, i: int) -> float:
    """The gap after i, by the shorter way round (two clusters have two)."""
    gap = _gap(theta, i)
    return gap if gap <= np.pi else gap - 2 * np.pi


def _close(
    theta: np.ndarray, m: np.ndarray, beta: float, kind: str, delta: float, i: int
) -> tuple[int, np.ndarray, float] | None:
    """Follow the gap after cluster i down to δ; ``None`` if it opens on the way or another one is first."""
    j, wide = (i + 1) % len(theta), _short(theta, i)
    sign, phi0 = np.sign(wide), abs(wide)
    top = 2 * beta * np.sin(phi0 / 2) ** 2

    def forces_and_speed(theta: np.ndarray, scale: float) -> tuple[np.ndarray, float]:
        forces = _forces(theta, m, beta, kind, scale)
        closing = sign * (forces[j] - forces[i])
        if not closing < -BALANCED:
            raise _OpensError
        return forces, closing

    def slope(phi: float, y: np.ndarray) -> np.ndarray:
        scale = 2 * beta * np.sin(phi / 2) ** 2
        forces, closing = forces_and_speed(y[:-1], scale)
        return np.append(forces / closing, np.exp(scale - top) * unit / closing)

    try:
        # a light cluster closes fast under SA: in this unit its time too is of order one for the solver
        unit = -forces_and_speed(theta, top)[1] * (1 + beta * np.sin(phi0))
        solved = integrate.solve_ivp(slope, (phi0, delta), np.append(theta, 0.0), "LSODA", rtol=1e-12, atol=1e-14)
    except _OpensError:
        return None
    y = solved.y[:, -1]
    if solved.status != 0 or not np.all(np.isfinite(y)):
        return None
    others = [_closing(y[:-1], q) for q in range(len(theta)) if q != i and len(theta) > 2]
    if min(others, default=np.inf) < delta:
        return None
    return i, y[:-1], float(top + np.log(y[-1] / unit))


def _forces(theta: np.ndarray, m: np.ndarray, beta: float, kind: str, scale: float) -> np.ndarray:
    """e^{scale} times the velocities; infinite where another pair is much closer than the one that sets the scale."""
    turn = theta[None, :] - theta[:, None]
    logs = -2 * beta * np.sin(turn / 2) ** 2
    with np.errstate(over="ignore", invalid="ignore"):
        apart = m * np.exp(logs + scale) * np.sin(turn)
    np.fill_diagonal(apart, 0.0)
    forces = apart.sum(axis=1)
    return forces if kind == "usa" else forces / (np.exp(logs) @ m)


def isolated_pairs(
    angles: ArrayLike, beta: float, masses: ArrayLike | None = None, kind: str = "usa", delta: float = 0.01
) -> Mergers:
    """The same when every pair merges as if alone: closed forms, exact up to e^{-β·(differences of cosines of gaps)}.

    USA: T/M with M the mass of the pair, at the centre of mass. SA: the masses of the pair decide, and the lighter
    cluster travels more: v_1/v_2 = [m_2/(m_1+m_2e)]/[m_1/(m_2+m_1e)].
    """
    theta, m = _start(angles, masses, beta, kind)
    born = np.full(len(theta), -np.inf)
    times, levels = [], [float(np.sum(m**2))]
    while len(theta) > 1:
        offers = [_alone(theta, m, born, beta, kind, delta, i) for i in range(len(theta))]
        i = int(np.argmin(offers))
        j = (i + 1) % len(theta)
        place = theta[i] + np.sign(_short(theta, i)) * _meeting(_closing(theta, i), m[i], m[j], beta, kind, delta)
        rest = np.delete(born, [i, j])
        kept = np.delete(theta, [i, j])
        theta, m = _fused(theta, m, i, float(place))
        born = np.insert(rest, int(np.searchsorted(kept, place)), offers[i])
        times.append(offers[i])
        levels.append(float(np.sum(m**2)))
    return Mergers(np.array(times), np.array(levels), float(theta[0]))


def _alone(theta: np.ndarray, m: np.ndarray, born: np.ndarray, beta: float, kind: str, delta: float, i: int) -> float:
    j = (i + 1) % len(theta)
    mass = m[i] + m[j]
    shares = (m[i] / mass, 1 - m[i] / mass)
    alone = log_merging_time(beta, max(_closing(theta, i), delta), delta, kind, shares)
    return float(np.logaddexp(max(born[i], born[j]), alone - (np.log(mass) if kind == "usa" else 0.0)))


def _meeting(gap: float, first: float, second: float, beta: float, kind: str, delta: float) -> float:
    """How far the first cluster has come when they are merged."""
    rest = second / (first + second)
    if kind == "usa":
        return gap * rest
    share: Callable[[float], float] = lambda phi: _share(phi, first, second, beta)  # noqa: E731
    return float(integrate.quad(share, delta, gap, points=[min(gap, 3 / np.sqrt(beta))], limit=200)[0]) + delta * rest


def _share(phi: float, first: float, second: float, beta: float) -> float:
    e = np.exp(-beta * (1 - np.cos(phi)))
    mine, other = second / (first + second * e), first / (second + first * e)
    return float(mine / (mine + other))
