"""Symmetric weights V = QᵀK: selection, exact stability of pure modes, three-group equilibria, energy (2604.26085).

What the clustering family states already is known here by the ids of this family.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from scipy import optimize

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.clustering.spectral_selection import (
    POLARISATION,
    WEAKENED,
    Cases,
    late_decay,
    measured_growth,
    symmetric_model,
    unresolved,
)
from pathlines.claim.fitting import REVERSED, Mistake
from pathlines.claim.tolerance import absolute, at_least, at_most, exactly, relative
from pathlines.domain import Sphere
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import require
from pathlines.foundation.papers import SPECTRAL_SELECTION
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import ensemble, flow
from pathlines.integrate.observe import positions
from pathlines.limit.clustering.symmetric import (
    bipolar_pulls,
    bipolar_threshold,
    mixed_equilibria,
    pure_state_growth,
    pure_state_is_stable,
)
from pathlines.limit.followups.group_states import group_growth
from pathlines.limit.followups.mode_atlas import mixed_points
from pathlines.model import SelfAttention

CONVENTION = "softmax attention on the sphere with V = QᵀK inside the exponent, β outside, as a later survey states it."
POLARISATION.also_known_as("followups/S3", marks=("abstract", "secondary"), convention=CONVENTION)


# --- S1: alignment and its rate


class Alignment(Setting):
    """Tokens on one side of the leading eigenvector, at several β."""

    eigenvalues: of.Eigenvalues = (2.0, 0.5, -1.0)
    betas: of.Betas = (0.5, 2.0, 8.0)
    n: of.Tokens = 20
    runs: of.Runs = 4
    until: of.Until = 20.0
    records: of.Records = 161
    seed: of.Seed = 0
    rtol: of.Rtol = 1e-10


ARRIVED = 1e-6
WEAKER = Mistake("symmetric_model", "the largest eigenvalue {:.0%} too small", WEAKENED.change, (0.5, 0.8, 0.9))


@lru_cache(maxsize=32)
def _one_sided(n: int, d: int, leading: int) -> Any:
    return partial(_one_sided_start, n=n, d=d, leading=leading)


def _one_sided_start(key: Array, n: int, d: int, leading: int) -> Array:
    x = Sphere(d).uniform(key, n)
    return x.at[:, leading].set(jnp.abs(x[:, leading]))


def simulate_alignment(s: Alignment) -> Evidence:
    """The worst token and the late rate of the mean distance, for each β."""
    leading, d = int(np.argmax(s.eigenvalues)), len(s.eigenvalues)
    lowest, rates, curves, runs, undecided = [], [], [], [], {}
    for beta in s.betas:
        run = ensemble(
            symmetric_model(s.eigenvalues, beta),
            _one_sided(s.n, d, leading),
            runs=s.runs,
            key=jax.random.key(s.seed),
            times=np.linspace(0.0, s.until, s.records),
            record=positions,
            rtol=s.rtol,
        )
        x = run["tokens"].values
        square = np.sum(np.delete(x, leading, axis=-1) ** 2, axis=(0, 2, 3))
        rate, advice = late_decay(run.time, square)
        ends = x[:, -1, :, leading].min()
        lowest.append(float(ends))
        rates.append(rate / 2)
        if advice:
            undecided["late_rate"] = advice
        if 1 - ends > ARRIVED and ends > x[:, -2, :, leading].min() + 10 * s.rtol:
            undecided["leading_coordinate"] = f"until={2 * s.until:g} or more: some token is still on its way"
        curves.append(Curve(f"β = {beta:g}", run.time, np.sqrt(square)))
        runs.append(run)
    values = {"leading_coordinate": lowest, "late_rate": rates}
    return Evidence(values, curves=tuple(curves), runs=tuple(runs), undecided=undecided)


def alignment_rate(eigenvalues: Any) -> float:
    """min(λ₁, λ₁ - λ₂) = λ₁ - max(λ₂, 0): differences of tokens die at λ₁, the mean leaves e_k at λ₁ - λ_k."""
    values = np.sort(np.asarray(eigenvalues, float))[::-1]
    return float(values[0] - max(values[1:].max(initial=0.0), 0.0))


def predict_alignment(s: Alignment) -> Evidence:
    """Every token at e₁, whatever β; nothing is known where λ₁ does not dominate."""
    values = np.sort(np.asarray(s.eigenvalues, float))
    known = values[-1] > np.abs(values[:-1]).max(initial=0.0)
    rate = alignment_rate(s.eigenvalues)
    curve = Curve(f"e^{{−{rate:g}t}}", [0.0, s.until], [1.0, float(np.exp(-rate * s.until))])
    numbers = {"leading_coordinate": np.ones(len(s.betas)), "late_rate": np.full(len(s.betas), rate)}
    advice = unresolved(s.eigenvalues, s.until, s.n, 0.01) if known else ""
    undecided = {"late_rate": advice} if advice else {}
    return Evidence(numbers if known else dict.fromkeys(numbers), curves=(curve,), undecided=undecided)


claim(
    "followups/S1",
    SPECTRAL_SELECTION,
    "alignment on the dominant positive mode, and its rate",
    "If λ₁ > |λₖ| for all k ≠ 1 and every ⟨xᵢ,e₁⟩ > 0 at the start, all tokens end at e₁ for every β, at the late rate "
    "λ₁ − max(λ₂, 0) of |x − e₁| (derived).",
    where="theorem on homogeneous selection; the rate is derived",
    models=("sa",),
    quick=Alignment(),
    full=Alignment(runs=64, betas=(0.1, 0.5, 2.0, 8.0)),
    within={
        "leading_coordinate": at_least("worst token of all runs", slack=ARRIVED),
        "late_rate": relative(0.01, "the next exponent: ten times what the rate still changes by between records"),
    },
    simulate=simulate_alignment,
    predict=predict_alignment,
    axes=Axes("depth-time t", "distance from e₁", y_scale="log"),
    mistakes=(WEAKER,),
    marks=("abstract", "secondary", "derived"),
    convention=CONVENTION,
)


# --- S2: rates at split states


class Split(Setting):
    """n₊ tokens at an eigenvector and n₋ at its opposite."""

    eigenvalues: of.Eigenvalues = (2.0, 0.5, -1.0)
    mode: Annotated[of.Whole, means("index of the eigenvector that carries the tokens", "p")] = 0
    beta: of.Beta = 0.8
    n_plus: Annotated[of.Count, means("tokens at e_p", "n₊")] = 3
    n_minus: Annotated[of.Count, means("tokens at −e_p", "n₋")] = 2


def _at_split(s: Split) -> tuple[SelfAttention, Array]:
    p, d = s.mode, len(s.eigenvalues)
    signs = np.repeat([1.0, -1.0], [s.n_plus, s.n_minus])
    return symmetric_model(s.eigenvalues, s.beta), jnp.asarray(signs[:, None] * np.eye(d)[p])


def simulate_split(s: Split) -> Evidence:
    """Pulls from the engine's attention vectors, growth from its Jacobian, the factor from a root of the growth."""
    s = _inside(s)
    model, x = _at_split(s)
    pulls = np.sum(np.asarray(x * model.attend(x, jnp.zeros(()))[0]), axis=1)
    jacobian = np.asarray(eqx.filter_jit(jax.jacfwd(lambda y: model.drift(y, jnp.zeros(()))))(x))
    others = [k for k in range(len(s.eigenvalues)) if k != s.mode]
    rates = [float(np.linalg.eigvals(jacobian[:, k, :, k]).real.max()) for k in others]
    values = {"pull_plus": float(pulls[0]), "pull_minus": float(pulls[-1]), "growth": rates}
    root = _factor(s)
    curve = Curve("blocks of the engine's Jacobian", [s.eigenvalues[k] for k in others], rates)
    return Evidence({**values, "factor": root}, curves=(curve,))


