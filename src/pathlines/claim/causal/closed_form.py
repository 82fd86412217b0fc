"""The closed form of retrieval: it solves its equation, it is the limit of finite prompts, and it has three shapes.

Kinetic theory for Transformers and the lost-in-the-middle phenomenon, arXiv:2605.09213; shapes, depths and rates in N
are derived. What is compared with the closed form here is computed from the equations: collocation in σ, matrix
exponentials, profiles by their Bessel series on a grid.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np
from scipy import optimize, special
from scipy.linalg import expm
from scipy.sparse.linalg import expm_multiply

from pathlines.attention.masks import AlibiMask
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.causal.vocabulary import Codewords, Decay, Length, Mode, Positions, Slope, Slopes
from pathlines.claim.tolerance import absolute, exactly, relative, standard_errors
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import KINETIC
from pathlines.foundation.setting import Setting, means
from pathlines.limit.causal.paths import path_influence
from pathlines.limit.causal.profile import Profile, retrieval_profile, u_shape_depth
from pathlines.limit.causal.rates import retrieval_rates
from pathlines.limit.causal.response import response

# --- L1


class Equation(Setting):
    """One mode at several slopes."""

    slopes: Slopes = (0.0, 2.0, -1.0, 5.0, 0.3)
    rate: Decay = 0.7
    t: of.Until = 1.3
    source: Annotated[of.Share, means("position of the source", "σ₀")] = 0.2
    ends: Positions = (0.3, 0.6, 1.0)
    nodes: of.Nodes = 24


def _kernel(sigma: np.ndarray, source: np.ndarray, slope: float) -> np.ndarray:
    """k_λ(σ,σ') from its definition, e^{-λ(σ-σ')} over its integral in σ'."""
    total = np.expm1(-slope * sigma) / -slope if slope else sigma
    return np.exp(-slope * (sigma - source)) / total


def _collocated(s: Equation, slope: float, end: float) -> float:
    """g(t, end) from ∂_t g = a(k + ∫ k g): Chebyshev collocation on [σ0, end], a matrix exponential in t."""
    x = -np.cos(np.pi * np.arange(s.nodes) / (s.nodes - 1))
    sigma = s.source + (end - s.source) * (x + 1) / 2
    fit = np.linalg.inv(np.polynomial.chebyshev.chebvander(x, s.nodes - 1))
    rows = np.zeros((s.nodes, s.nodes))
    nodes, weights = np.polynomial.legendre.leggauss(40)
    for j in range(1, s.nodes):
        y = -1 + (x[j] + 1) * (nodes + 1) / 2
        at = s.source + (end - s.source) * (y + 1) / 2
        scaled = weights * (sigma[j] - s.source) / 2 * _kernel(sigma[j], at, slope)
        rows[j] = scaled @ np.polynomial.chebyshev.chebvander(y, s.nodes - 1) @ fit
    system = np.zeros((s.nodes + 1, s.nodes + 1))
    system[:-1, :-1], system[:-1, -1] = s.rate * rows, s.rate * _kernel(sigma, np.asarray(s.source), slope)
    return float(expm(s.t * system)[-2, -1])


def simulate_equation(s: Equation) -> Evidence:
    """The Volterra–Hardy equation, solved by collocation."""
    return Evidence({"response": [_collocated(s, slope, end) for slope in s.slopes for end in s.ends]})


def predict_equation(s: Equation) -> Evidence:
    """k_λ x ₀F₁(;2;xY)."""
    return Evidence(
        {"response": [float(response(s.t, e, s.source, rate=s.rate, slope=lam)) for lam in s.slopes for e in s.ends]}
    )


claim(
    "causal/L1",
    KINETIC,
    "closed form of the response",
    "The response of a causal token to an earlier one, uniform tokens, solves the Volterra–Hardy equation, and its "
    "solution is k_λ(σ,σ₀) x ₀F₁(;2;xY), x = at, Y = ln((e^{λσ}−1)/(e^{λσ₀}−1)), for λ of either sign.",
    where="the explicit solution for uniform prompts (the Volterra–Hardy equation)",
    models=(),
    quick=Equation(),
    within={"response": relative(1e-9, "24 Chebyshev nodes resolve the kernel to 1e-11 at these slopes")},
    simulate=simulate_equation,
    predict=predict_equation,
)

