"""The dual filter: weights from layers of sweeps against Riccati, Kalman and Bayes (arXiv:2605.15608; derived)."""

from __future__ import annotations

import itertools
from typing import Annotated

import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute, of_largest, relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.followups import DUAL_FILTER
from pathlines.foundation.setting import Setting, at_least, means
from pathlines.limit.followups.filtering import bayes, curvatures, dual_control, kalman
from pathlines.model.followups.dual_filter import DualFilter
from pathlines.numerics.sources import HiddenMarkov, StateSpace

CONVENTION = (
    "a layer is one sweep backwards, one forwards and a gradient step at every token; the paper's own map was not "
    "available."
)
ROUNDING = "weights are refined until they change by 1e-13 of their size; conditioning may cost three digits"


MOST_CONDITION = 1e3
"""Condition of ½∇²J up to which weights that change by 1e-13 a layer are within 1e-10 of their limit."""


class Tracked(Setting):
    """A linear Gaussian source, tokens, and what is estimated."""

    transition: Annotated[of.Matrix, means("moves the state: X ← Aᵀ X + B", "A")] = ((0.9, 0.2), (0.0, 0.7))
    readout: Annotated[of.Matrix, means("what a token sees of the state", "H")] = ((1.0,), (0.5,))
    moves: Annotated[of.Matrix, means("covariance of the moves of the state", "Q")] = ((0.2, 0.05), (0.05, 0.1))
    noise: Annotated[of.Matrix, means("covariance of the noise of a token", "R")] = ((0.4,),)
    mean: Annotated[of.Vector, means("mean of the first state", "m₀")] = (0.2, -0.1)
    tokens: Annotated[of.Matrix, means("tokens", "Z")] = ((1.0,), (-0.5,), (0.3,), (0.8,), (-0.2,))
    target: Annotated[of.Vector, means("the linear function of the state that is estimated", "f")] = (1.0, -0.5)


def source_of(s: Tracked) -> StateSpace:
    """With a first state of covariance I."""
    return StateSpace(s.transition, s.readout, s.moves, s.noise, mean=s.mean)


def simulate_weights(s: Tracked) -> Evidence:
    """Layers until they settle."""
    found = DualFilter(source_of(s)).estimate(s.tokens, s.target)
    values = {"error": found.error, "weights": found.weights, "dual": found.dual[0], "estimate": found.value}
    return Evidence(values, curves=(_by_token("layers of sweeps", found.weights),))


def predict_weights(s: Tracked) -> Evidence:
    """Riccati's recursion, and Kalman's filter for the estimate."""
    source = source_of(s)
    best, last = dual_control(source, s.target, len(s.tokens)), kalman(source, s.tokens)
    values = {"error": best.error, "weights": best.weights, "dual": best.dual[0]}
    values["estimate"] = last.means[-1] @ np.array(s.target)
    bend = curvatures(source, len(s.tokens))
    rough = len(bend) and bend[-1] > MOST_CONDITION * max(bend[0], 0.0)
    advice = (
        dict.fromkeys(values, "more noise R: layers settle to 1e-13 of the condition of J, above 1e3") if rough else {}
    )
    return Evidence(values, curves=(_by_token("Riccati", best.weights),), undecided=advice)


def _by_token(label: str, weights: np.ndarray) -> Curve:
    return Curve(label, np.arange(1, len(weights) + 1), np.linalg.norm(weights, axis=1))


claim(
    "followups/D1",
    DUAL_FILTER,
    "weights of the dual filter are those of optimal control",
    "Layers of sweeps y_t = A y_{t+1} + H u_t, p_{t+1} = Aᵀp_t + Q y_{t+1}, u_t ← u_t − η(R u_t + Hᵀp_t) end at "
    "u_t = −(R + HᵀΣ_tH)⁻¹HᵀΣ_tA y_{t+1}, with mean square error J = fᵀΣ_Tf, Σ_t by Riccati's recursion.",
    where="derived; the duality of estimation and control is classical",
    models=(),
    quick=Tracked(),
    within={name: of_largest(1e-10, ROUNDING) for name in ("error", "weights", "dual")},
    simulate=simulate_weights,
    predict=predict_weights,
    axes=Axes("token", "weight |u|"),
    marks=("derived", "assumed"),
    convention=CONVENTION,
)