def _inside(s: Split) -> Split:
    require(s.mode < len(s.eigenvalues), "mode", f"be below {len(s.eigenvalues)}, the number of eigenvalues", s.mode)
    return s


def _factor(s: Split) -> float:
    """λ_k/λ_p ≠ 1 at which a mode of the engine's linearisation is at rest: det(λ_k a - diag φ) = 0.

    a and φ are read off the engine; a has rank two, and λ_k = λ_p, which turns the whole state, is the other root.
    """
    own = float(s.eigenvalues[s.mode])
    model, x = _at_split(s)
    pulls = np.sum(np.asarray(x * model.attend(x, jnp.zeros(()))[0]), axis=1)
    if np.abs(pulls).min() < 1e-9 * abs(own) or own == 0:
        return float("nan")
    share = np.asarray(model.attention_matrix(x, jnp.zeros(())))
    inverse = own * np.linalg.eigvals(share / pulls[:, None]).real
    roots = 1 / inverse[np.argsort(-np.abs(inverse))[:2]]
    return float(np.delete(roots, np.argmin(np.abs(roots - 1)))[0])


def predict_split(s: Split) -> Evidence:
    """φ± and ς in closed form; the largest eigenvalues of the blocks L_k from their groups."""
    s = _inside(s)
    own, others = float(s.eigenvalues[s.mode]), np.delete(s.eigenvalues, s.mode)
    plus, minus = bipolar_pulls(own, s.beta, s.n_plus, s.n_minus)
    rates = [pure_state_growth([own, k], 0, s.beta, s.n_plus, s.n_minus) for k in others]
    edge = own == 0 or s.beta == 0 or min(abs(plus), abs(minus)) < 1e-9 * abs(own)
    factor = None if edge else bipolar_threshold(own, s.beta, s.n_plus, s.n_minus) / own
    curve = Curve("groups", others, rates)
    values = {"pull_plus": plus, "pull_minus": minus, "growth": rates, "factor": factor}
    return Evidence(values, curves=(curve,))


