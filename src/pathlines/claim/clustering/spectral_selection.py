"""Symmetric weights Q^T K = V = V^T: which eigenvector wins, and which polarised states survive.

Spectral Selection in Symmetric Self-Attention Dynamics, arXiv:2604.26085.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PRNGKeyArray
from scipy import optimize

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.fitting import Mistake
from pathlines.claim.tolerance import absolute, at_least, exactly, relative
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import SPECTRAL_SELECTION
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import ensemble
from pathlines.integrate.observe import positions
from pathlines.limit.clustering.symmetric import attractors, bipolar_threshold, pure_state_growth
from pathlines.model import SelfAttention
from pathlines.observable.sphere import mode_mass
from pathlines.weights import FixedWeights


def symmetric_model(eigenvalues: Any, beta: float) -> SelfAttention:
    """SA with V = Q^T K = diag(λ)."""
    value = np.diag(np.asarray(eigenvalues, float))
    return SelfAttention(beta, weights=FixedWeights(value, query=value))


def _weakened(right: Any, size: float) -> Any:
    """The eigenvalue that decides is too small."""
    share = lambda values: np.where(np.abs(values) == np.max(np.abs(values)), 1 - size, 1.0)  # noqa: E731
    return lambda eigenvalues, beta: right(share(eigenvalues) * eigenvalues, beta)


WEAKENED = Mistake("symmetric_model", "the largest eigenvalue {:.0%} too small", _weakened, (0.5, 0.7))


# --- CL-37: homogeneous selection


def _positive_start(key: PRNGKeyArray, n: int, d: int, leading: int) -> Array:
    """Uniform on the half sphere <x, e_leading> > 0."""
    x = Sphere(d).uniform(key, n)
    return x.at[:, leading].set(jnp.abs(x[:, leading]))


@lru_cache(maxsize=32)
def _positive_law(n: int, d: int, leading: int) -> Any:
    return partial(_positive_start, n=n, d=d, leading=leading)


class Homogeneous(Setting):
    """Tokens on one side of the leading eigenvector."""

    eigenvalues: of.Eigenvalues = (3.0, 1.0, -2.0)
    beta: of.Beta = 1.0
    n: of.Tokens = 10
    runs: of.Runs = 30
    until: of.Until = 15.0
    records: of.Records = 121
    seed: of.Seed = 0
    rtol: of.Rtol = 1e-10


def simulate_homogeneous(s: Homogeneous) -> Evidence:
    """Mass on each eigenvector at the end of every run."""
    leading, d = int(np.argmax(s.eigenvalues)), len(s.eigenvalues)
    run = ensemble(
        symmetric_model(s.eigenvalues, s.beta),
        _positive_law(s.n, d, leading),
        runs=s.runs,
        key=jax.random.key(s.seed),
        times=np.linspace(0.0, s.until, s.records),
        record=(mode_mass, positions),
        rtol=s.rtol,
    )
    mass = run["mode_mass"].values
    order = np.argsort(s.eigenvalues)
    mean, error = mean_and_error(mass)
    curves = tuple(Curve(f"λ = {s.eigenvalues[k]:g}", run.time, mean[:, i], error[:, i]) for i, k in enumerate(order))
    away = np.delete(run["tokens"].values, leading, axis=-1)
    lowest = run["tokens"].values[..., leading].min(axis=(0, 2))
    rate, advice = late_decay(run.time, np.sum(away**2, axis=(0, 2, 3)))
    undecided = {"late_rate": advice} if advice else {}
    if 1 - lowest[-1] > SELECTED and lowest[-1] > lowest[-2] + 10 * s.rtol:
        undecided["leading_coordinate"] = _longer(s, 1 - lowest[-1], selection_rate(s.eigenvalues))
    values = {"leading_coordinate": float(lowest[-1]), "late_rate": rate}
    return Evidence(values, curves=curves, runs=(run,), undecided=undecided)


SELECTED = 1e-6
"""A token this close to an eigenvector has arrived."""


def late_decay(times: np.ndarray, square: np.ndarray) -> tuple[float, str]:
    """Decay rate of a square distance between the last two records in [1e-16, 1e-3], and advice if it has not settled.

    The first bound is far above the solver's noise, the second where the linear law begins.
    """
    inside = np.nonzero((square > 1e-16) & (square < 1e-3))[0][-3:]
    if len(inside) < 3:
        return np.nan, "a larger until, or more records: too few of them are close to the limit"
    rates = -np.diff(np.log(square[inside])) / np.diff(times[inside])
    settled = abs(rates[1] - rates[0]) <= 0.002 * rates[1]
    return float(rates[1]), "" if settled else "a larger until, or more records: the rate still changes"


def selection_rate(eigenvalues: Any) -> float:
    """Rate of |x - e_1|² near consensus: the mean leaves e_k at λ_1 - λ_k, differences die at λ_1 (linearisation)."""
    values = np.sort(np.asarray(eigenvalues, float))
    return float(2 * min(values[-1], *(values[-1] - values[:-1])))


def unresolved(eigenvalues: Any, until: float, n: int, tolerance: float) -> str:
    """Advice where the late rate still holds another exponent, by more than half the tolerance, when it is read.

    A share of up to n of it is left e^{-gap·window}, the window from square distances of 1e-3 down to 1e-16.
    """
    top, *others = np.sort(np.asarray(eigenvalues, float))[::-1]
    rate = selection_rate(eigenvalues)
    window = min(np.log(1e13), rate * until - np.log(1e3 * n)) / rate
    gaps = 2 * np.array([top, *(top - np.array(others))]) - rate
    left = float(np.sum(gaps * np.minimum(1.0, n * np.exp(-gaps * window)))) / rate
    return "eigenvalues further apart: two exponents cannot be told apart in the window" if left > tolerance / 2 else ""


class TwoTokens(Setting):
    """Two tokens under negative eigenvalues."""

    eigenvalues: of.Eigenvalues = (-0.5, -1.0, -3.0)
    beta: of.Beta = 1.0
    runs: of.Runs = 50
    until: of.Until = 60.0
    records: of.Records = 241
    seed: of.Seed = 0
    rtol: of.Rtol = 1e-10


def _longer(s: Homogeneous | TwoTokens, deficit: float, rate: float) -> str:
    """Advice on time from what is left and the late rate, at least twice the time."""
    needed = s.until + np.log(deficit / SELECTED) / max(rate, 1e-12)
    return f"until={max(2 * s.until, needed):.3g} or more"


def predict_homogeneous(s: Homogeneous) -> Evidence:
    """Every token at +e_1, when λ_1 > |λ_k| for all others; nothing is known otherwise."""
    values = np.sort(np.asarray(s.eigenvalues, float))
    known = values[-1] > np.max(np.abs(values[:-1]), initial=0.0)
    curve = Curve("all on the leading eigenvector", [0.0, s.until], [1.0, 1.0])
    expected = {"leading_coordinate": 1.0, "late_rate": selection_rate(s.eigenvalues)} if known else {}
    advice = unresolved(s.eigenvalues, s.until, s.n, 0.02) if known else ""
    undecided = {"late_rate": advice} if advice else {}
    return Evidence({"leading_coordinate": None, "late_rate": None, **expected}, curves=(curve,), undecided=undecided)


claim(
    "clustering/CL-37",
    SPECTRAL_SELECTION,
    "homogeneous selection of the leading eigenvector",
    "If λ₁ > |λₖ| for all k ≠ 1 and every token starts with ⟨xᵢ,e₁⟩ > 0, all tokens converge to e₁, Σ|xᵢ−e₁|² at the "
    "rate 2·min(λ₁, λ₁−λ₂) (derived).",
    where="theorem on homogeneous selection; the rate is derived",
    models=("sa",),
    quick=Homogeneous(),
    full=Homogeneous(runs=1000),
    within={
        "leading_coordinate": at_least("worst token of all runs", slack=SELECTED),
        "late_rate": relative(0.02, "the next exponent: ten times what the rate still changes by between records"),
    },
    simulate=simulate_homogeneous,
    predict=predict_homogeneous,
    axes=Axes("depth-time t", "n⁻¹Σ⟨xᵢ,eₖ⟩²"),
    mistakes=(WEAKENED,),
)


# --- CL-38: polarisation of two tokens


@lru_cache(maxsize=32)
def _uniform_law(n: int, d: int) -> Any:
    return partial(Sphere(d).uniform, n=n)


def simulate_polarisation(s: TwoTokens) -> Evidence:
    """Final coordinates of both tokens along the most negative eigenvector."""
    d = len(s.eigenvalues)
    run = ensemble(
        symmetric_model(s.eigenvalues, s.beta),
        _uniform_law(2, d),
        runs=s.runs,
        key=jax.random.key(s.seed),
        times=np.linspace(0.0, s.until, s.records),
        record=positions,
        rtol=s.rtol,
    )
    x = run["tokens"].values
    low = x[:, :, :, int(np.argmin(s.eigenvalues))]
    away = np.delete(x, int(np.argmin(s.eigenvalues)), axis=-1)
    rate, advice = late_decay(run.time, np.sum(away**2, axis=(0, 2, 3)))
    values = {
        "signs_product": np.sign(low[:, -1, 0] * low[:, -1, 1]),
        "alignment": float(np.abs(low[:, -1]).min()),
        "late_rate": rate,
    }
    undecided = {"late_rate": advice} if advice else {}
    left, left_before = (1 - np.abs(low[:, k]).min() for k in (-1, -2))
    if left > SELECTED and left < left_before - 10 * s.rtol:
        undecided |= dict.fromkeys(("signs_product", "alignment"), _longer(s, left, _bipolar_rate(s)))
    overlap = np.sum(x[:, :, 0] * x[:, :, 1], axis=-1)
    curve = Curve("mean ⟨x₁,x₂⟩", run.time, *mean_and_error(overlap))
    return Evidence(values, curves=(curve,), runs=(run,), undecided=undecided)


def _bipolar_rate(s: TwoTokens) -> float:
    """Rate of the square distance from ±e_d, from the blocks of the linearisation."""
    return -2 * float(pure_state_growth(s.eigenvalues, int(np.argmin(s.eigenvalues)), s.beta, 1, 1))


def predict_polarisation(s: TwoTokens) -> Evidence:
    """±e_d when that is the only stable pure state of two tokens (so it is for V ≺ 0); nothing is known otherwise."""
    stable = attractors(s.eigenvalues, s.beta, 2)
    low = int(np.argmin(s.eigenvalues))
    known = len(stable) == 1 and stable[0].p == low and stable[0].n_minus == 1
    values = {"signs_product": -1.0, "alignment": 1.0, "late_rate": _bipolar_rate(s)} if known else {}
    curve = Curve("antipodal", [0.0, s.until], [-1.0, -1.0])
    return Evidence({"signs_product": None, "alignment": None, "late_rate": None, **values}, curves=(curve,))


POLARISATION = claim(
    "clustering/CL-38",
    SPECTRAL_SELECTION,
    "polarisation of two tokens, V negative definite",
    "Two tokens under V = QᵀK ≺ 0 end, from almost every start, at opposite ends ±e_d of the eigenvector of the most "
    "negative eigenvalue.",
    where="theorem on polarisation of two tokens",
    models=("sa",),
    quick=TwoTokens(),
    full=TwoTokens(runs=2000),
    within={
        "signs_product": exactly("opposite signs in every run"),
        "alignment": at_least("worst token of all runs", slack=SELECTED),
        "late_rate": relative(0.02, "the next exponent: ten times what the rate still changes by between records"),
    },
    simulate=simulate_polarisation,
    predict=predict_polarisation,
    axes=Axes("depth-time t", "⟨x₁,x₂⟩"),
    mistakes=(WEAKENED,),
)


# --- CL-39: stability of polarised states


@eqx.filter_jit
def _tangent_jacobian(model: SelfAttention, x: Array, frame: Array) -> Array:
    """Jacobian of the engine's drift at x restricted to tangent vectors: frame is (m, n, d), orthonormal, tangent."""
    flat = frame.reshape(frame.shape[0], -1)
    jacobian = jax.jacfwd(lambda y: model.drift(model.retract(y.reshape(x.shape)), jnp.zeros(())).ravel())(x.ravel())
    return flat @ jacobian @ flat.T