claim(
    "followups/D2",
    DUAL_FILTER,
    "the dual estimate is Kalman's predictor",
    "mᵀy_0 − Σ_t u_tᵀZ_{t+1} with the weights of the layers is Kalman's one-step predictor of fᵀX_T.",
    where="derived; the duality of estimation and control is classical",
    models=(),
    quick=Tracked(),
    within={"estimate": relative(1e-10, ROUNDING)},
    simulate=simulate_weights,
    predict=predict_weights,
    axes=Axes("token", "weight |u|"),
    marks=("derived", "assumed"),
    convention=CONVENTION,
)


# --- D3: random sources


class Random(Setting):
    """Random linear Gaussian sources."""

    d: of.Dimension = 4
    components: Annotated[of.Count, means("components of a token", "p")] = 2
    length: Annotated[of.Count, means("tokens", "T")] = 12
    layers: Annotated[of.Count, means("layers", "L")] = 400
    step: Annotated[of.Positive, means("step of a layer", "η")] = 0.05
    seed: of.Seed = 3


def drawn(s: Random) -> tuple[StateSpace, np.ndarray, np.ndarray]:
    """A source with spectral radius 0.9 and noise R ≥ I, a sequence of tokens and a target.

    The readout is shrunk where J would be curved too much for a step of 0.05.
    """
    rng = np.random.default_rng(s.seed)
    a = rng.standard_normal((s.d, s.d))
    h, q, r = (rng.standard_normal(shape) for shape in ((s.d, s.components), (s.d, s.d), (s.components, s.components)))
    a, h = 0.9 * a / np.abs(np.linalg.eigvals(a)).max(), 0.5 * h
    moves, noise = 0.1 * q @ q.T / s.d, np.eye(s.components) + r @ r.T / s.components
    room = max(MOST_CURVED - float(np.linalg.eigvalsh(noise)[-1]), 1.0)
    h = h * min(1.0, np.sqrt(room / _curved(a, h, moves, s.length)))
    source = StateSpace(a, h, moves, noise)
    return source, rng.standard_normal((s.length, s.components)), rng.standard_normal(s.d)


MOST_CURVED = 39.0
"""Largest curvature of J that is drawn: layers of step 0.05 diverge from 40 on."""


def _curved(a: np.ndarray, h: np.ndarray, moves: np.ndarray, length: int) -> float:
    """The largest curvature that the readout adds to R, by a sweep of unit weights; Σ_0 = I."""
    columns, y, total = h.shape[1], np.zeros((len(a), 0)), np.zeros((0, 0))
    for _ in range(length):
        total = total + y.T @ moves @ y
        y = np.hstack([a @ y, h])
        total = np.pad(total, ((0, columns), (0, columns)))
    return float(np.linalg.eigvalsh(total + y.T @ y)[-1])


def simulate_random(s: Random) -> Evidence:
    """Settled layers, and L layers of the given step."""
    source, tokens, target = drawn(s)
    last = DualFilter(source).estimate(tokens, target)
    some = DualFilter(source, s.layers, s.step).estimate(tokens, target)
    values = {"estimate": last.value, "error": last.error, "weights": some.weights}
    return Evidence(values, curves=(_by_token(f"{s.layers} layers", some.weights),))


def predict_random(s: Random) -> Evidence:
    """Kalman; Riccati. A layer leaves max|1 - ηλ| of the weights, λ the curvatures of J."""
    source, tokens, target = drawn(s)
    best, last = dual_control(source, target, s.length), kalman(source, tokens)
    values = {"estimate": last.means[-1] @ target, "error": best.error, "weights": best.weights}
    kept = float(np.abs(1 - s.step * curvatures(source, s.length)).max())
    left = np.linalg.norm(best.weights) * kept**s.layers
    advice = {"weights": "more layers: they have not settled to 1e-6 yet"} if left > 1e-7 else {}
    return Evidence(values, curves=(_by_token("Riccati", best.weights),), undecided=advice)