_DIGITS = 1e-9
claim(
    "followups/S2",
    SPECTRAL_SELECTION,
    "linearisation at a split state",
    "At n₊ tokens on e_p and n₋ on −e_p the linearisation splits into L_k = λ_k a − diag(φ), k ≠ p, with "
    "φ₊ = λ_p(rc−1)/(rc+1), φ₋ = λ_p(c−r)/(c+r), c = e^{2βλ_p}, r = n₊/n₋; L_k is singular at λ_k = λ_pς, "
    "ς = (c−r)(cr−1)/(r(c²−1)).",
    where="derived; local stability of pure modes",
    models=("sa",),
    quick=Split(),
    within={
        "pull_plus": absolute(_DIGITS, "rounding of the attention vector"),
        "pull_minus": absolute(_DIGITS, "rounding of the attention vector"),
        "factor": relative(1e-6, "rounding of eigenvalues of a nearly singular matrix: half the digits"),
        "growth": absolute(1e-7, "rounding of eigenvalues; double ones keep half the digits"),
    },
    simulate=simulate_split,
    predict=predict_split,
    axes=Axes("eigenvalue λₖ", "largest eigenvalue of Lₖ"),
    marks=("derived",),
    convention=CONVENTION,
)


# --- S2b and its erratum: the exact criterion


class Criterion(Setting):
    """Split states whose stability is decided, chosen and drawn."""

    cases: Cases = ((0.85, 0.6, 4, 1), (1.5, 1.0, 3, 2), (-2.0, 0.8, 2, 3), (0.85, 0.6, 3, 2))
    others: Annotated[of.Vector, means("the other eigenvalues of the chosen states", "λₖ")] = (-0.8, -0.7)
    draws: of.Draws = 100
    seed: of.Seed = 0


States = list[tuple[np.ndarray, float, int, int]]


def _states(s: Criterion) -> States:
    """(eigenvalues with that of the mode first, β, n₊, n₋), the chosen ones and then random ones."""
    rng, found = np.random.default_rng(s.seed), []
    for own, beta, plus, minus in s.cases:
        found.append((np.array([own, *s.others]), float(beta), int(plus), int(minus)))
    for _ in range(s.draws):
        values, beta = rng.normal(size=3), float(rng.uniform(0.1, 2.0))
        values[0] = rng.choice([-1.0, 1.0]) * (0.3 + abs(values[0]))
        found.append((values, beta, int(rng.integers(1, 5)), int(rng.integers(1, 3))))
    return found


