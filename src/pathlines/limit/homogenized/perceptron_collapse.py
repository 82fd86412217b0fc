"""What a random perceptron layer does to collapse: it may undo it, or synchronise tokens by noise alone.

After attention, x ↦ N(x + perceptron) moves a common overlap γ by (d -> ∞; power v_m, kernel κ)

    γ'' = (γ' + v_m κ(γ'))/(1 + v_m κ(1)),         layer by layer after γ' = (γ + v_a S(γ))/(1 + v_a P(γ)),
    γ̇  = v_a (S - γP) + v_m (κ(γ) - γκ(1)),        as an ODE per layer.

At γ = 1 attention has slope 1/(1+v_a) whatever its logits, the perceptron (1+v_mκ'(1))/(1+v_mκ(1)). So collapse is
undone iff v_m(κ'(1) - κ(1)) > v_a (1 + v_m κ(1)) for layers, and iff v_m(κ'(1) - κ(1)) > v_a for the ODE, the limit of
small powers. ReLU has κ'(1) = κ(1): never. Derived, after the perceptron remark of Homogenized Transformers,
arXiv:2604.01978. Rates under perceptron noise alone: the setting of arXiv:2604.26898, derived; not compared with the
condition of that paper.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize

from pathlines.foundation.errors import finite_number, positive_integer
from pathlines.foundation.numbers import one_of, real_array
from pathlines.foundation.papers import HOMOGENIZED, SYNCHRONIZATION
from pathlines.limit.homogenized.perceptron_kernel import Activation, ends, perceptron_kernel
from pathlines.limit.homogenized.wishart import chi_square_rule

SOURCES = (HOMOGENIZED, SYNCHRONIZATION)
KINDS = ("layers", "ode")
_GAUSS = 16  # nodes each way, for layers of small noise: 1e-12 up to σ²δκ'(1) = 0.1
Scalar = Callable[[float], float]


def perceptron_step(
    overlap: ArrayLike, power: float, activation: str | Activation = "relu", sigma_w: float = 1.0
) -> np.ndarray:
    """γ'' = (γ' + v_m κ(γ'))/(1 + v_m κ(1)), one perceptron layer."""
    gamma, v = real_array("overlap", overlap, -1.0, 1.0), finite_number("power", power, 0.0)
    top, _ = ends(activation, sigma_w)
    return ((gamma + v * perceptron_kernel(gamma, activation, sigma_w)) / (1 + v * top))[()]


def perceptron_rate(overlap: ArrayLike, activation: str | Activation = "relu", sigma_w: float = 1.0) -> np.ndarray:
    """κ(γ) - γκ(1), the term that v_m multiplies in the ODE of γ."""
    gamma = real_array("overlap", overlap, -1.0, 1.0)
    top, _ = ends(activation, sigma_w)
    return (perceptron_kernel(gamma, activation, sigma_w) - gamma * top)[()]


def collapse_margin(
    attention: float, power: float, activation: str | Activation = "relu", sigma_w: float = 1.0, kind: str = "layers"
) -> float:
    """v_m(κ'(1)-κ(1)) - v_a(1+v_mκ(1)) for layers, without the last factor for the ODE: positive, no collapse."""
    one_of("kind", kind, KINDS)
    v_a, v_m = finite_number("attention", attention, 0.0), finite_number("power", power, 0.0)
    top, slope = ends(activation, sigma_w)
    return v_m * (slope - top) - v_a * (1 + v_m * top if kind == "layers" else 1.0)


def resting_overlap(
    attention: float,
    power: float,
    cross: Scalar,
    own: Scalar,
    activation: str | Activation = "relu",
    sigma_w: float = 1.0,
    start: float = 0.0,
    points: int = 400,
) -> float:
    """The fixed point that attention plus perceptron layers lead ``start`` to; 1 when they collapse.

    ``cross`` and ``own`` are S(γ) = s_ij and P(γ) = s_ii of the attention. The increment of γ over a layer is searched
    for its first change of sign beyond ``start`` (``points`` points, refined towards γ = 1), then bisected: the map is
    increasing, so that is where the iteration rests.
    """
    v_a = finite_number("attention", attention, 0.0)
    begin = finite_number("start", start, -1.0, 1.0)
    finite_number("power", power, 0.0)

    def increment(gamma: float) -> float:
        middle = (gamma + v_a * cross(gamma)) / (1 + v_a * own(gamma))
        return float(perceptron_step(min(middle, 1.0), power, activation, sigma_w)) - gamma

    here = increment(begin)
    if here == 0.0:
        return begin
    fraction = 1 - np.logspace(0, -9, positive_integer("points", points, least=2))
    target = 1.0 if here > 0 else -1.0
    before = begin
    for gamma in begin + (target - begin) * fraction[1:]:
        if increment(float(gamma)) * here <= 0:
            return float(optimize.brentq(increment, before, float(gamma), xtol=1e-14, rtol=1e-14))
        before = float(gamma)
    return target


def mean_separation_rate(
    d: int, activation: str | Activation = "relu", sigma_w: float = 1.0, strength: float = 1.0, sigma_b: float = 0.0
) -> float:
    """(σ²/d)[(d-1)(κ'(1)-κ(1)) + 2κ(1)]: growth rate of E(1-R) at R = 1 under perceptron noise σ²κ/d alone."""
    d, top, slope, squared = _noise(d, activation, sigma_w, strength, sigma_b)
    return squared / d * ((d - 1) * (slope - top) + 2 * top)


def typical_separation_rate(
    d: int, activation: str | Activation = "relu", sigma_w: float = 1.0, strength: float = 1.0, sigma_b: float = 0.0
) -> float:
    """(σ²/d)[(d-3)κ'(1) - (d-1)κ(1)]: drift of log(1-R) at R = 1; negative: tokens synchronise by noise.

    -2σ²κ(1)/d for relu and linear, the gap between the two top Lyapunov exponents of isotropic matrix noise.
    """
    d, top, slope, squared = _noise(d, activation, sigma_w, strength, sigma_b)
    return squared / d * ((d - 3) * slope - (d - 1) * top)


def layer_separation_rates(
    d: int,
    step: float,
    activation: str | Activation = "relu",
    sigma_w: float = 1.0,
    strength: float = 1.0,
    sigma_b: float = 0.0,
) -> tuple[float, float]:
    """(typical, mean) separation rate per unit of time of layers x ← N(x + σ√δ u) of length δ = ``step`` (derived).

    They tend to ``typical_separation_rate`` and ``mean_separation_rate`` as δ → 0. Nearly equal tokens x, x+Δ receive
    u and u + |Δ|√(κ'(1)/d) h with u of variance κ(1)/d, h standard normal, independent to leading order in Δ. With w =
    x + σ√δ u and s² = σ²δκ'(1)/d the gap 1-R is multiplied by |P_w(Δ̂ + s h)|²/|w|², where |P_wΔ̂|² = 1 - ⟨w,Δ̂⟩²/|w|²:
    tensor Gauss rules in ⟨w,x⟩, ⟨w,Δ̂⟩, the χ² of the d-2 other directions of w, h along P_wΔ̂ and the χ² of its others.
    At d = 2 there are no others, and log of 0 is in reach: h takes an even rule of 4000 points.
    """
    d, top, slope, squared = _noise(d, activation, sigma_w, strength, sigma_b)
    delta = finite_number("step", step, 0.0, open_low=True)
    others = d - 2
    a, s = squared * delta * top / d, squared * delta * slope / d
    g, share = np.polynomial.hermite_e.hermegauss(_GAUSS)
    share = share / share.sum()
    rest, chance = chi_square_rule(others, _GAUSS) if others else (np.zeros(1), np.ones(1))
    even = (np.arange(4000) - 1999.5) * (9 / 2000)
    h, odds = (g, share) if others else (even, np.exp(-(even**2) / 2) / np.exp(-(even**2) / 2).sum())
    first, side, beyond = (1 + np.sqrt(a) * g[:, None, None]) ** 2, a * (g**2)[:, None], a * others * rest
    whole = (first + side + beyond)[..., None, None]
    left = (first + beyond)[..., None, None] / whole
    moved = (np.sqrt(left) + np.sqrt(s) * h[:, None]) ** 2 + s * others * rest
    weights = np.einsum("i,j,k,l,m->ijklm", share, share, chance, odds, chance)
    ratio = moved / whole
    return float(np.sum(weights * np.log(ratio))) / delta, float(np.log(np.sum(weights * ratio))) / delta


def synchronises(d: int, activation: str | Activation = "relu", sigma_w: float = 1.0, sigma_b: float = 0.0) -> bool:
    """κ'(1)/κ(1) < (d-1)/(d-3), always true for d ≤ 3: nearby tokens come together under perceptron noise alone."""
    return typical_separation_rate(d, activation, sigma_w, sigma_b=sigma_b) < 0


def _noise(
    d: int, activation: str | Activation, sigma_w: float, strength: float, sigma_b: float
) -> tuple[int, float, float, float]:
    top, slope = ends(activation, sigma_w, sigma_b)
    return positive_integer("d", d, least=2), top, slope, finite_number("strength", strength, 0.0) ** 2
