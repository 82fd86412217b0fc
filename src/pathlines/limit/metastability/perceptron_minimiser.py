"""The global minimiser of the perceptron landscape, with a certificate.

Strict convexity makes min E a convex problem over measures, solved by Frank-Wolfe with all corrections: atoms arrive at
the minima of the first variation f, masses solve the quadratic programme on the atoms, and Newton's method moves
positions, masses and the multiplier c together to ∇f = 0, f = c at the atoms. The answer comes with its gap: c - min f
bounds E - min E (arXiv:2601.21366 for the landscape; the bound derived). The minimum is that of the local minima seen
by a fine even grid and by lines across every neuron, refined between their points; one that both miss is not in it.
Circle and S². Some tens of milliseconds, a second on S² for many atoms.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pathlines.foundation.errors import finite_number, of_kind, positive_integer
from pathlines.limit.metastability.perceptron_landscape import (
    SOURCES as SOURCES,
)
from pathlines.limit.metastability.perceptron_landscape import (
    Landscape,
    position_jacobian,
    tangent_bases,
)
from pathlines.limit.metastability.perceptron_probes import neuron_lines, probe_points
from pathlines.limit.metastability.simplex_programme import simplex_masses

SMALLEST_MASS = 1e-13
NEWTON_STEPS = 12


@dataclass(frozen=True)
class Minimiser:
    """A measure of atoms and how far it can be from the minimum: E - min E ≤ ``kkt_gap`` = c - min f, the minimum of
    those around ``probes`` points (even ones and those close to neurons, see ``lowest_points``).

    ``multiplier`` is c = ∫f dμ, ``rates`` the Hessian eigenvalues in the positions (see ``Landscape.rates``),
    ``heaviest_mass`` that of an arc (cap) of length 1/(2√β). Energies are those of the kernel in use, κ included.
    """

    atoms: np.ndarray
    masses: np.ndarray
    energy: float
    multiplier: float
    kkt_gap: float
    rates: np.ndarray
    heaviest_mass: float
    iterations: int
    probes: int

    @property
    def angles(self) -> np.ndarray:
        """Angles in [0, 2π) of atoms on the circle."""
        return np.mod(np.arctan2(self.atoms[:, 1], self.atoms[:, 0]), 2 * np.pi)


def _retract(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def _refined(land: Landscape, x: np.ndarray, atoms: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """Minima of f near the rows of x: Newton's method in the tangent planes, uphill directions turned round."""
    reach = 0.1 / np.sqrt(land.beta)
    for _ in range(6):
        bases = tangent_bases(x)
        slope = np.einsum("iab,ia->ib", bases, land.gradient(x, atoms, masses))
        values, vectors = np.linalg.eigh(np.einsum("iab,iac,icd->ibd", bases, land.hessian(x, atoms, masses), bases))
        size = np.maximum(np.abs(values), 1e-12)
        step = -np.einsum("ibe,ie->ib", vectors, np.einsum("ibe,ib->ie", vectors, slope) / size)
        step *= np.minimum(1, reach / np.maximum(np.linalg.norm(step, axis=1, keepdims=True), 1e-300))
        x = _retract(x + np.einsum("iab,ib->ia", bases, step))
    return x