def simulate_criterion(s: Criterion) -> Evidence:
    """The largest real part of the engine's Jacobian, at every state."""
    growth = np.array([measured_growth(values, 0, beta, plus, minus) for values, beta, plus, minus in _states(s)])
    chosen, close = len(s.cases), np.abs(growth) < 1e-9
    values = {"growth": growth[:chosen], "stable": np.where(close, 0, np.sign(-growth))}
    return Evidence(values)


def predict_criterion(s: Criterion) -> Evidence:
    """The exact criterion, with blocks where a sign has a single token; growth from the groups."""
    return _judged(s, pure_state_is_stable)


def printed_criterion(eigenvalues: Any, p: int, beta: float, n_plus: int, n_minus: int) -> bool:
    """2β|λ_p| > |ln r|, λ_k < λ_pς (and λ_k > λ_p where λ_p < 0), as if a single token had an inner mode."""
    own, others = float(eigenvalues[p]), np.delete(eigenvalues, p)
    if not 2 * beta * abs(own) > abs(np.log(n_plus / n_minus)):
        return False
    threshold = bipolar_threshold(own, beta, n_plus, n_minus)
    return bool(np.all(others < threshold) and (own > 0 or np.all(others > own)))


def predict_printed(s: Criterion) -> Evidence:
    """The criterion without the caveat."""
    return _judged(s, printed_criterion)


def _judged(s: Criterion, criterion: Any) -> Evidence:
    states = _states(s)
    growth = [pure_state_growth(values, 0, beta, plus, minus) for values, beta, plus, minus in states]
    stable = [1.0 if criterion(values, 0, beta, plus, minus) else -1.0 for values, beta, plus, minus in states]
    stable = [0.0 if abs(g) < 1e-9 else sign for g, sign in zip(growth, stable, strict=True)]
    return Evidence({"growth": np.array(growth[: len(s.cases)]), "stable": np.array(stable)})


CRITERION = claim(
    "followups/S2b",
    SPECTRAL_SELECTION,
    "exact stability of split states, single tokens included",
    "A split of two tokens or more a side is stable iff 2β|λ_p| > |ln r|, λₖ < λ_pς and, for λ_p < 0, λₖ > λ_p. For "
    "λ_p > 0 and a single token on the smaller side the first condition is not necessary: there the blocks decide.",
    where="derived; local stability of pure modes",
    models=("sa",),
    quick=Criterion(),
    full=Criterion(draws=5000),
    within={
        "growth": absolute(1e-7, "rounding of eigenvalues; double ones keep half the digits"),
        "stable": exactly("sign of the largest growth rate at every state"),
    },
    simulate=simulate_criterion,
    predict=predict_criterion,
    note="At λ = (0.85, −0.8, −0.7), β = 0.6 and 4 + 1 tokens λ_p is below ln 4/(2β) = 1.155, yet the state is stable.",
    marks=("derived",),
    convention=CONVENTION,
)

CRITERION.printed_as(
    "followups/ER-S2",
    "stability of split states without the caveat about single tokens",
    "A split state with λ_p > 0 is stable iff λ_p > |ln r|/(2β) and λₖ < λ_pς for all k ≠ p.",
    where="local stability of pure modes, read as an equivalence for every split",
    predict=predict_printed,
    note="With one token on the smaller side no difference inside that side exists, so its rate −φ decides nothing.",
    marks=("secondary",),
)


# --- S4: three groups

Triples = Annotated[
    tuple[tuple[float, float, of.NonNegative, of.Count, of.Count], ...],
    means("eigenvalues of u and v, β, tokens at u and at each of qu ± sv", "a, b, β, m, k"),
]


class ThreeGroups(Setting):
    """Equilibria of three groups."""

    cases: Triples = (
        (2.0, -3.0, 1.5, 1, 1),
        (-0.4, -4.0, 0.03, 1, 1),
        (-2.0, -4.0, 0.03, 1, 1),
        (-0.4, -4.0, 0.03, 1, 2),
    )
    points: Annotated[of.Count, means("values of q between which the engine's field is looked at")] = 801


