"""The mean field of self-attention on the sphere of R^d for measures symmetric about an axis."""

from __future__ import annotations

import math
from functools import cache
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.foundation.errors import ArgumentError, FormError, finite_array, finite_number, positive_integer, require
from pathlines.foundation.papers import METASTABLE_EMERGENCE, Paper
from pathlines.kernels.spectral.attend import start_of
from pathlines.kernels.spectral.bessel import degree as kernel_degree
from pathlines.kernels.spectral.bessel import spectrum
from pathlines.model.base import MODELS, Description, Model
from pathlines.model.capability import HandsOver, HasDomain, HasEnergy, Pauses
from pathlines.model.metastability.zonal_start import (
    harmonic_numbers,
    orthonormal_polynomials,
    zonal_polynomials,
    zonal_rule,
)

FULL = 1e-7
"""A flow map whose last coefficients exceed this is too steep for its nodes."""
ROUNDING = 1e-15
CUT = 1e-16
"""The part of the kernel that its degrees may leave out."""


class Rings(NamedTuple):
    """Heights s_j = <x, axis> with their masses: the mass of a ring never changes."""

    heights: Float[Array, " n"]
    masses: Float[Array, " n"]


class ZonalMeasure(HasEnergy, HasDomain, Pauses, HandsOver):
    """ds_j/dt = (1-s_j²) U'(s_j)/β · e^{β-shift} (USA) or (1-s_j²) U'(s_j)/(βU(s_j)) (SA),  U = Σ_k g_k N_k m_k P_k.

    m_k = Σ_j w_j P_k(s_j): the mean field of arXiv:2410.23228 for measures symmetric about an axis, in any d ≥ 2 (even
    densities on the circle). P_k are Gegenbauer polynomials with P_k(1) = 1, N_k harmonics of degree k, g_k the
    spectrum of e^{β(s-1)}, and (1-s²)P_k' = k(P_{k-1} - sP_k). Gauss nodes carry the mass of the start, so integrals
    are spectrally accurate while the flow map is a polynomial of degree below n in s; when it gets too steep ``flow``
    goes on with rings as particles and says so in ``run.forms``, an ensemble stops. ``resolved=False`` asks for
    particles from the start. ``shift`` = 0 is the printed clock of USA, ``shift`` = β the scaled one.

    Starts: rows (s_j, mass_j) of ``zonal_start`` or ``zonal_quiet_start`` with n = ``nodes``.
    Good values: d = 2..100, β = 1..50, nodes = 100..400. Cost O(n L), L = degrees of the kernel (25 at β = 9, d = 3).
    """

    papers: ClassVar[tuple[Paper, ...]] = (METASTABLE_EMERGENCE,)
    not_swept: ClassVar[tuple[str, ...]] = ("beta",)

    beta: Float[Array, ""]
    shift: Float[Array, ""]
    kernel: Float[Array, " k"]
    d: int = eqx.field(static=True)
    nodes: int = eqx.field(static=True)
    degree: int = eqx.field(static=True)
    unnormalised: bool = eqx.field(static=True)
    resolved: bool = eqx.field(static=True)

    def __init__(
        self,
        d: int = 3,
        beta: float = 9.0,
        nodes: int = 200,
        unnormalised: bool = False,
        shift: float = 0.0,
        resolved: bool = True,
    ) -> None:
        value = finite_number("beta", beta, low=0.0, open_low=True)
        shift = finite_number("shift", shift)
        require(not unnormalised or value - shift < 700, "shift", "be β for the scaled kernel, e^β overflows", shift)
        self.beta, self.shift = jnp.asarray(value), jnp.asarray(shift)
        self.d, self.nodes = positive_integer("d", d, 2), positive_integer("nodes", nodes, 8)
        try:
            self.degree = kernel_degree(value, self.d, CUT)
            numbers = harmonic_numbers(self.d, self.degree)
        except OverflowError as error:
            raise ArgumentError(
                f"Argument `beta` must be smaller for d = {self.d} (the kernel has too many harmonics to number them), "
                f"but is {value:g}."
            ) from error
        self.kernel = spectrum(self.beta, self.d, self.degree, start_of(value, self.d)) * numbers
        self.unnormalised, self.resolved = bool(unnormalised), bool(resolved)

    def check(self, tokens: Any) -> None:
        """Rows (s_j, mass_j) with s in [-1, 1], masses ≥ 0 of sum one, at the Gauss nodes when ``resolved``."""
        rows = finite_array("start", tokens)
        if rows.shape != (self.nodes, 2):
            raise ArgumentError(
                f"Argument `start` must be {self.nodes} rows (s, mass) as from zonal_start(…, n={self.nodes}, "
                f"d={self.d}), but has shape {rows.shape}; tokens without an axis are for SelfAttention."
            )
        heights, masses = rows.T
        require(bool(np.all(np.abs(heights) <= 1)), "start", "have heights in [-1, 1]", heights)
        good = bool(np.all(masses >= -1e-12)) and abs(float(masses.sum()) - 1) < 1e-9
        require(good, "start", "be a density: masses ≥ 0 that sum to one", masses)
        if self.resolved:
            nodes = zonal_rule(self.nodes, self.d)[0]
            at_nodes = bool(np.abs(heights - nodes).max() < 1e-6)
            require(
                at_nodes, "start", f"have its heights at the Gauss nodes of d = {self.d} (or resolved=False)", heights
            )

    def initial(self, tokens: Float[Array, "n 2"]) -> Rings:
        """The two columns."""
        return Rings(tokens[:, 0], tokens[:, 1])

    def tokens(self, state: Rings, t: Array) -> Float[Array, "n d"]:
        """Rings are no tokens."""
        raise FormError("ZonalMeasure has rings instead of tokens; record `zonal_moments` or `interaction_energy`.")

    @property
    def has_tokens(self) -> bool:
        """No tokens."""
        return False

    @property
    def on_sphere(self) -> bool:
        """No unit vectors to look at."""
        return False

    def moments(self, state: Rings, degree: int) -> Float[Array, " k"]:
        """m_0..m_degree."""
        return zonal_polynomials(state.heights, degree, self.d) @ state.masses

    def _fields(self, state: Rings) -> tuple[Float[Array, " n"], Float[Array, " n"]]:
        """U and the velocity at the rings."""
        s = state.heights
        table = zonal_polynomials(s, self.degree, self.d)
        weights = self.kernel * (table @ state.masses)
        order = jnp.arange(self.degree + 1, dtype=s.dtype)
        potential = weights @ table
        slope = (order * weights)[1:] @ (table[:-1] - s[None] * table[1:])
        if self.unnormalised:
            return potential, jnp.exp(self.beta - self.shift) * slope / self.beta
        return potential, slope / (self.beta * potential)

    def drift(self, state: Rings, t: Array) -> Rings:
        """Heights move, masses stay."""
        return Rings(self._fields(state)[1], jnp.zeros_like(state.masses))

    def retract(self, state: Rings) -> Rings:
        """Heights stay within the poles."""
        return Rings(jnp.clip(state.heights, -1.0, 1.0), state.masses)

    def energy_deficit(self, state: Rings, t: Array) -> Float[Array, ""] | None:
        """F = (Σ_k g_k N_k m_k² - 1)/(2β)."""
        return (state.masses @ self._fields(state)[0] - 1) / (2 * self.beta)

    def power(self, state: Rings, t: Array) -> Float[Array, ""] | None:
        """Σ_j w_j U_j |ẋ_j|² (SA) or e^{shift-β} Σ_j w_j |ẋ_j|² (USA), |ẋ|² = ṡ²/(1-s²)."""
        potential, velocity = self._fields(state)
        square = velocity**2 / jnp.maximum(1 - state.heights**2, jnp.finfo(velocity.dtype).tiny)
        scale = jnp.exp(self.shift - self.beta) if self.unnormalised else potential
        return state.masses @ (scale * square)

    def steepness(self, state: Rings) -> Float[Array, ""]:
        """The largest of the last eighth of the coefficients of the flow map in orthonormal polynomials."""
        return jnp.max(jnp.abs(jnp.asarray(_last_rows(self.nodes, self.d), state.heights.dtype) @ state.heights))

    def admissible(self, state: Rings) -> Array | None:
        """Whether the flow map is resolved, far beyond where a hand-over is offered."""
        return self.steepness(state) < 1e3 * FULL if self.resolved else None

    @property
    def inadmissible(self) -> str:
        """How many rings to try."""
        return f"nodes = {self.nodes} no longer resolve the flow map (take {2 * self.nodes} or more)"

    def should_pause(self, state: Rings) -> Array | None:
        """Whether the flow map is about to be too steep."""
        return self.steepness(state) > FULL if self.resolved else None

    def handover(self, state: Any, t: float, until: float, at_horizon: bool) -> tuple[Model, Any, str] | None:
        """The same rings, as particles."""
        if not self.resolved:
            return None
        share = float(self.steepness(Rings(*map(jnp.asarray, state))))
        if share <= FULL:
            return None
        needed = math.ceil(self.nodes * math.log(ROUNDING) / math.log(min(share, 0.5)))
        reason = (
            f"{self.nodes} nodes no longer resolve the density (last coefficients {share:.1g}), this one takes "
            f"{needed} and sharper peaks more: rings go on as particles"
        )
        particles = ZonalMeasure(
            self.d, float(self.beta), self.nodes, self.unnormalised, float(self.shift), resolved=False
        )
        return particles, state, reason


@cache
def _last_rows(n: int, d: int) -> np.ndarray:
    """w_j p_k(s_j) at the Gauss nodes for the last n/8 degrees k < n."""
    nodes, weights = zonal_rule(n, d)
    return orthonormal_polynomials(nodes, d)[n - max(2, n // 8) :] * weights


MODELS.register(
    "zonal",
    Description(
        ZonalMeasure,
        "Mean field about an axis, any dimension",
        "ṡⱼ = (1−sⱼ²) ∂ₛ ln U(sⱼ)/β,  U = Σₖ gₖ N(d,k) mₖ Pₖ,  mₖ = Σⱼ wⱼ Pₖ(sⱼ)",
        "Bands of a degree k* that falls with the dimension; below β ≈ 2d/3 everything goes to one pole.",
        "start: zonal_quiet_start; d = 2…100, beta = 1…50, nodes = 100…400, until = 10",
        (METASTABLE_EMERGENCE,),
    ),
)
