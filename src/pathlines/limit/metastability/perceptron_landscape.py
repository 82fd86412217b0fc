"""The energy of attention with a gradient perceptron, for a measure of atoms.

    E[μ] = (κ/2β)∬ e^{β(<x,y>-1)} dμ dμ + ½∫v dμ,   f(x) = (κ/β)∫ e^{β(<x,y>-1)} dμ(y) + ½v(x),

κ = 1 for the scaled kernel and e^β for the kernel e^{β<x,y>} of Perceptrons and localization of attention's mean-field
landscape (arXiv:2601.21366): with a perceptron the two are different problems, not one in two clocks. E is strictly
convex in μ, so μ minimises it iff f ≥ ∫f dμ everywhere, and E[μ] - min E ≤ ∫f dμ - min f for every μ (derived).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pathlines.foundation.errors import finite_number, of_kind, require
from pathlines.foundation.numbers import one_of
from pathlines.limit.metastability.perceptron_potential import SOURCES as SOURCES
from pathlines.limit.metastability.perceptron_potential import Potential

KERNELS = ("scaled", "unscaled")
LARGEST_UNSCALED = 600.0


@dataclass(frozen=True)
class Landscape:
    """A potential beside attention at inverse temperature ``beta``; everything below is divided by ``scale`` = κ."""

    potential: Potential
    beta: float
    scale: float

    @property
    def radius(self) -> float:
        """1/(2√β), the arc within which the heaviest mass is looked for."""
        return 0.5 / np.sqrt(self.beta)

    def weights(self, x: np.ndarray, atoms: np.ndarray) -> np.ndarray:
        """e^{β(<x,y>-1)}, from differences (close points keep their digits)."""
        return np.exp(-self.beta / 2 * np.sum((x[:, None, :] - atoms[None, :, :]) ** 2, axis=-1))

    def first_variation(self, x: np.ndarray, atoms: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """f/κ at each row of x."""
        return self.weights(x, atoms) @ masses / self.beta + self.potential.value(x) / (2 * self.scale)

    def gradient(self, x: np.ndarray, atoms: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """∇f/κ in R^d: Σ m_j w y_j + ½∇v/κ."""
        return self.weights(x, atoms) @ (masses[:, None] * atoms) + self.potential.half_gradient(x) / self.scale

    def hessian(self, x: np.ndarray, atoms: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Hessian of f/κ along the sphere, PHP - <x,∇f>P with H that of R^d, (n, d, d)."""
        d = x.shape[1]
        pulled = self.weights(x, atoms) * masses
        inner = self.beta * np.einsum("nk,ka,kb->nab", pulled, atoms, atoms)
        inner += self.potential.half_hessian(x) / self.scale
        project = np.eye(d) - x[:, :, None] * x[:, None, :]
        radial = np.sum(x * self.gradient(x, atoms, masses), axis=1)
        return project @ inner @ project - radial[:, None, None] * project

    def velocity(self, x: np.ndarray, masses: np.ndarray, sign: int) -> np.ndarray:
        """±(χ + u) of unnormalised attention for tokens x of the given masses, κ included."""
        g = self.scale * self.gradient(x, x, masses)
        return sign * (g - np.sum(x * g, axis=1, keepdims=True) * x)

    def energy(self, atoms: np.ndarray, masses: np.ndarray) -> float:
        """E, κ included."""
        pairs = masses @ self.weights(atoms, atoms) @ masses / (2 * self.beta)
        return float(self.scale * pairs + masses @ self.potential.value(atoms) / 2)

    def heaviest(self, atoms: np.ndarray, masses: np.ndarray) -> float:
        """The heaviest mass in an arc of length 1/(2√β) (d = 2), in a cap of that diameter around an atom (d > 2)."""
        if atoms.shape[1] == 2:
            angles = np.arctan2(atoms[:, 1], atoms[:, 0])
            ahead = np.mod(angles[None, :] - angles[:, None], 2 * np.pi)
            inside = ahead <= self.radius * (1 + 1e-12)
        else:
            chord = np.linalg.norm(atoms[:, None, :] - atoms[None, :, :], axis=-1)
            inside = 2 * np.arcsin(np.minimum(chord / 2, 1)) <= self.radius / 2
        return float(min((inside @ masses).max(), 1.0))

    def rates(self, atoms: np.ndarray, masses: np.ndarray) -> np.ndarray:
        """Eigenvalues, ascending, of the Hessian of E in the positions of atoms, in the metric of their masses: the
        rates at which descent (κ included) brings displaced atoms back; negative ones drive them away.
        """
        blocks = position_jacobian(self, atoms, masses, tangent_bases(atoms))
        metric = np.repeat(np.sqrt(masses), atoms.shape[1] - 1)
        matrix = metric[:, None] * blocks / metric[None, :]
        return self.scale * np.linalg.eigvalsh((matrix + matrix.T) / 2)


def perceptron_landscape(potential: Potential, beta: float, kernel: str = "scaled") -> Landscape:
    """Attention at β > 0 beside a potential; ``kernel`` "scaled" e^{β(<x,y>-1)} or "unscaled" e^{β<x,y>}."""
    of_kind("potential", potential, Potential, "a perceptron_potential")
    beta = finite_number("beta", beta, 0.0, open_low=True)
    one_of("kernel", kernel, KERNELS)
    unscaled = kernel == "unscaled"
    require(not unscaled or beta <= LARGEST_UNSCALED, "beta", f"be ≤ {LARGEST_UNSCALED:g} for e^(β<x,y>)", beta)
    return Landscape(potential, beta, float(np.exp(beta)) if unscaled else 1.0)


def tangent_bases(x: np.ndarray) -> np.ndarray:
    """Orthonormal bases of the tangent spaces, (k, d, d-1): the last d-1 columns of the reflection that takes e_1 to
    ±x, so nothing divides by zero.
    """
    d = x.shape[1]
    sign = np.where(x[:, 0] >= 0, 1.0, -1.0)
    v = x + sign[:, None] * np.eye(d)[0]
    reflection = np.eye(d) - 2 * v[:, :, None] * v[:, None, :] / np.sum(v * v, axis=1)[:, None, None]
    return reflection[:, :, 1:]


def position_jacobian(land: Landscape, atoms: np.ndarray, masses: np.ndarray, bases: np.ndarray) -> np.ndarray:
    """d(tangent gradient of f/κ at atom i)/d(atom j), (k(d-1), k(d-1)): atoms are sources and probes at once."""
    k, d = atoms.shape
    w = land.weights(atoms, atoms)
    # moving source y_j by η changes Σ m_j w y_j by m_j w (β<x_i,η> y_j + η)
    along = np.einsum("ia,jab->ijb", atoms, bases)
    out = np.einsum("iab,jac->ijbc", bases, bases)
    out += land.beta * np.einsum("iab,ja,ijc->ijbc", bases, atoms, along)
    out *= (w * masses)[:, :, None, None]
    own = np.einsum("iab,iac,icd->ibd", bases, land.hessian(atoms, atoms, masses), bases)
    out[np.arange(k), np.arange(k)] += own
    return out.transpose(0, 2, 1, 3).reshape(k * (d - 1), k * (d - 1))