@eqx.filter_jit
def _pair_velocity(model: SelfAttention, q: Array, counts: tuple[int, int]) -> Array:
    """dq/dt of the pair, over s, by the engine."""
    m, k = counts

    def one(cosine: Array) -> Array:
        sine = jnp.sqrt((1 - cosine) * (1 + cosine))
        rows = jnp.stack([jnp.array([1.0, 0.0]), jnp.stack([cosine, sine]), jnp.stack([cosine, -sine])])
        x = jnp.repeat(rows, jnp.array([m, k, k]), axis=0, total_repeat_length=m + 2 * k)
        return model.drift(x, jnp.zeros(()))[m, 0] / sine

    return jax.vmap(one)(q)


def _engine_roots(case: tuple[Any, ...], points: int) -> list[float]:
    """Zeros of the engine's field over q, bisected between points that lie closer near ±1."""
    a, b, beta, m, k = case
    model = symmetric_model((a, b), beta)
    speed = lambda q: np.asarray(_pair_velocity(model, jnp.atleast_1d(q), (int(m), int(k))))  # noqa: E731
    grid = np.cos(np.linspace(np.pi, 0.0, points + 2))[1:-1]
    values = speed(grid)
    turns = np.flatnonzero(values[:-1] * values[1:] < 0)
    scalar = lambda q: float(speed(q)[0])  # noqa: E731
    return [float(optimize.brentq(scalar, grid[i], grid[i + 1], xtol=1e-16)) for i in turns]


def simulate_groups(s: ThreeGroups) -> Evidence:
    """Where the engine's field vanishes, what is left of it there, and how displacements grow."""
    roots, left, growth = [], [0.0], []
    for case in s.cases:
        model = symmetric_model(case[:2], case[2])
        for q in _engine_roots(case, s.points):
            speed, rates = _at_rest(model, jnp.asarray(_circle(q, int(case[3]), int(case[4]))))
            roots.append(q)
            left.append(float(jnp.abs(speed).max()))
            growth.append(float(np.linalg.eigvals(np.asarray(rates)).real.max()))
    return Evidence({"q": roots, "residual": max(left), "growth": growth})


def _circle(q: float, m: int, k: int) -> np.ndarray:
    s = np.sqrt((1 - q) * (1 + q))
    return np.repeat([[1.0, 0.0], [q, s], [q, -s]], [m, k, k], axis=0)


@eqx.filter_jit
def _at_rest(model: SelfAttention, x: Array) -> tuple[Array, Array]:
    """The engine's field, and its Jacobian along the circle."""
    field = lambda y: model.drift(model.retract(y), jnp.zeros(()))  # noqa: E731
    tangent = jnp.stack([-x[:, 1], x[:, 0]], axis=1)
    return field(x), jnp.einsum("ia,iajb,jb->ij", tangent, jax.jacfwd(field)(x), tangent)


def predict_groups(s: ThreeGroups) -> Evidence:
    """Roots of the closed equation; growth from the linearisation of groups."""
    roots, growth = [], []
    for a, b, beta, m, k in s.cases:
        for q in mixed_equilibria(a, b, beta, int(m), int(k)):
            roots.append(float(q))
            growth.append(group_growth([a, b], beta, mixed_points(2, 0, 1, q), [m, k, k]))
    return Evidence({"q": roots, "residual": 0.0, "growth": growth})


claim(
    "followups/S4",
    SPECTRAL_SELECTION,
    "three-group equilibria",
    "m tokens at u and k each at qu ± sv, s = √(1−q²), Vu = au, Vv = bv, are stationary iff q[(a−b)e^{β(b+(a−b)q²)} + "
    "(a+b)e^{β(−b+(a+b)q²)}] + (am/k)e^{βaq} = 0; some are stable, which is why V ≺ 0 does not always polarise.",
    where="three-group equilibria",
    models=("sa",),
    quick=ThreeGroups(),
    full=ThreeGroups(points=8001),
    within={
        "q": absolute(1e-12, "bisected to rounding; the field is O(1) steep there"),
        "residual": at_most("rounding of the field at a root", slack=1e-13),
        "growth": absolute(1e-9, "rounding of the Jacobian, and of q"),
    },
    simulate=simulate_groups,
    predict=predict_groups,
    mistakes=(
        Mistake(
            "_circle",
            "q too large by the share {:g}",
            lambda right, size: lambda q, m, k: right(float(np.clip((1 + size) * q, -1, 1)), m, k),
            (1e-10, 1e-6, 0.01),
        ),
    ),
    note="cases are [a, b, β, m, k]; all roots are compared, in the order of q.",
    marks=("secondary", "derived"),
    convention=CONVENTION,
)