def measured_growth(eigenvalues: Any, p: int, beta: float, n_plus: int, n_minus: int) -> float:
    """Largest real part of the spectrum at n₊ tokens on e_p and n₋ on -e_p."""
    n, d = n_plus + n_minus, len(eigenvalues)
    x = np.zeros((n, d))
    x[:, p] = np.repeat([1.0, -1.0], [n_plus, n_minus])
    frame = np.zeros((n * (d - 1), n, d))
    others = [k for k in range(d) if k != p]
    for row, (i, k) in enumerate((i, k) for k in others for i in range(n)):
        frame[row, i, k] = 1.0
    matrix = _tangent_jacobian(symmetric_model(eigenvalues, beta), jnp.asarray(x), jnp.asarray(frame))
    return float(np.linalg.eigvals(np.asarray(matrix)).real.max())


Cases = Annotated[
    tuple[tuple[float, of.NonNegative, of.Count, of.Count], ...], means("bipolar states", "λ_p, β, n₊, n₋")
]


class Bipolar(Setting):
    """Tokens at both ends of an eigenvector."""

    cases: Cases = ((1.5, 1.0, 3, 2), (-2.0, 0.8, 2, 3), (2.0, 1.0, 2, 2), (-1.0, 1.0, 2, 2))
    margin: Annotated[of.Positive, means("distance from the threshold at which signs are read")] = 0.02
    points: Annotated[of.Count, means("eigenvalues tried around each threshold")] = 11


