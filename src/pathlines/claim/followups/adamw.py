"""Deep chains of random heads against their limit, at initialisation and trained with AdamW (arXiv:2605.11059)."""

from __future__ import annotations

from typing import Annotated, Any

import jax
import msgspec
import numpy as np

from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error, root_and_error
from pathlines.claim.fitting import Mistake, simulated_at, too_large
from pathlines.claim.tolerance import at_most, relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers.followups import ADAMW
from pathlines.foundation.setting import Setting, means
from pathlines.limit.followups.averaged_heads import AdamW, AveragedHeads, astray, resolved, train_by_hand
from pathlines.model.followups.residual_heads import CONVENTION, ResidualHeads

Shapes = Annotated[tuple[tuple[of.Count, of.Count], ...], means("layers and heads", "L, H")]
Target = Annotated[of.Vector, means("where the mean of the last tokens should be")]
CHUNK = 250
"""Chains side by side."""
LAW = "what is left beyond the leading order, estimated at each setting, and five standard errors of the draws"
REMAINDERS = {"tokens": 0.3, "gradients": 1.2}
"""Largest share of ``Fluctuation.beyond`` that chains by hand had left, over ten settings of σ, T, d, n and means."""
BOTH = {"tokens": 0.02, "gradients": 0.03}
"""What is allowed."""


class Chains(Setting):
    """Random heads B = B̄ + σ_B G, V = V̄ + σ_V G' in every layer; tokens of entries N(0, 0.49)."""

    shapes: Shapes = ((32, 2), (16, 8), (8, 16))
    mean_score: Annotated[of.Matrix, means("mean of the scores", "B̄")] = ((0.5, 0, 0), (0, 0.2, 0), (0, 0, -0.3))
    mean_value: Annotated[of.Matrix, means("mean of the values", "V̄")] = ((0.4, 0.3, 0), (-0.3, 0.4, 0), (0, 0, -0.2))
    sigma_b: Annotated[of.NonNegative, means("standard deviation of the entries of B", "σ_B")] = 0.5
    sigma_v: Annotated[of.NonNegative, means("standard deviation of the entries of V", "σ_V")] = 0.5
    target: Target = (0.6, -0.3, 0.2)
    n: of.Tokens = 6
    until: of.Until = 1.0
    draws: of.Draws = 2000
    start_seed: Annotated[int, means("seed of the tokens")] = 0
    seed: of.Seed = 1


def tokens_of(s: Chains, n: int) -> np.ndarray:
    """Entries N(0, 0.49); fewer tokens are the first of more."""
    return 0.7 * np.random.default_rng(s.start_seed).standard_normal((n, len(s.mean_score)))


