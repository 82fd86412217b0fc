"""Attention beside a gradient perceptron: ascent or descent of one energy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.attention import UnnormalisedAttention
from pathlines.foundation.errors import finite_array, finite_number, positive_integer, require
from pathlines.foundation.papers import PERCEPTRON_LANDSCAPE, Paper
from pathlines.kernels.choice import Choice
from pathlines.model.base import MODELS, Description
from pathlines.model.capability import HasAttention, HasEnergy, HasFastSums, HasLayers
from pathlines.model.parts.perceptron import Perceptron
from pathlines.model.self_attention import SelfAttention
from pathlines.weights import IdentityWeights

_NORM = jax.scipy.stats.norm
PRIMITIVES: dict[str, Any] = {
    "relu": lambda s: jax.nn.relu(s) ** 2,
    "gelu": lambda s: s * s * _NORM.cdf(s) + s * _NORM.pdf(s) - _NORM.cdf(s),
    "tanh": lambda s: 2 * (jnp.abs(s) + jnp.log1p(jnp.exp(-2 * jnp.abs(s))) - np.log(2)),
    "erf": lambda s: 2 * (s * jax.lax.erf(s) + jnp.expm1(-s * s) / np.sqrt(np.pi)),
    "linear": lambda s: s * s,
}
"""φ with φ' = 2σ; φ(-∞) = 0 for relu and gelu, φ(0) = 0 for the others."""
FLOWS = {"ascent": 1.0, "descent": -1.0}
KINDS = ("usa", "sa")
KERNELS = ("scaled", "unscaled")


