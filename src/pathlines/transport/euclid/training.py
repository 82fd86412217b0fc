"""Fine-tuning of a schedule by maximum likelihood, with the surface term that automatic differentiation leaves out.

The log-determinant Σ c_i 1{s_i > 0}, s_i = a_i·x + b_i, jumps where a point crosses a hinge, so the mean
log-density of samples moves with the hinges by jump × density there. Automatic differentiation drops this term, and
the likelihood it climbs falls (claim transport/R20). Here the value stays exact and

    c_i (σ(s_i/ε|a_i|) - stop(σ(s_i/ε|a_i|)))

is added to it: zero, with the missing derivative, smoothed over a width ε [derived]. The start is a flow that was
built without training, from pieces of arXiv:2412.19366. Gradients are in single precision, the result is a schedule
like any other: exact inverse and density in double precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from pathlines.foundation.errors import ArgumentError, PathlinesError, finite_number, of_kind, positive_integer
from pathlines.foundation.progress import Progress
from pathlines.transport.estimator import checked_samples
from pathlines.transport.euclid.schedule import EuclideanSchedule

WIDTH, RATE = 0.05, 3e-3
"""ε, for data of unit spread, and the step of Adam."""
EVERY = 20
"""Steps between two looks at the held-out samples."""
STEEPEST = 30.0
"""|w||a|t of a piece above which single precision loses the points: ramps of a stack are a million times steeper."""
MOST_STEPS = 100_000


class Weights(NamedTuple):
    """Pieces (w, a, b) of duration one, as arrays of JAX."""

    w: Any
    a: Any
    b: Any


def corrected_log_prob(weights: Weights, y: Any, width: float = WIDTH) -> jax.Array:
    """Log-density at the rows of y of N(0, I) moved by the pieces; its derivative has the surface terms."""

    def back(carry: tuple[Any, Any], piece: Weights) -> tuple[tuple[Any, Any], None]:
        x, logs = carry
        x, s, c = undone(x, piece)
        length = jax.lax.stop_gradient(jnp.linalg.norm(piece.a))
        soft = jax.nn.sigmoid(s / (width * jnp.where(length > 0, length, 1.0)))
        return (x, logs + c * (s > 0) + c * (soft - jax.lax.stop_gradient(soft))), None

    (x, logs), _ = jax.lax.scan(back, (y, jnp.zeros_like(y[:, 0])), weights, reverse=True)
    return logs - 0.5 * jnp.sum(x**2, axis=1) - 0.5 * x.shape[1] * np.log(2 * np.pi)


def undone(y: Any, piece: Weights) -> tuple[Any, Any, Any]:
    """Points before the piece, s = a·y + b, and what the log-determinant of the way back is where s > 0."""
    s, c = y @ piece.a + piece.b, -jnp.dot(piece.a, piece.w)
    small = jnp.abs(c) < 1e-3
    safe = jnp.where(small, 1.0, c)
    gain = jnp.where(small, 1 + c / 2 + c**2 / 6, jnp.expm1(safe) / safe)
    return y - (jnp.maximum(s, 0.0) * gain)[:, None] * piece.w, s, c


def descend(
    log_prob: Callable[[Weights, Any], Any], flow: EuclideanSchedule, samples: np.ndarray, steps: int, rate: float
) -> Iterator[EuclideanSchedule]:
    """The flow after every 20 steps of Adam on the mean of ``-log_prob(weights, samples)``, and after the last.

    The same function, rate and shapes share one compiled program.
    """
    data = jnp.asarray(samples, jnp.float32)
    now = Weights(*(jnp.asarray(v, jnp.float32) for v in (flow.w * flow.t[:, None], flow.a, flow.b)))
    state = _optax().adam(rate).init(now)
    for done in range(0, steps, EVERY):
        now, state = _climbed(log_prob, rate, min(EVERY, steps - done), data, now, state)
        w, a, b = (np.asarray(v, float) for v in now)
        yield EuclideanSchedule(w, a, b, np.ones(len(w)))


@partial(jax.jit, static_argnums=(0, 1, 2))
def _climbed(log_prob: Any, rate: float, count: int, data: Any, weights: Weights, state: Any) -> tuple[Any, Any]:
    """Weights and state of Adam after some steps."""
    optax = _optax()
    slope = jax.grad(lambda w: -jnp.mean(log_prob(w, data)))

    def one(carry: tuple[Any, Any], _: None) -> tuple[tuple[Any, Any], None]:
        now, memory = carry
        change, memory = optax.adam(rate).update(slope(now), memory)
        return (optax.apply_updates(now, change), memory), None

    return jax.lax.scan(one, (weights, state), length=count)[0]


@cache
def corrected(width: float) -> Callable[[Weights, Any], jax.Array]:
    """The corrected log-density of that width."""
    return lambda weights, y: corrected_log_prob(weights, y, width)


def finetune(
    flow: EuclideanSchedule, samples: Any, steps: int = 400, *, rate: float = RATE, width: float = WIDTH
) -> EuclideanSchedule:
    """A flow whose pieces have climbed the likelihood of the samples; every fifth sample judges when to stop.

    The flow itself is returned if no step makes the held-out samples likelier.

    Args:
        flow: from N(0, I) to the samples, without steep ramps: ridge flows, not triangular ones.
        samples: (n, d), of unit spread, because the width is absolute.
        steps: of Adam, each with all samples. The more, the nearer to a maximum, and the longer it takes.
        rate: of Adam. The larger, the faster and the rougher.
        width: ε of the correction. The smaller, the less biased and the noisier the derivative.
    """
    of_kind("flow", flow, EuclideanSchedule, "a EuclideanSchedule")
    data = checked_samples(samples)
    count = positive_integer("steps", steps)
    if count > MOST_STEPS:
        raise ArgumentError(f"Argument `steps` must be at most {MOST_STEPS}, but is {count}.")
    step, epsilon = (finite_number(n, v, 0.0, open_low=True) for n, v in (("rate", rate), ("width", width)))
    _check(flow, data)
    apart = np.arange(len(data)) % 5 == 0
    best, score = flow, float(flow.log_prob(data[apart]).mean())
    with Progress("fine-tuning", count) as bar:
        tuned = descend(corrected(epsilon), flow, data[~apart], count, step)
        for k, one in enumerate(tuned):
            now = float(one.log_prob(data[apart]).mean())
            if now > score:
                best, score = one, now
            bar.update(min((k + 1) * EVERY, count))
    return best


def _check(flow: EuclideanSchedule, data: np.ndarray) -> None:
    if data.shape[1] != flow.d:
        raise ArgumentError(f"Argument `samples` must have {flow.d} columns like `flow`, but has {data.shape[1]}.")
    spread = data.std(0)
    if spread.min() < 0.1 or spread.max() > 10:
        raise ArgumentError(
            f"Argument `samples` must have unit spread, but has {spread.min():.3g} to {spread.max():.3g}: "
            "standardise it first, or use RidgeFlow(finetune=…), which does."
        )
    steep = np.linalg.norm(flow.w, axis=1) * np.linalg.norm(flow.a, axis=1) * flow.t
    if flow.count == 0 or steep.max() > STEEPEST:
        raise ArgumentError(
            f"Argument `flow` must have pieces with |w||a|t ≤ {STEEPEST:g} (no ramps of a stack), but has "
            f"{'none' if flow.count == 0 else f'{steep.max():.3g}'}."
        )


def _optax() -> Any:
    try:
        import optax
    except ImportError:
        raise PathlinesError("Fine-tuning needs optax: pip install 'pathlines[transport]'.") from None
    return optax
