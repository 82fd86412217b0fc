"""The mean field of self-attention on the circle, as a density in Fourier modes."""

from __future__ import annotations

import math
from functools import partial
from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex, Float
from scipy.special import ive

from pathlines.domain import Sphere
from pathlines.domain.circle_law import (
    QUIET_MODES,
    check_density_moments,
    circle_quantiles,
    on_circle,
)
from pathlines.foundation.errors import ArgumentError, finite_array, finite_number, positive_integer, require
from pathlines.foundation.papers import METASTABLE_EMERGENCE, Paper
from pathlines.model.base import MODELS, Description, Model
from pathlines.model.capability import HandsOver, HasDomain, HasEnergy, Pauses
from pathlines.model.metastability.circle import CircleAttention

FULL = 1e-10
"""A spectrum whose upper modes exceed this is full: the run continues with points."""
ROUNDING = 1e-16
NOISE = 1e-6
"""A spectrum whose upper modes exceed this is no density any more: no step is accepted there."""


class CircleDensity(HasEnergy, HasDomain, Pauses, HandsOver):
    """∂_t ρ + ∂_θ(ρ v) = 0,  v = U'/(βU) (SA) or e^{β-shift} U'/β (USA),  U = Σ_k g_k m_k e^{ikθ},  g_k = e^{-β}I_k(β).

    The mean-field equation of arXiv:2410.23228 on the circle; the state is its moments m_k = ∫ e^{-ikθ} dμ as rows
    (Re m_k, Im m_k), k = 0..K: dm_k/dt = -ik ∫ e^{-ikθ} v dμ, with the product on a grid of 4K points. Only
    the scaled kernel e^{β(cos θ-1)} is ever formed; ``shift`` = 0 is the printed clock, ``shift`` = β the scaled one,
    which runs e^β times slower (SA has one clock).

    Exact until the spectrum fills K, when clusters form. Then ``flow`` hands over to ``nodes`` quantile points
    (``CircleAttention``) and says in ``run.forms`` how many modes would have been needed; an ensemble, or another form
    than "auto", stops there instead. As ``tokens`` it shows its quantile points.

    Starts: moments (``density_moments``, ``QuietMoments``), or tokens, read as the density with their first 24 moments.
    Good values: β = 1..100, K = 64..512. Cost O(K log K) per drift.
    """

    papers: ClassVar[tuple[Paper, ...]] = (METASTABLE_EMERGENCE,)
    not_swept: ClassVar[tuple[str, ...]] = ("beta",)

    beta: Float[Array, ""]
    shift: Float[Array, ""]
    kernel: Float[Array, " k"]
    degree: int = eqx.field(static=True)
    nodes: int = eqx.field(static=True)
    unnormalised: bool = eqx.field(static=True)

    def __init__(
        self, beta: float = 9.0, degree: int = 128, nodes: int = 600, unnormalised: bool = False, shift: float = 0.0
    ) -> None:
        value = finite_number("beta", beta, low=0.0, open_low=True)
        shift = finite_number("shift", shift)
        require(not unnormalised or value - shift < 700, "shift", "be β for the scaled kernel, e^β overflows", shift)
        self.beta, self.shift = jnp.asarray(value), jnp.asarray(shift)
        self.degree, self.nodes = positive_integer("degree", degree, 2), positive_integer("nodes", nodes, 2)
        self.kernel = jnp.asarray(ive(np.arange(self.degree + 1), value))
        self.unnormalised = bool(unnormalised)

    def check(self, tokens: Any) -> None:
        """Moments of a density with at most K modes, or enough tokens on the circle to have one."""
        table = finite_array("start", tokens)
        if table.ndim != 2 or table.shape[1] != 2:
            wide = table.shape[1] if table.ndim == 2 else None
            raise ArgumentError(
                "Argument `start` must be moments of shape (K+1, 2) or tokens on the circle, but has shape "
                f"{table.shape}: this solver needs d = 2"
                + (f"; zonal measures of d = {wide} are for ZonalMeasure, tokens for SelfAttention." if wide else ".")
            )
        if bool(_are_tokens(table)):
            Sphere(2).check(table)
            table = np.asarray(self.initial(jnp.asarray(table)))[: QUIET_MODES + 1]
        check_density_moments(table)
        most = int(np.max(np.nonzero(np.abs(table).max(axis=1) > FULL)))
        must = f"exceed {most}, the highest mode of the start"
        require(most < self.degree, "degree", must, self.degree)
        resolved = float(self.fullness(self.initial(jnp.asarray(table)))) < NOISE
        must = f"exceed {2 * most}, twice the highest mode of the start (which soon has its double beside it)"
        require(resolved, "degree", must, self.degree)

    def initial(self, tokens: Float[Array, "k 2"]) -> Float[Array, "K 2"]:
        """The moments, with zeros up to K."""
        return _filled(tokens, self.degree + 1)

    def tokens(self, state: Float[Array, "K 2"], t: Array) -> Float[Array, "n 2"]:
        """The quantile points."""
        return on_circle(circle_quantiles(state, self.nodes))

    @property
    def modes(self) -> int:
        """How many modes its potential has."""
        return self.degree + 1

    def moments(self, state: Float[Array, "K 2"]) -> Complex[Array, " K"]:
        """m_0..m_K."""
        return jax.lax.complex(state[:, 0], state[:, 1])

    def density(self, state: Float[Array, "K 2"]) -> Float[Array, " G"]:
        """ρ(θ_j), θ_j = 2πj/G, G = 4K."""
        return self._on_grid(self.moments(state)) / (2 * math.pi)

    @property
    def _points(self) -> int:
        return 4 * self.degree

    def _on_grid(self, coefficients: Complex[Array, "*s K"]) -> Float[Array, "*s G"]:
        """Σ over k ∈ Z of a real series given for k ≥ 0."""
        return jnp.fft.irfft(coefficients * self._points, self._points)

    def _fields(self, state: Float[Array, "K 2"]) -> tuple[Array, Array, Array]:
        """U, velocity and relative density 2πρ on the grid."""
        m = self.moments(state)
        shaped = self.kernel.astype(m.dtype) * m
        series = jnp.stack([m, shaped, 1j * jnp.arange(self.degree + 1, dtype=state.dtype).astype(m.dtype) * shaped])
        relative, potential, slope = self._on_grid(series)
        if self.unnormalised:
            velocity = jnp.exp(self.beta - self.shift) * slope / self.beta
        else:
            velocity = slope / (self.beta * potential)
        return potential, velocity, relative

    def drift(self, state: Float[Array, "K 2"], t: Array) -> Float[Array, "K 2"]:
        """-ik times the moments of v dμ."""
        _, velocity, relative = self._fields(state)
        flux = jnp.fft.rfft(velocity * relative)[: self.degree + 1] / self._points
        change = -1j * jnp.arange(self.degree + 1, dtype=state.dtype) * flux
        return jnp.stack([change.real, change.imag], axis=-1)

    def energy_deficit(self, state: Float[Array, "K 2"], t: Array) -> Float[Array, ""] | None:
        """F = (Σ_{k∈Z} g_k |m_k|² - 1)/(2β)."""
        potential, _, relative = self._fields(state)
        return (jnp.mean(potential * relative) - 1) / (2 * self.beta)

    def power(self, state: Float[Array, "K 2"], t: Array) -> Float[Array, ""] | None:
        """∫ U v² dμ (SA) or e^{shift-β} ∫ v² dμ (USA)."""
        potential, velocity, relative = self._fields(state)
        scale = jnp.exp(self.shift - self.beta) if self.unnormalised else potential
        return jnp.mean(scale * velocity**2 * relative)

    def fullness(self, state: Float[Array, "K 2"]) -> Float[Array, ""]:
        """How large the moments are three quarters up the spectrum: what is cut off is smaller.

        The largest of the moments m_j, j ≥ K/2, continued geometrically to 3K/4 where j is below it. Half of them,
        because the moments of k equal peaks are zero but for multiples of k, and one of those is always there.
        """
        order = jnp.arange(self.degree - self.degree // 2, self.degree + 1, dtype=state.dtype)
        sizes = jnp.max(jnp.abs(state[-len(order) :]), axis=-1)
        return jnp.max(sizes ** jnp.maximum(1.0, 0.75 * self.degree / order))

    def admissible(self, state: Float[Array, "K 2"]) -> Array | None:
        """Whether the spectrum still ends before K, and no moment exceeds the mass."""
        return (self.fullness(state) < NOISE) & (jnp.max(jnp.abs(state)) < 1 + NOISE)

    @property
    def inadmissible(self) -> str:
        """Which degree to try."""
        return f"degree = {self.degree} no longer resolves the density (take {2 * self.degree} or more)"

    def should_pause(self, state: Float[Array, "K 2"]) -> Array | None:
        """Whether the spectrum is about to fill."""
        return self.fullness(state) > FULL

    def handover(self, state: Any, t: float, until: float, at_horizon: bool) -> tuple[Model, Any, str] | None:
        """Quantile points once the spectrum is full."""
        share = float(self.fullness(jnp.asarray(state)))
        if share <= FULL:
            return None
        needed = math.ceil(self.degree * math.log(ROUNDING) / math.log(min(share, 0.5)))
        points = CircleAttention(float(self.beta), None, self.unnormalised, self.shift)
        reason = (
            f"degree = {self.degree} is full (the upper moments reach {share:.1g}), to resolve this density takes "
            f"{needed} and sharper peaks more: {self.nodes} quantile points go on"
        )
        return points, circle_quantiles(jnp.asarray(state), self.nodes), reason


def _are_tokens(rows: Any) -> Any:
    """Moments begin with (1, 0) and are smaller after it; tokens are unit vectors."""
    return (abs((rows * rows).sum(axis=-1) - 1) < 1e-5).all()


@partial(jax.jit, static_argnums=1)
def _filled(rows: Float[Array, "k 2"], size: int) -> Float[Array, "K 2"]:
    """Moments, or those of tokens up to mode 24, with zeros up to ``size`` rows."""
    angles = (
        jnp.arctan2(rows[:, 1], rows[:, 0])[None] * jnp.arange(min(QUIET_MODES + 1, size), dtype=rows.dtype)[:, None]
    )
    theirs = jnp.stack([jnp.mean(jnp.cos(angles), axis=1), -jnp.mean(jnp.sin(angles), axis=1)], axis=-1)
    filled = lambda x: jnp.pad(x[:size], ((0, max(0, size - len(x))), (0, 0)))  # noqa: E731
    return jnp.where(_are_tokens(rows), filled(theirs), filled(rows))


MODELS.register(
    "circle-density",
    Description(
        CircleDensity,
        "Mean field on the circle, Eulerian",
        "∂ₜρ + ∂θ(ρ ∂θ ln U/β) = 0,  U = Σₖ e^{−β}Iₖ(β) mₖ e^{ikθ},  mₖ = ∫ e^{−ikθ} dμ",
        "A nearly uniform density breaks into about √(2β) peaks; when they are too sharp for K modes, points go on.",
        "start: moments, or n ≥ 1200 tokens of d = 2; beta = 1…100, degree = 64…512, until = 10",
        (METASTABLE_EMERGENCE,),
    ),
)