claim(
    "followups/D3",
    DUAL_FILTER,
    "random sources: dual = Kalman, and how many layers it takes",
    "For random linear Gaussian sources the dual estimate is Kalman's and its error fᵀΣ_Tf; 400 layers of step "
    "η = 0.05 reach the optimal weights to 10⁻⁶, for a layer contracts them by |1 − ηλ|, λ the curvatures of J.",
    where="derived",
    models=(),
    quick=Random(),
    full=Random(d=8, components=3, length=60),
    within={
        "estimate": absolute(1e-9, ROUNDING),
        "error": relative(1e-10, ROUNDING),
        "weights": absolute(1e-6, "what 400 layers of step 0.05 leave of weights that contract by e^{-20} in all"),
    },
    simulate=simulate_random,
    predict=predict_random,
    axes=Axes("token", "weight |u|"),
    marks=("derived", "assumed"),
    convention=CONVENTION,
)


# --- D4: hidden chains


class HiddenChain(Setting):
    """A random hidden chain and all its sequences."""

    states: Annotated[of.Count, means("hidden states", "D")] = 3
    symbols: Annotated[int, at_least(2), means("tokens there are", "m+1")] = 3
    length: Annotated[of.Count, means("tokens of a sequence", "T")] = 4
    layers: Annotated[of.Whole, means("layers of the short filter, whose first places are compared", "ℓ")] = 2
    seed: of.Seed = 4


def hidden_chain(s: HiddenChain) -> tuple[HiddenMarkov, list[tuple[int, ...]]]:
    """Rows drawn uniformly from the simplex, and every sequence."""
    rng = np.random.default_rng(s.seed)
    rows = lambda *shape: rng.dirichlet(np.ones(shape[-1]), shape[:-1])  # noqa: E731
    source = HiddenMarkov(rows(s.states, s.states), rows(s.states, s.symbols), rows(s.states))
    return source, list(itertools.product(range(s.symbols), repeat=s.length))


def simulate_chain(s: HiddenChain) -> Evidence:
    """Measures after as many layers as tokens; those of the first ℓ places after ℓ layers."""
    source, sequences = hidden_chain(s)
    some = min(max(s.layers, 1), s.length)
    exact, short = (
        np.array([DualFilter(source, layers).predict(z).states for z in sequences]) for layers in (None, some)
    )
    values = {"measures": exact[:, 1:], "first_places": short[:, 1 : some + 1]}
    return Evidence(values, curves=(Curve("dual filter", np.arange(len(sequences)), exact[:, -1, 0]),))


def predict_chain(s: HiddenChain) -> Evidence:
    """Bayes."""
    source, sequences = hidden_chain(s)
    truth = np.array([bayes(source, z) for z in sequences])
    some = min(max(s.layers, 1), s.length)
    values = {"measures": truth[:, 1:], "first_places": truth[:, 1 : some + 1]}
    return Evidence(values, curves=(Curve("Bayes", np.arange(len(sequences)), truth[:, -1, 0]),))


claim(
    "followups/D4",
    DUAL_FILTER,
    "hidden chains: the representation is exact, and so are as many layers as tokens",
    "For tokens of a hidden Markov chain, E[F(X_T) | Z] = M_0 − Σ_t U_t·(e(Z_{t+1}) − E_t e) with U_{t,z} = mean "
    "M_{t+1} − M_{t+1}(z), for every sequence; layers that compute U from the measures before have the exact measures "
    "of the first ℓ places after ℓ layers.",
    where="derived; a fixed point on measures, as the paper's layer is",
    models=(),
    quick=HiddenChain(),
    full=HiddenChain(states=5, symbols=3, length=6, layers=4),
    within={
        "measures": absolute(1e-13, "rounding of sums over few states and tokens"),
        "first_places": absolute(1e-13, "the same"),
    },
    simulate=simulate_chain,
    predict=predict_chain,
    axes=Axes("sequence", "P(X_T = 1 | Z)"),
    marks=("derived", "assumed"),
    convention="a layer computes U from the measures of the layer before; the paper's own map was not available.",
)