# --- L2


class LongPrompts(Setting):
    """Finite prompts of N, 2N and 4N tokens."""

    beta: of.Beta = 1.0
    mode: Mode = 1
    slope: Slope = 2.0
    t: of.Until = 1.0
    sources: Positions = (0.25, 0.5, 0.75)
    n: Length = 64


DOUBLED = np.array([1, 2, 4])


def _tokens(s: LongPrompts) -> np.ndarray:
    """Numbers of the tokens, among N, nearest to the relative positions."""
    return np.clip(np.round(np.asarray(s.sources) * s.n).astype(int), 1, s.n - 1)


def _influences(s: LongPrompts) -> np.ndarray:
    """N [e^{xP}]_{Ni} of the same relative positions at N, 2N, 4N, by scaling and squaring of the mask's matrix."""
    x, rows = s.t * s.mode**2 * special.iv(s.mode, s.beta), []
    for n in DOUBLED * s.n:
        last = np.zeros(n)
        last[-1] = 1.0
        row = n * expm_multiply(x * np.asarray(AlibiMask(s.slope).rows(int(n))).T, last)
        rows.append(row[_tokens(s) * n // s.n - 1])
    return np.asarray(rows)


def simulate_long(s: LongPrompts) -> Evidence:
    """Influences at N; extrapolated to N = ∞ without the orders 1/N and 1/N²; the order at which they approach it."""
    one, two, four = rows = _influences(s)
    limit = (8 * four - 6 * two + one) / 3
    order = np.log2(np.abs((two - four) / (one - two)))
    # with r = g + a/N + b/N², the order is -1 + 0.36 (b/a)/N to first order
    b = (one - 3 * two + 2 * four) * 8 / 3
    second = np.abs(b / (2 * (one - two) - 1.5 * b))
    bent = {"order": "at some position the term 1/N nearly vanishes: another source, or larger n"}
    values = {"influence": one, "limit": limit, "order": order}
    curves = tuple(Curve(f"σ₀ = {v:g}", DOUBLED * s.n, np.abs(rows[:, k] - limit[k])) for k, v in enumerate(s.sources))
    return Evidence(values, {"order": second}, curves=curves, undecided=bent if second.max() > 0.05 else {})


def predict_long(s: LongPrompts) -> Evidence:
    """The sum over paths of attention, the closed form, and -1."""
    rate = float(retrieval_rates(s.beta, s.mode)[-1])
    row = path_influence((s.n, s.slope), s.t * rate)
    closed = response(s.t, 1.0, _tokens(s) / s.n, rate=rate, slope=s.slope)
    values = {"influence": row[_tokens(s) - 1], "limit": closed, "order": -np.ones(len(closed))}
    return Evidence(
        values, {"limit": 40 * closed / s.n**3 / 5}, source="sum over paths; closed form; order of the limit"
    )


claim(
    "causal/L2",
    KINETIC,
    "finite prompts tend to the closed form like 1/N",
    "In linear theory the influence of token i on the last is N[e^{xP}]_{Ni}, a sum over paths of attention, and tends "
    "to the closed form g with an error of order 1/N at fixed relative position.",
    where="derived; the paper has the limit",
    models=(),
    quick=LongPrompts(),
    full=LongPrompts(n=256),
    within={
        "influence": relative(1e-10, "both sums are accurate to rounding"),
        "limit": standard_errors(5.0, "the third order in 1/N, 40/N³ of the value at most"),
        "order": absolute(0.01, "the bend by the second order, twice", errors=2.0),
    },
    simulate=simulate_long,
    predict=predict_long,
    axes=Axes("tokens N", "|N[e^{xP}] − g|", "log", "log"),
)

# --- L7, L8, L9: shapes of the profile, from its series


def _series(beta: float, slope: float, vocabulary: int, t: float, source: np.ndarray) -> np.ndarray:
    """S_t(σ0) = Σ w_n k_λ √(x/Y) I_1(2√(xY)), for σ0 < 1, from the paper's form."""
    n = np.arange(1, 60 + int(3 * beta))
    w, x = np.exp(-((np.pi * n / vocabulary) ** 2) / 2), n**2 * special.iv(n, beta) * t
    y = np.log(np.expm1(slope) / np.expm1(slope * source))
    keep = w * x > 1e-18 * (w * x).max()
    w, x = w[keep], x[keep]
    xy = np.multiply.outer(y, x)
    return _kernel(np.asarray(1.0), source, slope) * (np.sqrt(x / y[:, None]) * special.iv(1, 2 * np.sqrt(xy)) @ w)


class Theorem(Setting):
    """Random decoders within the condition of the theorem."""

    cases: Annotated[of.Count, means("random decoders")] = 60
    betas: Annotated[tuple[float, float], means("range of β")] = (0.2, 4.0)
    slopes: Annotated[tuple[float, float], means("range of λ")] = (0.2, 8.0)
    vocabularies: Annotated[tuple[int, int], means("range of M")] = (4, 32)
    grid: Annotated[of.Count, means("source positions looked at")] = 1500
    seed: of.Seed = 7


def _cases(s: Theorem) -> list[tuple[float, float, int, float]]:
    rng = np.random.default_rng(s.seed)
    drawn = []
    for _ in range(s.cases):
        beta, slope = np.exp(rng.uniform(*np.log(s.betas))), np.exp(rng.uniform(*np.log(s.slopes)))
        drawn.append((beta, slope, int(rng.integers(s.vocabularies[0], s.vocabularies[1] + 1)), rng.uniform(0.02, 1)))
    return drawn


def _grid(count: int) -> np.ndarray:
    """Positions in (0, 1), dense at both ends: the minimum may lie at e^{-1/x}."""
    y = np.linspace(-25, 9, count)
    return 1 / (1 + np.exp(-y))


def simulate_theorem(s: Theorem) -> Evidence:
    """Depths of the condition; numbers of minima and of all extrema of S_t, over all cases; how often it rises."""
    counts, condition = [], []
    for beta, slope, vocabulary, share in _cases(s):
        rates = np.arange(1, 80) ** 2 * special.iv(np.arange(1, 80), beta)
        condition.append(min(3 - np.sqrt(3), 2 * (1 - np.exp(-slope))) / rates.max())
        turns = np.sign(np.diff(_series(beta, slope, vocabulary, share * condition[-1], _grid(s.grid))))
        counts.append([(np.diff(turns) > 0).sum(), np.count_nonzero(np.diff(turns)), turns[-1] > 0])
    minima, extrema, rising = np.sum(counts, axis=0)
    return Evidence({"condition": condition, "minima": minima, "extrema": extrema, "rising": rising})


def predict_theorem(s: Theorem) -> Evidence:
    """One minimum each, no maximum, rising at the end."""
    deepest = [u_shape_depth(beta, slope) for beta, slope, *_ in _cases(s)]
    return Evidence({"condition": deepest, **dict.fromkeys(("minima", "extrema", "rising"), len(deepest))})


claim(
    "causal/L7",
    KINETIC,
    "the profile is a U while t sup aₙ is small",
    "If t sup aₙ ≤ min{3−√3, 2(1−e^{−λ})} the retrieval profile has exactly one minimum inside the prompt, no maximum, "
    "and rises towards its end: the middle is lost.",
    where="the theorem on the U-shape",
    models=(),
    quick=Theorem(),
    full=Theorem(cases=300),
    within={
        "condition": relative(1e-10, "the same formula, with Bessel functions from elsewhere"),
        **dict.fromkeys(("minima", "extrema", "rising"), exactly("counts over all cases")),
    },
    simulate=simulate_theorem,
    predict=predict_theorem,
)


class Shapes(Setting):
    """Decoders whose recency is lost."""

    betas: of.Betas = (1.0, 1.0, 1.0, 2.0, 4.0)
    slopes: Slopes = (1.0, 2.0, 4.0, 4.0, 4.0)
    vocabularies: Annotated[tuple[of.Count, ...], means("codewords", "M")] = (8, 8, 8, 16, 16)


def _slope_at_end(beta: float, slope: float, vocabulary: int, t: float) -> float:
    """S_t'(1⁻) by differences of the series at 1 - h, 1 - 2h, …, extrapolated."""
    h = 1e-3 / max(1.0, slope)
    s = _series(beta, slope, vocabulary, t, 1 - h * np.arange(1, 8))
    fit = np.polynomial.Polynomial.fit(-h * np.arange(1, 8), s, 6)
    return float(fit.deriv()(0.0))


def simulate_recency(s: Shapes) -> Evidence:
    """The depth at which the slope of the series at the end vanishes, by bisection."""
    found = []
    for beta, slope, m in zip(s.betas, s.slopes, s.vocabularies, strict=True):
        top = (np.arange(1, 60) ** 2 * special.iv(np.arange(1, 60), beta)).max()
        slope_at = partial(_slope_at_end, beta, slope, m)
        found.append(optimize.brentq(slope_at, 0.02 / top, 8 / top, rtol=1e-9))
    return Evidence({"depth": found})


def predict_recency(s: Shapes) -> Evidence:
    """t_rec = 2(1-e^{-λ}) Σ w_n a_n/Σ w_n a_n²."""
    cases = zip(s.betas, s.slopes, s.vocabularies, strict=True)
    return Evidence({"depth": [retrieval_profile(b, lam, m, 1.0).recency_lost for b, lam, m in cases]})


claim(
    "causal/L8",
    KINETIC,
    "recency is lost at t_rec",
    "The profile rises towards the end of the prompt until t_rec = 2(1−e^{−λ}) Σwₙaₙ/Σwₙaₙ² and falls beyond it; the "
    "theorem's condition is sufficient and ends 1.1 to 2.1 times earlier.",
    where="derived; sharper than the condition of the theorem on the U-shape",
    models=(),
    quick=Shapes(),
    within={"depth": relative(1e-6, "a slope of degree six through seven values of a smooth function")},
    simulate=simulate_recency,
    predict=predict_recency,
)


class Regimes(Setting):
    """One decoder at several depths, in units of t_rec."""

    beta: of.Beta = 1.0
    slope: Slope = 4.0
    vocabulary: Codewords = 8
    shares: Annotated[tuple[of.Positive, ...], means("depths over t_rec")] = (0.9, 1.3, 1.6)
    grid: Annotated[of.Count, means("source positions looked at")] = 4000


def _profiles(s: Regimes) -> list[Profile]:
    profile = retrieval_profile(s.beta, s.slope, s.vocabulary, 1.0)
    return [profile.at_depth(share * profile.recency_lost) for share in s.shares]


def simulate_regimes(s: Regimes) -> Evidence:
    """Extrema of the series on a grid, refined by parabolas: how many there are and where, one after another."""
    counts, places, curves = [], [], []
    rates, n = _profiles(s)[0].recency_lost, _grid(s.grid)
    for share in s.shares:
        value = _series(s.beta, s.slope, s.vocabulary, share * rates, n)
        turns = np.flatnonzero(np.diff(np.sign(np.diff(value)))) + 1
        counts.append(len(turns))
        for k in turns:
            fit = np.polynomial.Polynomial.fit(n[k - 2 : k + 3], value[k - 2 : k + 3], 4)
            places += [
                float(r.real) for r in fit.deriv().roots() if abs(r.imag) < 1e-9 and n[k - 1] < r.real < n[k + 1]
            ]
        curves.append(Curve(f"t = {share:g} t_rec", n[n > 0.01], value[n > 0.01]))
    return Evidence({"extrema": counts, "positions": np.sort(places)}, curves=tuple(curves))


def predict_regimes(s: Regimes) -> Evidence:
    """Zeros of the derivative in Y = ln((e^λ-1)/(e^{λσ0}-1)), in closed form up to root finding."""
    found = [np.concatenate(p.extrema()) for p in _profiles(s)]
    return Evidence({"extrema": [len(f) for f in found], "positions": np.sort(np.concatenate(found))})


claim(
    "causal/L9",
    KINETIC,
    "three regimes: U, buried recency, primacy only",
    "Up to t_rec the profile has one interior minimum; then, if λ is above about ln 4, a minimum and to its right a "
    "maximum (the best retrieved recent token is not the last one), until at t_mono both vanish and it only falls.",
    where="derived; beyond the theorem on the U-shape",
    models=(),
    quick=Regimes(),
    within={
        "extrema": exactly("counts"),
        "positions": absolute(1e-5, "quartics through five points of a grid of 4000"),
    },
    simulate=simulate_regimes,
    predict=predict_regimes,
    axes=Axes("source position σ₀", "S_t(σ₀)"),
)
