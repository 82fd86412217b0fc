"""A11: the baseline that is trained. Few layers find by gradients what the constructions write down.

L layers (V, B, W, U, b) of duration one, ẋ = P_x(V A_B[μ](x) + W(Ux + b)₊) (arXiv:2411.04551), classical Runge–Kutta
with four steps a layer and renormalisation; the loss is Σ_i W₂², by the assignment of the moment; Adam with a cosine
schedule. An optimiser learns the error of its integrator too, so the answer is always that of the verifier: the
schedule integrated to 1e-11, beside what the trainer saw. Constructions are exact and instant, trained schedules have
fewer pieces.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import linear_sum_assignment

from pathlines.foundation.errors import ArgumentError, PathlinesError, finite_number, positive_integer, require
from pathlines.foundation.progress import Progress
from pathlines.transport.sphere.disentangle import separation
from pathlines.transport.sphere.interpolate import MeasureInterpolator
from pathlines.transport.sphere.layer import layer
from pathlines.transport.sphere.measure import Measure, measures
from pathlines.transport.sphere.plan import Stage
from pathlines.transport.sphere.schedule import SphereSchedule
from pathlines.transport.verifier import verify_schedule

LAYERS, STEPS, RATE = 6, 3000, 1e-2
SUBSTEPS = 4
"""Runge–Kutta steps of a layer."""
SPREAD, CLIP = 0.5, 1.0
"""Standard deviation of the first weights, and the largest norm of a gradient."""
MOST_STEPS = 1_000_000


class Trained(NamedTuple):
    """A trained schedule; W₂ of each prompt as its training saw it and as the verifier does, and seconds."""

    schedule: SphereSchedule
    trainer_w2: list[float]
    verified_w2: list[float]
    seconds: float


def train_schedule(
    inputs: Any, targets: Any, layers: int = LAYERS, *, steps: int = STEPS, rate: float = RATE, seed: int = 0
) -> Trained:
    """Layers that bring each prompt near its target, by gradient descent.

    You will see W₂ of 10⁻² to 10⁻³, and more of it verified than trained. Good values: the defaults, for a dozen tokens
    in d = 4. Cost: steps × layers, some 2 ms a step; needs optax. In the precision that JAX is set to.

    Args:
        inputs: N prompts of n tokens each, (n, d) arrays of unit vectors.
        targets: as many, with n tokens each.
        layers: L. The more, the smaller the error, and the longer a step.
        steps: of Adam. The more, the smaller the error.
        rate: of Adam, at the beginning of the cosine. The larger, the faster and the rougher.
        seed: of the first weights.
    """
    began = time.perf_counter()
    sources, goals = (_stacked(name, value) for name, value in (("inputs", inputs), ("targets", targets)))
    require(sources.shape == goals.shape, "targets", f"have the shape {sources.shape} of the inputs", goals.shape)
    depth, count = positive_integer("layers", layers), positive_integer("steps", steps)
    if depth > 1000 or count > MOST_STEPS:
        raise ArgumentError(f"Arguments `layers` and `steps` must be at most 1000 and {MOST_STEPS}.")
    start = finite_number("rate", rate, 0.0, open_low=True)
    weights = _drawn(depth, sources.shape[2], positive_integer("seed", seed, 0))
    weights, ends = _descended(weights, sources, goals, count, start)
    found = {name: np.asarray(value, float) for name, value in weights.items()}
    pieces = [layer(sources.shape[2], 1.0, **{n: v[k] for n, v in found.items()}) for k in range(depth)]
    schedule = SphereSchedule(sources.shape[2], pieces)
    verified = verify_schedule(schedule, list(sources), list(goals)).w2
    return Trained(schedule, _distances(ends, goals), verified or [], time.perf_counter() - began)


def fit_trained(estimator: MeasureInterpolator, sources: list[Measure], goals: list[Measure]) -> None:
    """``MeasureInterpolator(method="trained")``: ``w2`` is verified, ``trainer_w2`` stands beside it."""
    found = train_schedule(sources, goals, estimator.pieces or LAYERS, seed=estimator.seed)
    flow, ends = found.schedule, found.schedule.push(sources)
    before = _distances(np.stack([m.points for m in sources]), np.stack([m.points for m in goals]))
    after = Stage("trained layers", flow.count, separation(ends), max(found.verified_w2))
    estimator.schedule_ = flow
    estimator.timeline_ = [Stage("start", 0, separation(sources), max(before)), after]
    back = flow.inverse().push(ends)
    estimator.report_ = {
        "algorithm": "A11: trained layers",
        "pieces": flow.count,
        "switches": flow.switches,
        "w2": found.verified_w2,
        "trainer_w2": found.trainer_w2,
        "residual_w2": [0.0] * len(goals),
        "round_trip": max(float(np.abs(b.points - s.points).max()) for b, s in zip(back, sources)),
        "longest_duration": 1.0,
        "log_lipschitz": flow.log_lipschitz(),
        "steps": {"gradient": STEPS},
    }


def _stacked(name: str, value: Any) -> np.ndarray:
    """Prompts as (N, n, d); each must have n tokens of equal weight."""
    found: list[Measure] = measures(name, value)
    n = len(found[0].points)
    for k, one in enumerate(found):
        if len(one.points) != n or np.ptp(one.weights) > 1e-12:
            raise ArgumentError(f"Argument `{name}` must have {n} tokens of equal weight in each, but not in {k}.")
    return np.stack([m.points for m in found])


def _drawn(depth: int, d: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    shapes = {"V": (depth, d, d), "B": (depth, d, d), "W": (depth, d, d), "U": (depth, d, d), "b": (depth, d)}
    return {name: jnp.asarray(SPREAD * rng.standard_normal(shape)) for name, shape in shapes.items()}


def _velocity(x: Any, now: dict[str, Any]) -> Any:
    """P_x(V A_B(x) + W(Ux + b)₊) of one prompt (n, d)."""
    shares = jax.nn.softmax((x @ now["B"].T) @ x.T, axis=1)
    push = (shares @ x) @ now["V"].T + jax.nn.relu(x @ now["U"].T + now["b"]) @ now["W"].T
    return push - jnp.sum(push * x, axis=1, keepdims=True) * x


def _ends(weights: dict[str, Any], prompts: Any) -> Any:
    """Where all prompts (N, n, d) arrive."""
    h = 1.0 / SUBSTEPS

    def step(x: Any, now: dict[str, Any]) -> Any:
        one = _velocity(x, now)
        two = _velocity(x + h / 2 * one, now)
        three = _velocity(x + h / 2 * two, now)
        four = _velocity(x + h * three, now)
        x = x + h / 6 * (one + 2 * two + 2 * three + four)
        return x / jnp.linalg.norm(x, axis=1, keepdims=True)

    def one_layer(x: Any, now: dict[str, Any]) -> tuple[Any, None]:
        return jax.lax.fori_loop(0, SUBSTEPS, lambda _, z: step(z, now), x), None

    return jax.vmap(lambda x: jax.lax.scan(one_layer, x, weights)[0])(prompts)


@partial(jax.jit, static_argnums=(0, 1))
def _step(steps: int, rate: float, weights: Any, state: Any, prompts: Any, goals: Any) -> tuple[Any, Any, Any]:
    """Weights after a step towards goals in the order of the tokens, and where the prompts then arrive."""
    slope = jax.grad(lambda w: jnp.mean(jnp.sum((_ends(w, prompts) - goals) ** 2, axis=2), axis=1).sum())(weights)
    change, state = _optimiser(steps, rate).update(slope, state)
    weights = jax.tree.map(jnp.add, weights, change)
    return weights, state, _ends(weights, prompts)


def _optimiser(steps: int, rate: float) -> Any:
    try:
        import optax
    except ImportError:
        raise PathlinesError("Training needs optax: pip install 'pathlines[transport]'.") from None
    return optax.chain(optax.clip_by_global_norm(CLIP), optax.adam(optax.cosine_decay_schedule(rate, steps)))


def _descended(
    weights: Any, sources: np.ndarray, goals: np.ndarray, steps: int, rate: float
) -> tuple[dict[str, Any], np.ndarray]:
    state, prompts = _optimiser(steps, rate).init(weights), jnp.asarray(sources)
    ends = np.asarray(jax.jit(_ends)(weights, prompts))
    with Progress("training", steps) as bar:
        for k in range(steps):
            paired = np.stack([y[_assigned(x, y)] for x, y in zip(ends, goals)])
            weights, state, moved = _step(steps, rate, weights, state, prompts, jnp.asarray(paired))
            ends = np.asarray(moved)
            bar.update(k + 1)
    return weights, ends


def _assigned(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Which target each token goes to."""
    return linear_sum_assignment(((x[:, None] - y) ** 2).sum(2))[1]


def _distances(ends: np.ndarray, goals: np.ndarray) -> list[float]:
    """W₂ of each prompt."""
    return [float(np.sqrt(np.mean(np.sum((x - y[_assigned(x, y)]) ** 2, axis=1)))) for x, y in zip(ends, goals)]