def _sweep(threshold: float, s: Bipolar) -> np.ndarray:
    """Values of λ_k on both sides of a threshold, its edges ∓margin included."""
    return threshold + s.margin * np.linspace(-5.0, 5.0, s.points)


def _in_case(function: Any, case: tuple[Any, ...], other: float) -> float:
    """A growth rate at the split state on the first of the two eigenvalues (λ_p, λ_k)."""
    own, beta, n_plus, n_minus = case
    return float(function([own, other], 0, beta, int(n_plus), int(n_minus)))


def simulate_thresholds(s: Bipolar) -> Evidence:
    """The λ_k at which the measured growth changes sign, found by bisection on Jacobians of the engine."""
    roots, signs, curves = [], [], []
    for case in s.cases:
        growth = partial(_in_case, measured_growth, case)
        root = _last_root(growth, abs(case[0]))
        roots.append(np.nan if root is None else root)
        signs += [np.nan] * 2 if root is None else [np.sign(growth(root - s.margin)), np.sign(growth(root + s.margin))]
        if root is not None:
            across = _sweep(root, s)
            curves.append(Curve(_label(case), across - root, [growth(k) for k in across]))
    return Evidence({"threshold": roots, "signs": signs}, curves=tuple(curves))


def _last_root(growth: Any, scale: float) -> float | None:
    """The largest λ_k in (0, |λ_p|) at which growth turns positive, if there is one."""
    grid = np.linspace(1e-3 * scale, scale * (1 - 1e-3), 24)
    values = np.array([growth(k) for k in grid])
    turn = np.nonzero((values[:-1] < 0) & (values[1:] >= 0))[0]
    return float(optimize.brentq(growth, grid[turn[-1]], grid[turn[-1] + 1], xtol=1e-12)) if len(turn) else None