def chains(s: Chains, shape: tuple[int, int], x: np.ndarray, gradients: bool) -> tuple[np.ndarray, np.ndarray]:
    """Last tokens of fresh chains, and n times the gradient at their first layer."""
    model = ResidualHeads(s.mean_score, s.mean_value, *shape, s.sigma_b, s.sigma_v, s.until)
    target = np.array(s.target)

    def one(weights: Any) -> Any:
        if not gradients:
            return model.hidden(weights, x)[-1], x[:1]
        path, slopes = model.backward(weights, x, target)
        return path[-1], len(x) * slopes[0]

    count = -(-s.draws // CHUNK)
    size = -(-s.draws // count)
    run, found = jax.jit(jax.vmap(one)), []
    means_of, spread = np.array([s.mean_score, s.mean_value]), np.array([s.sigma_b, s.sigma_v])[:, None, None]
    for k in range(count):
        noise = np.random.default_rng((s.seed, *shape, k)).standard_normal((size, *shape, *means_of.shape))
        found.append([np.asarray(v) for v in run(means_of + spread * noise)])
    last, slope = (np.concatenate(v)[: s.draws] for v in zip(*found, strict=True))
    return last, slope


def scatter(found: np.ndarray, exact: np.ndarray, shape: tuple[int, int]) -> tuple[float, float]:
    """√(LH) times the root mean square distance of a token, and its error."""
    mean, error = mean_and_error(np.sum((found - exact) ** 2, axis=-1).mean(axis=-1))
    root, noise = root_and_error(float(mean), float(error))
    grown = np.sqrt(shape[0] * shape[1])
    return grown * root, grown * noise


def averaged(s: Chains, x: np.ndarray) -> tuple[AveragedHeads, AveragedHeads]:
    """The averaged drift, and another order of its quadrature."""
    return resolved(x, s.mean_score, s.mean_value, s.sigma_b, s.sigma_v, s.until)


def simulate_scatter(s: Chains) -> Evidence:
    """Distances of fresh chains, and of their gradients, from the averaged flow."""
    x = tokens_of(s, s.n)
    end, slope = averaged(s, x)[0].limit(x, s.target, s.until)  # the reference that errors are taken from
    tokens, gradients = [], []
    for shape in s.shapes:
        last, first = chains(s, shape, x, True)
        tokens.append(scatter(last, end, shape))
        gradients.append(scatter(first, len(x) * slope, shape))
    (a, ea), (b, eb) = np.array(tokens).T, np.array(gradients).T
    grown = np.sqrt([layers * heads for layers, heads in s.shapes])
    values = {"tokens": a, "gradients": b, "within_bound": a / grown, "gradients_within_bound": b / grown}
    errors = {"tokens": ea, "gradients": eb, "within_bound": ea / grown, "gradients_within_bound": eb / grown}
    number = grown**2
    return Evidence(values, errors, curves=(Curve("tokens", number, a, ea), Curve("gradients", number, b, eb)))


def predict_scatter(s: Chains) -> Evidence:
    """The linearised chain around the averaged flow; the bound with its constant at these heads."""
    x = tokens_of(s, s.n)
    theory, other = averaged(s, x)
    found = [theory.fluctuation(x, s.target, *shape, s.until, seed=s.seed + 1000) for shape in s.shapes]
    depth, heads = np.array(s.shapes, float).T
    grown = np.sqrt(depth * heads)
    a, b = (grown * np.array([getattr(f, name) for f in found]) for name in ("tokens", "gradient"))
    ea, eb = (grown * np.array([getattr(f, name) for f in found]) for name in ("tokens_error", "gradient_error"))
    bound = 1 / depth + depth ** (-1 / 3) * heads**-0.5
    apart = [p - q for p, q in zip(theory.limit(x, s.target, s.until), other.limit(x, s.target, s.until), strict=True)]
    missed = [np.sqrt(np.mean(np.sum(p**2, axis=1))) for p in (apart[0], len(x) * apart[1])]
    beyond = np.array([f.beyond for f in found])
    undecided = {
        **_too_few("tokens", beyond, missed[0] * grown / a, "within_bound"),
        **_too_few("gradients", beyond, missed[1] * grown / b, "gradients_within_bound"),
    }
    values = {"tokens": a, "gradients": b, "within_bound": a.max() * bound, "gradients_within_bound": b.max() * bound}
    curves = (Curve("law", grown**2, a), Curve("law of gradients", grown**2, b))
    return Evidence(values, {"tokens": ea, "gradients": eb}, curves=curves, undecided=undecided)


def _too_few(name: str, beyond: np.ndarray, missed: np.ndarray, bound: str) -> dict[str, str]:
    """Where the law is not the whole: the next order in 1/(LH), and what the reference misses, over the scatter.

    Two orders of quadrature differ by some third of what is missed where they converge slowly (steep scores).
    """
    left, quadrature = REMAINDERS[name] * beyond.max(), 0.5 * (3 * float(np.max(missed))) ** 2
    if quadrature > BOTH[name] / 2:
        return dict.fromkeys((name, bound), "the averaged drift is not known so well: a smaller sigma_b, or fewer d")
    more = f"{np.ceil(left / BOTH[name]):g} times as many heads: some {left:.0%} is left beyond the leading order"
    return ({name: more} if left > BOTH[name] else {}) | ({bound: more} if left > 0.5 else {})


SHALLOW = simulated_at(
    "a chain of {:g} times fewer layers",
    (4.0, 16.0, 64.0),
    shapes=lambda shapes, size: tuple((max(1, int(layers / size)), heads) for layers, heads in shapes),
)
LOUD = Mistake(
    "simulate",
    "deviations {:.0%} too large",
    lambda right, size: lambda s: _louder(right(s), size),
    (1.0, 3.0),
)


def _louder(found: Evidence, size: float) -> Evidence:
    return msgspec.structs.replace(found, values={k: v * (1 + size) for k, v in found.values.items()})


claim(
    "followups/A1",
    ADAMW,
    "hidden states and gradients scatter like (LH)^(−1/2) around the averaged flow",
    "With independent heads of scale 1/(LH) the last tokens and the backpropagated gradient are within "
    "K(L⁻¹ + L^{−1/3}H^{−1/2}) of dX/ds = E Att(X) and its adjoint. Sharper: √(LH) times their root mean square "
    "distance is that of the chain linearised around the averaged flow, with independent errors of the covariance of "
    "one random head in each layer, besides the O(1/L) of Euler's method.",
    where="abstract, the bound, at initialisation; the law is derived",
    models=("residual-heads",),
    quick=Chains(),
    full=Chains(shapes=((64, 1), (128, 1), (16, 16), (32, 16), (32, 64)), draws=12000),
    within={
        "tokens": relative(BOTH["tokens"], LAW, errors=5.0),
        "gradients": relative(BOTH["gradients"], LAW, errors=5.0),
        "within_bound": at_most("the theorem, with the constant of the law", errors=5.0),
        "gradients_within_bound": at_most("the theorem, with the constant of the law", errors=5.0),
    },
    simulate=simulate_scatter,
    predict=predict_scatter,
    axes=Axes("L·H", "√(LH) · distance", "log", "linear"),
    mistakes=(SHALLOW, LOUD),
    marks=("abstract", "derived", "assumed"),
    convention=CONVENTION,
)


# --- A3: more tokens


class Crowds(Chains):
    """The same chains with more and more tokens."""

    shapes: Shapes = ((8, 6),)
    tokens: Annotated[of.Sizes, means("numbers of tokens, each the first of the next")] = (6, 24, 96)
    draws: of.Draws = 700


def simulate_crowds(s: Crowds) -> Evidence:
    """Scatter of a token among n."""
    found = []
    for n in s.tokens:
        x = tokens_of(s, n)
        end = averaged(s, x)[0].last_tokens(x, s.until)
        found.append(scatter(chains(s, s.shapes[0], x, False)[0], end, s.shapes[0]))
    a, error = np.array(found).T
    growth = a[-1] / a[0]
    errors = {"scatter": error, "growth": growth * float(np.hypot(error[0] / a[0], error[-1] / a[-1]))}
    return Evidence({"scatter": a, "growth": growth}, errors, curves=(Curve("chains", np.array(s.tokens), a, error),))


def predict_crowds(s: Crowds) -> Evidence:
    """The linearised chain; no growth beyond a fifth."""
    (shape, *_), found, missed = s.shapes, [], []
    for n in s.tokens:
        x = tokens_of(s, n)
        theory, other = averaged(s, x)
        found.append(theory.fluctuation(x, s.target, *shape, s.until, 4000, s.seed + 1000, gradient=False))
        missed.append(astray(theory, other, x, s.until))
    grown = np.sqrt(shape[0] * shape[1])
    a, error = (grown * np.array([getattr(f, name) for f in found]) for name in ("tokens", "tokens_error"))
    few = _too_few("tokens", np.array([f.beyond for f in found]), np.array(missed) * grown / a, "growth")
    few = {"scatter" if name == "tokens" else name: why for name, why in few.items()}
    curves = (Curve("law", np.array(s.tokens), a),)
    return Evidence({"scatter": a, "growth": 1.2}, {"scatter": error}, curves=curves, undecided=few)


claim(
    "followups/A3",
    ADAMW,
    "the scatter of a token does not grow with the number of tokens",
    "At fixed depth and heads the root mean square distance of a token from the averaged flow is that of the "
    "linearised chain for every number of tokens, and at n = 96 at most a fifth larger than at n = 6: the constants of "
    "the theorem do not depend on n.",
    where="abstract, constants independent of the number of tokens; the experiment is ours",
    models=("residual-heads",),
    quick=Crowds(),
    full=Crowds(shapes=((32, 16),), draws=6000),
    within={
        "scatter": relative(BOTH["tokens"], LAW, errors=5.0),
        "growth": at_most("a fifth for the chance of few tokens, and five standard errors", errors=5.0),
    },
    simulate=simulate_crowds,
    predict=predict_crowds,
    axes=Axes("tokens n", "√(LH) · distance of a token", "log", "linear"),
    mistakes=(too_large("scatter", "grown by {:.0%} at every n"), LOUD),
    blind={"growth": "a ratio: errors of all numbers of tokens alike leave it as it is"},
    marks=("abstract", "unverified", "derived", "assumed"),
    convention=CONVENTION,
)


# --- A2: training

ROWS, AIM = ((1.0, 0.2), (-0.5, 0.8), (0.3, -1.0), (-0.9, -0.4)), (0.6, -0.3)


class Training(Setting):
    """AdamW on chains of several shapes, from weights of entries N(0, 0.49)."""

    shapes: Shapes = ((6, 1), (24, 1), (6, 16))
    reference: Annotated[tuple[of.Count, of.Count], means("layers and heads of the reference", "L, H")] = (32, 24)
    tokens: Annotated[of.Matrix, means("tokens", "X₀")] = ROWS
    target: Target = AIM
    sigma: Annotated[of.Positive, means("standard deviation of the entries of B and V", "σ")] = 0.7
    steps: Annotated[of.Count, means("steps of AdamW")] = 20
    rate: Annotated[of.Positive, means("rate", "η")] = 0.1
    b1: Annotated[of.Share, means("memory of the gradient", "b₁")] = 0.9
    b2: Annotated[of.Share, means("memory of its square", "b₂")] = 0.99
    eps: Annotated[of.Positive, means("added to the root", "ε")] = 1e-3
    decay: Annotated[of.NonNegative, means("weight decay", "w")] = 0.01
    runs: of.Runs = 12
    seed: of.Seed = 1


def first_weights(s: Training, shape: tuple[int, int], runs: int) -> np.ndarray:
    """(runs, L, H, 2, d, d)."""
    d = len(s.target)
    return s.sigma * np.random.default_rng((s.seed, *shape)).standard_normal((runs, *shape, 2, d, d))


def simulate_training(s: Training) -> Evidence:
    """optax's AdamW through JAX's derivatives."""

    def trained(shape: tuple[int, int], runs: int) -> tuple[np.ndarray, np.ndarray]:
        d = len(s.target)
        model = ResidualHeads(np.zeros((d, d)), np.zeros((d, d)), *shape, s.sigma, s.sigma)
        rule = (s.steps, s.rate, s.b1, s.b2, s.eps, s.decay)
        one = lambda weights: model.train(s.tokens, s.target, weights, *rule)[:2]  # noqa: E731
        losses, last = jax.jit(jax.vmap(one))(first_weights(s, shape, runs))
        return np.asarray(losses).T, np.asarray(last)

    return _of_training(s, trained, "optax")


def predict_training(s: Training) -> Evidence:
    """AdamW by hand on gradients by hand, from the same weights; what training should reach."""
    rule = AdamW(s.rate, s.b1, s.b2, s.eps, s.decay)

    def trained(shape: tuple[int, int], runs: int) -> tuple[np.ndarray, np.ndarray]:
        return train_by_hand(s.tokens, s.target, first_weights(s, shape, runs), s.steps, rule)

    found = _of_training(s, trained, "by hand")
    term, (small, large) = theorem(s.shapes), ends(s)
    number, (rest,) = np.prod(s.shapes[large]), theorem((s.reference,))
    usual = s.steps >= 20 and 0.05 <= s.rate <= 0.2 and s.b1 <= 0.95 and s.eps <= 0.01 and s.decay <= 0.1
    alike = np.array_equal(s.tokens, ROWS) and np.array_equal(s.target, AIM) and 0.5 <= s.sigma <= 1
    short = {} if usual and alike and number >= 24 else {"learned": SHORT}
    wider = all(s.reference[k] >= max(shape[k] for shape in s.shapes) for k in (0, 1)) and rest <= 0.7 * term[large]
    apart = term[large] <= 0.5 * term[small] and s.runs >= 8
    near = {} if apart else {"nearer": "shapes apart, 1/L + L^(−1/3)H^(−1/2) halved, and at least 8 runs"}
    near = near if wider else {"nearer": "a reference with more layers and heads than every shape"}
    near = near if usual else {"nearer": SHORT}
    bounds = {"learned": 0.15, "nearer": (term[large] + rest) / (term[small] + rest)}
    return Evidence(
        {**found.values, **bounds}, {}, found.curves, source="gradients by hand", undecided={**short, **near}
    )


SHORT = "20 steps of rate 0.1, ε ≤ 0.01 and decay ≤ 0.1 on L·H ≥ 24, with the tokens, target and σ of the claim"


def theorem(shapes: Shapes) -> np.ndarray:
    """1/L + L^(−1/3) H^(−1/2) of each shape."""
    depth, heads = np.array(shapes, float).T
    return 1 / depth + depth ** (-1 / 3) * heads**-0.5


def ends(s: Training) -> tuple[int, int]:
    """The shapes that the theorem lets be farthest from the limit, and nearest to it."""
    term = theorem(s.shapes)
    return int(term.argmax()), int(term.argmin())


def _of_training(s: Training, trained: Any, label: str) -> Evidence:
    """Final losses, distances to one large reference, and what they say."""
    (limit,) = trained(s.reference, 1)[1]
    rows = [trained(shape, s.runs) for shape in s.shapes]
    squares = [mean_and_error(np.sum((last - limit) ** 2, axis=-1).mean(axis=-1)) for _, last in rows]
    far, error = np.array([root_and_error(float(mean), float(noise)) for mean, noise in squares]).T
    small, large = ends(s)
    begun, ended = (np.array([losses[k].mean() for losses, _ in rows]) for k in (0, -1))
    values = {
        "losses": np.array([losses.mean(axis=1) for losses, _ in rows]),
        "distances": far,
        "learned": ended[large] / begun[large],
        "nearer": far[large] / far[small],
    }
    noise = values["nearer"] * float(np.hypot(error[large] / far[large], error[small] / far[small]))
    steps = np.arange(s.steps + 1)
    curves = tuple(
        Curve(f"{label}, L = {shape[0]}, H = {shape[1]}", steps, losses.mean(axis=1))
        for shape, (losses, _) in zip(s.shapes, rows, strict=True)
    )
    return Evidence(values, {"nearer": noise}, curves=curves)


claim(
    "followups/A2",
    ADAMW,
    "AdamW learns alike at every depth and number of heads",
    "With the gradient multiplied by LH, the losses of 20 steps of AdamW and the trained tokens are those of an "
    "independent computation at every (L, H); the mean loss falls from 0.2 to below 0.03 where LH ≥ 24, and the tokens "
    "come nearer to those of a large reference at least like the theorem's L⁻¹ + L^{−1/3}H^{−1/2}, the reference's own "
    "added.",
    where="abstract, after training; the experiment is ours",
    models=("residual-heads",),
    quick=Training(),
    full=Training(shapes=((6, 1), (24, 1), (96, 1), (6, 16), (24, 16), (96, 16)), reference=(96, 64)),
    within={
        "losses": relative(1e-6, "the same steps in another order of summation: rounding, grown by twenty steps"),
        "distances": relative(1e-6, "the same"),
        "learned": at_most("a loss of 0.007 of 0.21 is reached, and 12 draws scatter by a half of that"),
        "nearer": at_most("the order of the theorem, that of the reference added; four standard errors", errors=4.0),
    },
    simulate=simulate_training,
    predict=predict_training,
    axes=Axes("steps of AdamW", "mean loss", "linear", "log"),
    blind={"nearer": "twelve runs: their standard errors cover most mistakes"},
    mistakes=(
        simulated_at("a rate {:g} times smaller", (10.0, 100.0), rate=lambda rate, size: rate / size),
        simulated_at(
            "narrow chains in place of wide ones", (1.0,), shapes=lambda shapes, size: (shapes[0],) * len(shapes)
        ),
    ),
    marks=("abstract", "derived", "assumed"),
    convention=CONVENTION,
)