class PerceptronLandscape(HasLayers, HasAttention, HasFastSums, HasEnergy):
    """dx_i/dt = ±P_{x_i}(Σ_j a_ij x_j + Σ_k ω_k σ(a_k·x_i + b_k) a_k), a_ij = m_j e^{β(<x_i,x_j>-1)} (USA) or softmax.

    Perceptrons and localization of attention's mean-field landscape, arXiv:2601.21366. The perceptron is ½∇v with
    v(x) = Σ_k ω_k φ(a_k·x + b_k), φ' = 2σ, so USA climbs (+, ``flow="ascent"``) or descends (-) the energy

        E = (κ/2β) Σ_ij m_i m_j e^{β(<x_i,x_j>-1)} + ½ Σ_i m_i v(x_i),     dE/dt = ±Σ_i m_i |dx_i/dt|²,

    κ = 1. With ``kernel="unscaled"``, a_ij = m_j e^{β<x_i,x_j>} as printed, κ = e^β: the perceptron weighs e^β times
    less beside attention, which no change of clock undoes. SA has no such energy; dE/dt = Σ_i m_i <∇E_i, dx_i/dt>
    holds all the same and is what ``power`` gives. Independent output vectors instead of ω_k a_k (no energy) are
    ``SelfAttention(perceptron=Perceptron(outer, inner))``.

    You will see descent split what attention would gather: tokens settle in finitely many atoms where v is low.
    Ascent ends in one point at a local maximum of v. Good values: β = 1..25, two neurons on the circle, |ω| about 1,
    until 50 (descent near ω = -1 is slow: rate 1 - |ω|). Cost: that of attention, plus O(n d) per neuron.
    """

    papers: ClassVar[tuple[Paper, ...]] = (PERCEPTRON_LANDSCAPE,)
    not_swept: ClassVar[tuple[str, ...]] = ("beta",)

    inner: SelfAttention
    strengths: Float[Array, " m"]
    shift: Float[Array, ""]
    sign: Float[Array, ""]

    def __init__(
        self,
        beta: float,
        directions: Any,
        strengths: Any,
        *,
        biases: Any = None,
        activation: str = "relu",
        flow: str = "descent",
        kind: str = "usa",
        kernel: str = "scaled",
        multiplicities: Any = None,
        summation: str = "auto",
    ) -> None:
        beta = finite_number("beta", beta, low=0.0, open_low=True)
        for name, value, allowed in (("flow", flow, FLOWS), ("kind", kind, KINDS), ("kernel", kernel, KERNELS)):
            require(value in allowed, name, "be one of " + ", ".join(repr(a) for a in allowed), value)
        require(activation in PRIMITIVES, "activation", "be one of " + ", ".join(PRIMITIVES), activation)
        a = finite_array("directions", directions, ("m", "d")).astype(float)
        omega = finite_array("strengths", strengths, (len(a),)).astype(float)
        shift = beta if kernel == "scaled" else 0.0
        sign = FLOWS[flow]
        self.inner = SelfAttention(
            beta,
            attention=UnnormalisedAttention(jnp.asarray(shift)) if kind == "usa" else None,
            weights=IdentityWeights(sign),
            perceptron=Perceptron(sign * omega * a.T, a, biases, activation),
            multiplicities=multiplicities,
            summation=summation,
        )
        self.strengths, self.shift, self.sign = jnp.asarray(omega), jnp.asarray(shift), jnp.asarray(sign)

    @property
    def beta(self) -> Float[Array, ""]:
        """Inverse temperature."""
        return self.inner.beta

    @property
    def multiplicities(self) -> Float[Array, " n"] | None:
        """Token multiplicities."""
        return self.inner.multiplicities

    @property
    def scale(self) -> Float[Array, ""]:
        """κ = e^{β - shift}."""
        return jnp.exp(self.beta - self.shift)

    @property
    def perceptron(self) -> Perceptron:
        """The block ±½∇v."""
        assert self.inner.perceptron is not None
        return self.inner.perceptron

    def with_fast_sums(self, n: int, d: int, dtype: Any, relative: float) -> tuple[Self, Choice | None]:
        """As the attention inside."""
        inner, choice = self.inner.with_fast_sums(n, d, dtype, relative)
        return eqx.tree_at(lambda m: m.inner, self, inner), choice

    def check(self, tokens: Any) -> None:
        """Unit tokens of the width of the neurons."""
        self.inner.check(tokens)

    def initial(self, tokens: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """The state is the tokens."""
        return tokens

    def tokens(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """The tokens are the state."""
        return state

    def retract(self, state: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """N(x) = x/|x|."""
        return self.inner.retract(state)

    def drift(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n d"]:
        """±P_{x_i}(χ_i + u_i)."""
        return self.inner.drift(state, t)

    def layer(self, state: Float[Array, "n d"], t: Array, step: Array) -> Float[Array, "n d"]:
        """x_i ← N(x_i ± η(χ_i + u_i))."""
        return self.inner.layer(state, t, step)

    def attention_matrix(self, state: Float[Array, "n d"], t: Array) -> Float[Array, "n n"]:
        """a_ij."""
        return self.inner.attention_matrix(state, t)

    def potential(self, x: Float[Array, "p d"]) -> Float[Array, " p"]:
        """v at each row."""
        block = self.perceptron
        return PRIMITIVES[block.activation](x @ block.inner.T + block.bias[None]) @ self.strengths

    def first_variation(self, x: Float[Array, "p d"], state: Float[Array, "n d"]) -> Float[Array, " p"]:
        """f(x) = (κ/β) Σ_j m_j e^{β(<x,x_j>-1)} + ½v(x) of the tokens of ``state``, at each row of x."""
        masses = self.normalised_masses(state.shape[0], state.dtype)
        near = jnp.exp(-self.beta / 2 * jnp.sum((x[:, None, :] - state[None, :, :]) ** 2, axis=-1))
        return self.scale / self.beta * near @ masses + self.potential(x) / 2

    def energy(self, state: Float[Array, "n d"]) -> Float[Array, ""]:
        """E in the units of the kernel."""
        return self.scale * (self._deficit(state) + 1 / (2 * self.beta))

    def _deficit(self, x: Float[Array, "n d"]) -> Float[Array, ""]:
        masses = self.normalised_masses(x.shape[0], x.dtype)
        pairs = self.inner.energy_deficit(x, jnp.zeros((), x.dtype))
        assert pairs is not None
        return pairs + masses @ self.potential(x) / (2 * self.scale)

    def energy_deficit(self, state: Float[Array, "n d"], t: Array) -> Float[Array, ""] | None:
        """F = E/κ - 1/(2β): zero for one point where v = 0."""
        return self._deficit(state)

    def power(self, state: Float[Array, "n d"], t: Array) -> Float[Array, ""] | None:
        """dF/dt = κ⁻¹ Σ_i m_i <∇E_i, dx_i/dt>, ∇E_i = κ_i χ_i + u_i with κ_i = 1 for USA, κ Σ_j m_j w_ij for SA."""
        out, log_scale = self.inner.attend(state, t)
        sphere = self.inner.domain(state.shape[-1])
        attended = out - self.perceptron(state)
        slope = sphere.tangent(state, out + jnp.expm1(log_scale - self.shift)[:, None] * attended)
        work = jnp.sum(slope * sphere.tangent(state, out), axis=-1)
        return self.sign * self.normalised_masses(state.shape[0], state.dtype) @ work / self.scale


ANGLES, STRENGTHS = [0.0, 2.0], [1.0, -0.7]


def neurons_in_plane(
    beta: float = 4.0,
    angles: Sequence[float] = ANGLES,
    strengths: Sequence[float] = STRENGTHS,
    activation: str = "relu",
    flow: str = "descent",
    kind: str = "usa",
    kernel: str = "scaled",
    d: int = 2,
) -> PerceptronLandscape:
    """Unit neurons at the given angles in the plane of the first two coordinates."""
    theta = finite_array("angles", angles, ("m",)).astype(float)
    a = np.zeros((len(theta), positive_integer("d", d, 2)))
    a[:, 0], a[:, 1] = np.cos(theta), np.sin(theta)
    return PerceptronLandscape(beta, a, strengths, activation=activation, flow=flow, kind=kind, kernel=kernel)


MODELS.register(
    "perceptron",
    Description(
        neurons_in_plane,
        "Attention and a gradient perceptron",
        "ẋᵢ = ±P_xᵢ( n⁻¹ Σⱼ e^{β(⟨xᵢ,xⱼ⟩−1)} xⱼ + Σₖ ωₖ σ(aₖ·xᵢ) aₖ )",
        "Descent settles in finitely many atoms where the potential is low; ascent gathers at its maxima.",
        "d = 2, n = 50…500, beta = 1…25, angles and strengths of the neurons, flow = ascent or descent, until = 50",
        (PERCEPTRON_LANDSCAPE,),
    ),
)