def _label(case: tuple[Any, ...]) -> str:
    own, beta, n_plus, n_minus = case
    return f"λ_p={own:g}, β={beta:g}, {n_plus}+{n_minus}"


def predict_thresholds(s: Bipolar) -> Evidence:
    """λ_p σ in closed form, stable below and unstable above; growth rates from the 2×2 blocks."""
    thresholds = [bipolar_threshold(own, beta, int(plus), int(minus)) for own, beta, plus, minus in s.cases]
    curves = []
    for case, threshold in zip(s.cases, thresholds, strict=True):
        across = _sweep(threshold, s)
        growth = [_in_case(pure_state_growth, case, k) for k in across]
        curves.append(Curve(f"{_label(case)}, blocks", across - threshold, growth))
    return Evidence({"threshold": thresholds, "signs": [-1.0, 1.0] * len(s.cases)}, curves=tuple(curves))


claim(
    "clustering/CL-39",
    SPECTRAL_SELECTION,
    "stability threshold of bipolar states",
    "n₊ tokens at e_p and n₋ at −e_p are linearly stable against eigenvalues λₖ < λ_pσ and unstable beyond, "
    "σ = (c−r)(cr−1)/(r(c²−1)), c = e^{2βλ_p}, r = n₊/n₋ (if 2β|λ_p| > |ln r|, and λₖ > λ_p when λ_p < 0).",
    where="stability of bipolar states",
    models=("sa",),
    quick=Bipolar(),
    within={
        "threshold": absolute(1e-11, "root of the Jacobian's largest real part, bisected to 1e-12"),
        "signs": exactly("stable at −margin, unstable at +margin"),
    },
    simulate=simulate_thresholds,
    predict=predict_thresholds,
    axes=Axes("λₖ − λ_pσ", "largest growth rate"),
    note="cases are [λ_p, β, n₊, n₋]. The measured side differentiates the particle field; it does not use the blocks.",
)
