"""What pattern there is: moments, maxima of the potential, clusters that carry mass, and when it formed."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.foundation.errors import ArgumentError, FormError, finite_array, finite_number
from pathlines.integrate.observe import observable
from pathlines.kernels.spectral.bessel import spectrum
from pathlines.kernels.spectral.circle import circle_moments
from pathlines.model.base import Snapshot
from pathlines.model.capability import HasEnergy
from pathlines.model.metastability.circle_density import CircleDensity
from pathlines.model.metastability.zonal import ZonalMeasure
from pathlines.observable.clusters import linked

NOISE = 64
"""A maximum of the potential lower than this many rounding errors is none (far from every cluster)."""


def _moments(snapshot: Snapshot, degree: int) -> tuple[Float[Array, " K"], Float[Array, " K"]]:
    """Real and imaginary parts of m_0..m_degree."""
    if isinstance(snapshot.model, CircleDensity):
        state = snapshot.state[: degree + 1]
        padded = jnp.pad(state, ((0, degree + 1 - state.shape[0]), (0, 0)))
        return padded[:, 0], padded[:, 1]
    if not snapshot.model.has_tokens or snapshot.tokens.shape[-1] != 2 or not snapshot.model.on_sphere:
        raise FormError(
            f"{type(snapshot.model).__name__} has no Fourier moments: they need tokens on the circle, d = 2 "
            "(`zonal_moments` are for ZonalMeasure, any d)."
        )
    masses = snapshot.model.normalised_masses(snapshot.tokens.shape[0], snapshot.tokens.dtype)
    even, odd = jnp.split(circle_moments(snapshot.tokens.T, masses, degree), 2)
    return even, -odd


@observable("fourier_moments", "Fourier moments", "|mₖ|", dims=("mode",), modes=16)
def fourier_moments(snapshot: Snapshot, modes: int) -> Array:
    """|m_k|, k = 1..``modes``, m_k = ∫ e^{-ikθ} dμ: all small for a uniform law, one at multiples of k for a k-gon."""
    return jnp.hypot(*_moments(snapshot, modes))[1:]


@observable("fourier_phases", "phases of the Fourier moments", "arg mₖ", dims=("mode",), modes=16)
def fourier_phases(snapshot: Snapshot, modes: int) -> Array:
    """arg m_k, k = 1..``modes``: clusters of a k-fold pattern sit at (2πj - arg m_k)/k (arXiv:2410.23228)."""
    real, imag = _moments(snapshot, modes)
    return jnp.arctan2(imag, real)[1:]


@observable("zonal_moments", "zonal moments", "mₖ", dims=("mode",), modes=16)
def zonal_moments(snapshot: Snapshot, modes: int) -> Array:
    """m_k = ∫ P_k(<x, axis>) dμ, k = 1..``modes``, of a measure about an axis."""
    if not isinstance(snapshot.model, ZonalMeasure):
        raise FormError(f"{type(snapshot.model).__name__} has no axis; `fourier_moments` serve the circle.")
    return snapshot.model.moments(snapshot.state, modes)[1:]


@observable("interaction_energy", "energy over its maximum", "∬e^{β(⟨x,y⟩−1)}dμdμ")
def interaction_energy(snapshot: Snapshot) -> Array:
    """E = ∬ e^{β(<x,y>-1)} dμ dμ ∈ (0, 1], in the form the model itself carries it: of measures as well as tokens."""
    model = snapshot.model
    deficit = model.energy_deficit(snapshot.state, snapshot.time) if isinstance(model, HasEnergy) else None
    if deficit is None:
        raise FormError(f"{type(snapshot.model).__name__} has no interaction energy.")
    return 1 + 2 * snapshot.model.beta * deficit  # type: ignore[attr-defined]


def _potential(snapshot: Snapshot, modes: int) -> Float[Array, " G"]:
    """U(θ) = Σ_k g_k m_k e^{ikθ} on 8K points, K the modes of the kernel."""
    count = modes or getattr(snapshot.model, "modes", 0)
    if not count:
        raise ArgumentError(
            f"Observable `potential_modes` of {type(snapshot.model).__name__} needs its number of modes: "
            "potential_modes.at(modes=circle_modes(beta))."
        )
    real, imag = _moments(snapshot, count - 1)
    beta = jnp.asarray(snapshot.model.beta, real.dtype)  # type: ignore[attr-defined]
    moments = jax.lax.complex(real, imag)
    series = spectrum(beta, 2, count - 1, count + 24).astype(moments.dtype) * moments
    return jnp.fft.irfft(series * 8 * count, 8 * count)


@observable("potential", "attention potential", "U(θ)", dims=("angle",), modes=0)
def potential(snapshot: Snapshot, modes: int) -> Array:
    """U(θ) = ∫ e^{β(cos(θ-φ)-1)} dμ(φ) at θ = 2πj/G, G = 8K: tokens climb it."""
    return _potential(snapshot, modes)


@observable("potential_modes", "maxima of the potential", "#max U", modes=0)
def potential_modes(snapshot: Snapshot, modes: int) -> Array:
    """The number of local maxima of U on a grid of 8K points: a count of clusters without a threshold.

    K comes from the model (CircleAttention, CircleDensity) or from ``modes``. Maxima below rounding are left out.
    """
    return peak_count(_potential(snapshot, modes))


def peak_count(values: Float[Array, " G"]) -> Array:
    """Local maxima of a periodic positive function on a grid, above the rounding of its largest value."""
    floor = NOISE * jnp.finfo(values.dtype).eps * jnp.max(values)
    above = (values > jnp.roll(values, 1)) & (values >= jnp.roll(values, -1)) & (values > floor)
    return jnp.sum(above)


def peak_angles(values: Any) -> np.ndarray:
    """Angles of the local maxima of a function on θ = 2πj/G, by the parabola through three points."""
    u = finite_array("values", values, ("G",)).astype(float)
    left, right = np.roll(u, 1), np.roll(u, -1)
    at = np.nonzero((u > left) & (u >= right) & (u > NOISE * np.finfo(float).eps * u.max()))[0]
    bend = left[at] - 2 * u[at] + right[at]
    offset = np.where(bend < 0, (left[at] - right[at]) / np.where(bend < 0, 2 * bend, 1.0), 0.0)
    return 2 * math.pi * (at + offset) / len(u)


@observable("heavy_clusters", "clusters that carry mass", "#{m ≥ m₀}", gap=0.0, least=0.01)
def heavy_clusters(snapshot: Snapshot, gap: float, least: float) -> Array:
    """Single linkage with angle ``gap`` (0: 1/(2√β)), counting groups of mass at least ``least``.

    Without the mass filter, tokens that linger between clusters are counted: 9 to 11 "clusters" where 3 carry the mass.
    O(n log n) on the circle, O(n²) elsewhere.
    """
    x = snapshot.tokens
    if not snapshot.model.on_sphere:
        raise FormError("Clusters by angle need tokens on a sphere.")
    beta = getattr(snapshot.model, "beta", None)
    if not gap and beta is None:
        raise ArgumentError("Observable `heavy_clusters` needs a gap for a model without β: heavy_clusters.at(gap=…).")
    reach = jnp.asarray(gap, x.dtype) if gap else 1 / (2 * jnp.sqrt(jnp.asarray(beta, x.dtype)))
    masses = snapshot.model.normalised_masses(x.shape[0], x.dtype)
    return jnp.sum(jnp.zeros_like(masses).at[linked(x, reach)].add(masses) >= least)


def measured_formation_time(times: Any, moments: Any, level: float = 0.1) -> np.ndarray:
    """T_c = first time max_k |m_k| ≥ c, log-linear between records; ``moments`` is (..., time, mode). NaN: never."""
    t = finite_array("times", times, ("T",)).astype(float)
    largest = np.abs(np.asarray(moments, float)).max(axis=-1)
    c = finite_number("level", level, 0.0, open_low=True)
    reached = largest >= c
    first = reached.argmax(axis=-1)
    before = np.maximum(first - 1, 0)
    low, high = (np.take_along_axis(largest, i[..., None], axis=-1)[..., 0] for i in (before, first))
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.log(c / low) / np.log(high / low)
        found = np.where(first > 0, t[before] + share * (t[first] - t[before]), t[0])
    return np.where(reached.any(axis=-1), found, np.nan)


def recovered_density(angles: Any) -> np.ndarray:
    """ρ(θ_j) = 1/Θ'(s_j) at quantile points θ_j = Θ(s_j), s_j = (j + ½)/n, in order: the density behind the points.

    The derivative is that of the trigonometric polynomial through Θ(s) - 2πs, spectrally accurate; once that polynomial
    does not resolve the map (its last coefficients exceed 10⁻⁶), differences of neighbours, always positive.
    """
    theta = np.unwrap(finite_array("angles", angles, ("n",)).astype(float))
    n = len(theta)
    order = np.fft.fftfreq(n, 1 / n)
    series = np.fft.fft(theta - 2 * math.pi * (np.arange(n) + 0.5) / n) / n
    if np.abs(series[np.abs(order) > 3 * n / 8]).max(initial=0.0) > 1e-6:
        following, before = np.append(theta[1:], theta[0] + 2 * math.pi), np.append(theta[-1] - 2 * math.pi, theta[:-1])
        return 2 / (n * (following - before))
    order[np.abs(order) == n / 2] = 0
    return 1 / (2 * math.pi + np.fft.ifft(2j * math.pi * order * series * n).real)
