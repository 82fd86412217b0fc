"""Sums by harmonics give the same drift as sums over pairs, to a tolerance known beforehand (derived).

e^{β(<x,y>-1)} = Σ_l g_l Σ_m Y_lm(x) Ȳ_lm(y) with Σ N(d,l) g_l = 1: what is left out above a degree is a known tail, so
the error of the kernel is bounded before anything is summed. Settings are those of Emergence of meta-stable clustering
in mean-field transformer models, arXiv:2410.23228, whose runs need many tokens.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated, Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy import special

from pathlines.attention import AlibiMask, PositionMask
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.metastability.slow_phase import attention_model
from pathlines.claim.tolerance import absolute, at_most
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import METASTABLE_EMERGENCE
from pathlines.foundation.setting import Setting, means
from pathlines.kernels.spectral import spectral_attend

KINDS = ("usa", "sa")


class CausalSums(Setting):
    """Random tokens under the causal mask."""

    n: of.Tokens = 1000
    betas: of.Betas = (9.0, 100.0)
    tolerance: of.KernelTolerance = 1e-14
    seed: of.Seed = 1


class HarmonicSums(Setting):
    """Random tokens at several tolerances."""

    n: of.Tokens = 800
    d: of.Dimension = 2
    betas: of.Betas = (4.0, 25.0, 100.0)
    tolerances: Annotated[tuple[of.Positive, ...], means("tolerances of the kernel", "ε")] = (1e-6, 1e-12)
    seed: of.Seed = 0


def _tokens(s: CausalSums | HarmonicSums, d: int) -> Array:
    return Sphere(d).uniform(jax.random.key(s.seed), s.n)


def _fast(x: Array, beta: float, name: str, tolerance: float, mask: PositionMask | None = None) -> np.ndarray:
    """P_{x_i} A_i by harmonics, masses 1/n."""
    masses = jnp.full(x.shape[0], 1 / x.shape[0])
    kind = attention_model(name, beta).attention
    summed = partial(spectral_attend, beta=beta, tolerance=tolerance, mask=mask)
    out, _ = jax.jit(lambda x: summed(kind, x, x, masses=masses))(x)
    return np.asarray(Sphere(x.shape[1]).tangent(x, out))


def _direct(x: np.ndarray, beta: float, masked: bool = False) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """(drifts by kind, Z_i = n^{-1} Σ_j e^{β(<x_i,x_j>-1)}), pair by pair in NumPy."""
    w = np.exp(-beta / 2 * np.maximum(0, 2 - 2 * x @ x.T))
    w = np.tril(w) if masked else w
    z, sums = w.mean(axis=1), w @ x / len(x)
    force = sums - np.sum(sums * x, axis=1, keepdims=True) * x
    return {"usa": force, "sa": force / z[:, None]}, z


# --- F1 and F4: fast = dense


def simulate_error(s: HarmonicSums) -> Evidence:
    """The largest deviation of the drift by harmonics from the sum over pairs, for each β and tolerance."""
    x = _tokens(s, s.d)
    direct = {beta: _direct(np.asarray(x), beta)[0] for beta in s.betas}
    values: dict[str, list[float]] = {name: [] for name in KINDS}
    for name in KINDS:
        for beta in s.betas:
            for tolerance in s.tolerances:
                off = _fast(x, beta, name, tolerance) - direct[beta][name]
                values[name].append(float(np.abs(off).max()))
    table = {name: np.reshape(v, (len(s.betas), -1)) for name, v in values.items()}
    curves = tuple(
        Curve(f"{name.upper()}, β = {beta:g}", s.tolerances, table[name][i])
        for name in KINDS
        for i, beta in enumerate(s.betas)
    )
    return Evidence(values, curves=curves)


def _spectrum(beta: float, d: int) -> np.ndarray:
    """N(d, l) g_l = N(d, l) Γ(d/2)(2/β)^a e^{-β} I_{l+a}(β), a = d/2 - 1, until it is rounding."""
    order, a = np.arange(30 + int(12 * np.sqrt(beta))), d / 2 - 1
    numbers = special.comb(order + d - 1, d - 1) - special.comb(order + d - 3, d - 1) * (order >= 2)
    return numbers * special.gamma(d / 2) * (2 / beta) ** a * special.ive(order + a, beta)


def _left_out(x: np.ndarray, beta: float, tolerances: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """What degrees above the cut add to each token's drift (USA) and to its Z, for each tolerance, pair by pair.

    Zonal polynomials by (l+d-2)P_{l+1} = (2l+d-2)sP_l - lP_{l-1}.
    """
    d, cosines = x.shape[1], np.clip(x @ x.T, -1, 1)
    weights = _spectrum(beta, d)
    tails = np.append(np.cumsum(weights[:0:-1])[::-1], 0.0)
    cuts = [int(np.argmax(tails <= eps)) for eps in tolerances]
    before, now = np.ones_like(cosines), cosines
    rests = [np.zeros_like(cosines) for _ in cuts]
    for order in range(1, len(weights)):
        for cut, rest in zip(cuts, rests, strict=True):
            if order > cut:
                rest += weights[order] * now
        before, now = now, ((2 * order + d - 2) * cosines * now - order * before) / (order + d - 2)
    sums = [rest @ x / len(x) for rest in rests]
    return [
        (np.linalg.norm(v - np.sum(v * x, axis=1, keepdims=True) * x, axis=1), np.abs(rest.mean(axis=1)))
        for v, rest in zip(sums, rests, strict=True)
    ]


def predict_error(s: HarmonicSums) -> Evidence:
    """What the cut leaves out of USA; over Z, with what it leaves out of Z times the drift, of SA; and rounding."""
    x = np.asarray(_tokens(s, s.d))
    values: dict[str, list[float]] = {name: [] for name in KINDS}
    for beta in s.betas:
        drifts, z = _direct(x, beta)
        floor = 1 + np.sqrt((s.d - 1) * beta) + beta if s.d > 2 else ROUNDINGS * (1 + np.sqrt(beta))
        rounding = np.finfo(float).eps * floor
        speed = np.linalg.norm(drifts["sa"], axis=1)
        for off, off_z in _left_out(x, beta, s.tolerances):
            values["usa"].append(float(off.max() + rounding))
            values["sa"].append(float(np.max((off + rounding + speed * (off_z + rounding)) / (z - off_z))))
    curve = Curve("ε", s.tolerances, s.tolerances)
    return Evidence(values, curves=(curve,), source="the degrees left out, summed over pairs")


ROUNDINGS = 8
"""On the circle, in units of the noise floor ε(1 + √β); elsewhere the floor has room, few tokens are at poles."""


BOUNDED = at_most("the degrees left out, for these tokens; a few roundings are in the bound")
ERROR_AXES = Axes("tolerance ε of the kernel", "largest error of the drift", "log", "log")

claim(
    "metastability/F1",
    METASTABLE_EMERGENCE,
    "Fourier sums on the circle are exact to their tolerance",
    "A drift by Fourier modes differs from the sum over all pairs by the modes left out, less than the tolerance ε of "
    "the kernel: below 10⁻¹³ (USA) and 2·10⁻¹³ (SA) for ε = 10⁻¹² at n = 3000, β = 4, 25, 100.",
    where="derived; numerical methods, no statement in the paper",
    models=("sa", "usa"),
    quick=HarmonicSums(),
    full=HarmonicSums(n=3000),
    within={"usa": BOUNDED, "sa": BOUNDED},
    simulate=simulate_error,
    predict=predict_error,
    axes=ERROR_AXES,
)

claim(
    "metastability/F4",
    METASTABLE_EMERGENCE,
    "spherical harmonics in three dimensions are exact to their tolerance",
    "On S² the same holds with spherical harmonics: below 10⁻¹² (USA) and 10⁻¹¹ (SA) for β = 4, 9, 25, 81.",
    where="derived; numerical methods, no statement in the paper",
    models=("sa", "usa"),
    quick=HarmonicSums(n=600, d=3, betas=(4.0, 25.0)),
    full=HarmonicSums(n=2000, d=3, betas=(4.0, 9.0, 25.0, 81.0)),
    within={"usa": BOUNDED, "sa": BOUNDED},
    simulate=simulate_error,
    predict=predict_error,
    axes=ERROR_AXES,
)


# --- F2: causal


def simulate_causal(s: CausalSums) -> Evidence:
    """Causal SA drifts by harmonics."""
    x = _tokens(s, 2)
    found = [_fast(x, beta, "sa", s.tolerance, AlibiMask(strict=False)) for beta in s.betas]
    curves = tuple(_speeds(f"harmonics, β = {b:g}", v) for b, v in zip(s.betas, found, strict=True))
    return Evidence({"drift": np.concatenate(found).ravel()}, curves=curves)


def predict_causal(s: CausalSums) -> Evidence:
    """Pairs j ≤ i in NumPy."""
    x = np.asarray(_tokens(s, 2))
    found = [_direct(x, beta, masked=True)[0]["sa"] for beta in s.betas]
    curves = tuple(_speeds(f"pairs, β = {b:g}", v) for b, v in zip(s.betas, found, strict=True))
    return Evidence({"drift": np.concatenate(found).ravel()}, curves=curves, source="direct sum over pairs")


def _speeds(label: str, drift: np.ndarray) -> Curve:
    every = max(1, len(drift) // 80)
    return Curve(label, np.arange(0, len(drift), every), np.linalg.norm(drift, axis=1)[::every])


claim(
    "metastability/F2",
    METASTABLE_EMERGENCE,
    "causal sums by prefix moments",
    "With the causal mask, moments of the earlier tokens give the drift of every token in O(nK): "
    "equal to the sum over pairs j ≤ i to 10⁻¹³.",
    where="derived; numerical methods, no statement in the paper",
    models=("sa",),
    quick=CausalSums(),
    full=CausalSums(n=3000, betas=(4.0, 9.0, 25.0, 100.0)),
    within={"drift": absolute(1e-13, "a few hundred roundings; the first tokens see few others and Z is not small")},
    simulate=simulate_causal,
    predict=predict_causal,
    axes=Axes("token i", "speed |ẋᵢ|"),
)