# --- S5: the energy climbs


class Climb(Setting):
    """Tokens of S1 by a method of fixed step."""

    eigenvalues: of.Eigenvalues = (2.0, 0.5, -1.0)
    beta: of.Beta = 0.8
    n: of.Tokens = 20
    step: of.TimeStep = 0.02
    until: of.Until = 12.0
    seed: of.Seed = 0


def simulate_climb(s: Climb) -> Evidence:
    """The energy of every recorded step of the engine's RK4."""
    leading, d = int(np.argmax(s.eigenvalues)), len(s.eigenvalues)
    start = _one_sided_start(jax.random.key(s.seed), s.n, d, leading)
    steps = max(1, round(s.until / s.step))
    times = s.step * np.arange(steps + 1)
    run = flow(
        symmetric_model(s.eigenvalues, s.beta),
        start,
        times=times,
        record=positions,
        method="rk4",
        step=s.step,
        form="tokens",
    )
    energy = np.array([_pair_sum(x, s) for x in run["tokens"].values])
    falls = -np.diff(energy).min(initial=0.0) / np.abs(energy).max()
    every = max(1, len(energy) // 200)
    curve = Curve("RK4", times[::every], energy[::every])
    return Evidence(
        {"largest_fall": float(max(falls, 0.0)), "gain": float(energy[-1] - energy[0])}, curves=(curve,), runs=(run,)
    )


def _pair_sum(x: np.ndarray, s: Climb) -> float:
    """E = Σ e^{β⟨x_i, V x_j⟩}/(2β); at β = 0 the term that is left, ½⟨Σx, VΣx⟩."""
    scores = x @ (x * np.asarray(s.eigenvalues)).T
    return float(np.exp(s.beta * scores).sum() / (2 * s.beta) if s.beta > 0 else scores.sum() / 2)


def predict_climb(s: Climb) -> Evidence:
    """Never down, and from the start to the energy of n tokens at e₁."""
    values = np.asarray(s.eigenvalues, float)
    leading = int(np.argmax(values))
    start = np.asarray(_one_sided_start(jax.random.key(s.seed), s.n, len(values), leading))
    scores = np.einsum("ia,a,ja->ij", start, values, start)
    top = float(values[leading])
    if s.beta > 0:
        gain = (s.n**2 * np.exp(s.beta * top) - np.exp(s.beta * scores).sum()) / (2 * s.beta)
    else:
        gain = (s.n**2 * top - scores.sum()) / 2
    dominant = top > np.abs(np.delete(values, leading)).max(initial=0.0)
    late = 100 * np.exp(-alignment_rate(values) * s.until) > 1e-3 if dominant else False
    undecided = {"gain": f"until={2 * s.until:g} or more: tokens are still on their way"} if late else {}
    if s.step * np.abs(values).max() * max(1.0, s.beta * np.abs(values).max()) > 0.5:
        undecided["largest_fall"] = "a smaller step: RK4 may overshoot where step·β·λ² is of order one"
    return Evidence({"largest_fall": 0.0, "gain": gain if dominant else None}, undecided=undecided)


claim(
    "followups/S5",
    SPECTRAL_SELECTION,
    "the energy climbs along RK4",
    "E_β = (2β)⁻¹Σ e^{β⟨xᵢ,Vxⱼ⟩} never falls along the flow (Ė = ΣZᵢ|ẋᵢ|²), and not along RK4 with step 0.02; from one "
    "side of e₁ it ends at n²e^{βλ₁}/(2β).",
    where="gradient structure of the dynamics",
    models=("sa",),
    quick=Climb(),
    full=Climb(n=100, until=30.0),
    within={
        "largest_fall": at_most("relative to the largest energy: rounding of a sum of n² terms", slack=1e-9),
        "gain": relative(1e-3, "what is left after the time that the late rate needs, with room for a slow start"),
    },
    simulate=simulate_climb,
    predict=predict_climb,
    axes=Axes("depth-time t", "energy E"),
    mistakes=(REVERSED,),
    marks=("secondary", "derived"),
    convention=CONVENTION,
)