def lowest_points(land: Landscape, atoms: np.ndarray, masses: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Local minima of f on the even points and on the lines across neurons, refined, and f there, lowest first."""
    points, neighbours = probe_points(land.potential.d, count)
    f = land.first_variation(points, atoms, masses)
    seen = points[np.all(f[:, None] <= f[neighbours], axis=1)]
    seen = seen[np.argsort(land.first_variation(seen, atoms, masses))][:64]
    found = np.concatenate([seen, _lowest_on_lines(land, atoms, masses)])
    better = _refined(land, found, atoms, masses)
    before, after = (land.first_variation(x, atoms, masses) for x in (found, better))
    best = np.where((after < before)[:, None], better, found)
    value = np.minimum(before, after)
    order = np.argsort(value)
    return best[order], value[order]


def _lowest_on_lines(land: Landscape, atoms: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """The lowest of the minima along the lines across neurons, at most one per line and 64 in all."""
    lines = neuron_lines(land.potential)
    f = land.first_variation(lines.reshape(-1, lines.shape[2]), atoms, masses).reshape(lines.shape[:2])
    lowest = np.argmin(f, axis=1)
    order = np.argsort(f.min(axis=1))[:64]
    return lines[order, lowest[order]]


def _residual(land: Landscape, atoms: np.ndarray, masses: np.ndarray, c: float, bases: np.ndarray) -> np.ndarray:
    slope = np.einsum("iab,ia->ib", bases, land.gradient(atoms, atoms, masses))
    return np.concatenate([slope.ravel(), land.first_variation(atoms, atoms, masses) - c, [masses.sum() - 1]])


def _newton_step(land: Landscape, atoms: np.ndarray, masses: np.ndarray, c: float) -> tuple[np.ndarray, ...]:
    """Solve the linearised conditions in the least-squares sense: a ring of atoms may turn freely."""
    (k, d), bases = atoms.shape, tangent_bases(atoms)
    p, w = k * (d - 1), land.weights(atoms, atoms)
    residual = _residual(land, atoms, masses, c, bases)
    jacobian = np.zeros((p + k + 1, p + k + 1))
    jacobian[:p, :p] = position_jacobian(land, atoms, masses, bases)
    jacobian[:p, p : p + k] = np.einsum("iab,ja,ij->ibj", bases, atoms, w).reshape(p, k)
    along = (w * masses)[:, :, None] * np.einsum("ia,jab->ijb", atoms, bases)
    along[np.arange(k), np.arange(k)] += residual[:p].reshape(k, d - 1)
    jacobian[p : p + k, :p] = along.reshape(k, p)
    jacobian[p : p + k, p : p + k] = w / land.beta
    jacobian[p : p + k, -1], jacobian[-1, p : p + k] = -1.0, 1.0
    step = -np.linalg.lstsq(jacobian, residual, rcond=1e-13)[0]
    return residual, np.einsum("iab,ib->ia", bases, step[:p].reshape(k, d - 1)), step[p : p + k], step[-1:]


def polished(land: Landscape, atoms: np.ndarray, masses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Newton's method on positions, masses and multiplier, halving steps that do not lower the residual."""
    c = float(masses @ land.first_variation(atoms, atoms, masses))
    for _ in range(NEWTON_STEPS):
        residual, move, gain, rise = _newton_step(land, atoms, masses, c)
        size = np.linalg.norm(residual)
        if size < 1e-15:
            break
        share = min(1.0, 0.3 / np.sqrt(land.beta) / max(np.abs(move).max(), 1e-300))
        for _ in range(8):
            trial = _retract(atoms + share * move), masses + share * gain, c + share * float(rise[0])
            if trial[1].min() > 0 and np.linalg.norm(_residual(land, *trial, tangent_bases(trial[0]))) < size:
                break
            share /= 2
        else:
            break
        atoms, masses, c = trial
    return atoms, masses / masses.sum()


def _merged(land: Landscape, atoms: np.ndarray, masses: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Atoms closer than ``reach`` (in units of 1/√β) to a heavier one join it, at their common centre."""
    order = np.argsort(-masses)
    atoms, masses, taken = atoms[order], masses[order], np.zeros(len(masses), bool)
    groups = []
    for i in range(len(masses)):
        near = ~taken & (np.linalg.norm(atoms - atoms[i], axis=1) <= reach / np.sqrt(land.beta))
        if not taken[i]:
            groups.append(near)
            taken |= near
    weights = np.array([masses[g].sum() for g in groups])
    return _retract(np.array([masses[g] @ atoms[g] for g in groups])), weights


def _corrected(land: Landscape, atoms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The best masses on given atoms, those without mass dropped."""
    masses = simplex_masses(land.weights(atoms, atoms) / land.beta, land.potential.value(atoms) / (2 * land.scale))
    kept = masses > SMALLEST_MASS
    return atoms[kept], masses[kept] / masses[kept].sum()


CLOSER = 5
"""Probe points for the gap at the end, over those of a round."""


def probe_count(land: Landscape) -> int:
    """Even probe points of a round, by default: 3600 on the circle, 4000 on S², more where 1/√β is narrow."""
    even, narrow = {2: (3600, 40 * np.sqrt(land.beta)), 3: (4000, 60 * land.beta)}.get(land.potential.d, (1, 0.0))
    return max(even, int(narrow))


def perceptron_minimiser(
    land: Landscape, tolerance: float = 1e-10, points: int | None = None, most: int = 60
) -> Minimiser:
    """The measure with E - min E below ``tolerance`` (in units of κ), or the best after ``most`` rounds.

    ``points`` even probe points (``probe_count`` by default), five times as many for the gap at the end. Look at
    ``kkt_gap``.
    """
    of_kind("land", land, Landscape, "a landscape")
    tolerance = finite_number("tolerance", tolerance, 0.0, open_low=True)
    d, most = land.potential.d, positive_integer("most", most)
    count = probe_count(land) if points is None else positive_integer("points", points, 8)
    atoms = probe_points(d, count)[0][:: max(1, count // 7)][:7]
    atoms, masses = _corrected(land, atoms)
    best: tuple[float, np.ndarray, np.ndarray] = np.inf, atoms, masses
    rounds = 0
    while rounds < most:
        rounds += 1
        low, values = lowest_points(land, atoms, masses, count)
        c = float(masses @ land.first_variation(atoms, atoms, masses))
        gap = max(c - float(values[0]), 0.0)
        best = min(best, (gap, atoms, masses), key=lambda b: b[0])
        if gap <= tolerance:
            break
        arrivals = low[values < c - 0.1 * tolerance]
        atoms, masses = _improved(land, *_corrected(land, np.concatenate([atoms, arrivals])), count, 0.1 * tolerance)
    return _finished(land, best[1], best[2], rounds, CLOSER * count)


def _gap(land: Landscape, atoms: np.ndarray, masses: np.ndarray, count: int) -> float:
    level = float(masses @ land.first_variation(atoms, atoms, masses))
    return max(level - float(lowest_points(land, atoms, masses, count)[1][0]), 0.0)


def _improved(
    land: Landscape, atoms: np.ndarray, masses: np.ndarray, count: int, enough: float
) -> tuple[np.ndarray, np.ndarray]:
    """The polished measure with the fewest atoms whose gap is small enough, or else the one of smallest gap."""
    found: list[tuple[float, np.ndarray, np.ndarray]] = []
    for reach in (0.5, 0.05, 0.0):
        joined = _merged(land, atoms, masses, reach)
        if found and len(joined[1]) == len(found[-1][2]):
            continue
        measure = polished(land, *joined)
        found.append((_gap(land, measure[0], measure[1], count), *measure))
        if found[-1][0] <= enough:
            return measure
    return min(found, key=lambda m: m[0])[1:]


def _finished(land: Landscape, atoms: np.ndarray, masses: np.ndarray, rounds: int, count: int) -> Minimiser:
    turn = np.mod(np.arctan2(atoms[:, 1], atoms[:, 0]), 2 * np.pi)
    order = np.argsort(turn if land.potential.d == 2 else -masses)
    atoms, masses = atoms[order], masses[order]
    c = land.scale * float(masses @ land.first_variation(atoms, atoms, masses))
    gap = land.scale * _gap(land, atoms, masses, count)
    rates, heaviest = land.rates(atoms, masses), land.heaviest(atoms, masses)
    probes = count + int(np.prod(neuron_lines(land.potential).shape[:2]))
    return Minimiser(atoms, masses, land.energy(atoms, masses), c, gap, rates, heaviest, rounds, probes)
