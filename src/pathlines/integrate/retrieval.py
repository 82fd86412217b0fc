"""retrieval: what the last token of a prompt remembers of every earlier one, estimated with little noise.

The profile of N uniform tokens (Kinetic theory for Transformers and the lost-in-the-middle phenomenon,
arXiv:2605.09213) is

    S_N(i) = N E W(θ_N(t) - θ_i(0)) = E[ N J_i W(θ_N(t) - θ_i(0)) ],   J_i = ∂θ_N(t)/∂θ_i(0),

W(D) = Σ_{n≥1} w_n cos nD, with w_n = e^{-π²n²/(2M²)} for the soft decoder over M codewords, sin(πn/M)/(πn) for the hard
one. J_i = O(1/N): the right side has N² times less variance than the left (``integrate/influence.py``, also for
spheres).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, PRNGKeyArray

from pathlines.foundation.errors import finite_number, of_kind, positive_integer, require
from pathlines.foundation.keys import random_key
from pathlines.foundation.precision import require_float64
from pathlines.foundation.progress import Progress
from pathlines.integrate.influence import CircleInfluence, SphereInfluence
from pathlines.integrate.sphere_prompts import TRIED, check_sphere_model, enough_steps
from pathlines.kernels.native import native_serves
from pathlines.model.base import Model
from pathlines.model.causal.decoder import CausalDecoder
from pathlines.numerics.few_samples import ControlledSums, student

BLOCK = 64
"""Prompts that share a key: which prompts there are depends neither on the memory nor on the processors."""
DECODERS = ("soft", "hard")
ESTIMATORS = ("adjoint", "naive")
LINEAR = 0.05
"""Largest e^{2x}/N at which linear theory is within 5 %."""
FEW = 20
"""Prompts below which the sample's own deviation understates errors by a quarter and more."""
HEAVY, LUCK = 0.05, 40
"""Tails are heavy where one of R prompts has more than 0.05 + 40/R of the sum of squares at some position.

Shallow prompts (x = 0.6) have 0.02 for R = 2000 and 0.17 for 200, deep ones 0.1 and 0.4 (x = 1.7), 0.4 (x = 2.8, 2000).
"""


def retrieval(
    model: Model,
    n: int,
    depth: float,
    *,
    key: PRNGKeyArray,
    prompts: int = 2000,
    vocabulary: int = 8,
    decoder: str = "soft",
    mode: int | None = None,
    d: int = 3,
    layers: int | None = None,
    estimator: str = "adjoint",
    memory: float = 2e8,
    progress: bool | None = None,
) -> xr.Dataset:
    """S_N(i) for every source position i < N: variables ``profile`` and its standard ``error``, dim ``position``.

    Prompts come in blocks of 64 with keys of their own: the same key means the same prompts whatever the memory, and
    common random numbers for every β, mask and depth. Errors are those of Student's law. The attribute ``warning``
    says where the numbers need care: ``depends_linearly`` = e^{2x}/N above 0.05, beyond which linear theory is off by
    more than 5 %; ``largest_share``, that of one prompt in the sum of squares, large, as in deep prompts, whose J has
    heavy tails; fewer than 20 prompts. Needs 64-bit numbers. O(prompts · N K) per step for ALiBi masks, else
    O(prompts · N²).

    Args:
        model: a ``CausalDecoder`` with any mask, or any model of tokens on the sphere (``SelfAttention``, say).
        n: N ≥ 2, tokens of a prompt. The profile is a limit: it changes by O(1/N). The more, the nearer to it.
        depth: T > 0, a time or, with ``layers``, the number of layers times their step. The deeper, the more is heard
            through others: primacy grows, recency is lost.
        key: of the prompts.
        prompts: ≥ 2 independent uniform prompts; errors fall with their root. The more, the slower.
        vocabulary: M ≥ 2 codewords on the circle. The more, the narrower is W.
        decoder: "soft" or "hard", which W.
        mode: take W = cos nD instead; on the sphere the degree ℓ of the harmonic P_ℓ(<x_N, x_i>), 1 if not given. The
            larger, the narrower.
        d: the dimension of tokens on the sphere S^{d-1}; decoders of angles have none. The larger, the nearer to
            orthogonal are random tokens.
        layers: L residual layers of step T/L instead of the flow. The more, the nearer to the flow.
        estimator: "adjoint", or "naive": N E W(θ_N - θ_i) by plain Monte Carlo, for comparison only.
        memory: bytes that the prompts of one batch may take; at least one prompt is taken. The more, the fewer batches.
        progress: show a bar; by default on a terminal, after two seconds.
    """
    require_float64("Retrieval needs")
    of_kind("model", model, Model, "a model")
    n, prompts = positive_integer("n", n, 2), positive_integer("prompts", prompts, 2)
    depth, m = finite_number("depth", depth, 0.0, open_low=True), positive_integer("vocabulary", vocabulary, 2)
    require(decoder in DECODERS, "decoder", f"be one of {', '.join(DECODERS)}", decoder)
    require(estimator in ESTIMATORS, "estimator", f"be one of {', '.join(ESTIMATORS)}", estimator)
    wave = None if mode is None else positive_integer("mode", mode)
    memory, d = finite_number("memory", memory, 0.0, open_low=True), positive_integer("d", d, 2)
    count = None if layers is None else positive_integer("layers", layers)
    random_key("key", key)
    adjoint = estimator == "adjoint"
    look: Any
    if isinstance(model, CausalDecoder):
        model.mask.check(n)
        look = CircleInfluence(m, decoder, wave, adjoint)
    else:
        look = SphereInfluence(wave or 1, d, adjoint)
        check_sphere_model(model, np.asarray(_starts(look, key, 0, 1, n)[0]))
    sums = _summed(model, look, n, depth, key, prompts, count, memory / _bytes(model, n, d), progress)
    return _dataset(model, n, depth, sums, count)


def _summed(
    model: Any, look: Any, n: int, depth: float, key: Array, prompts: int, layers: int | None, room: float, show: Any
) -> ControlledSums:
    """Sums over all prompts, ``room`` of them at a time."""
    sums, beta = ControlledSums(look.known(model), n - 1), model.beta if isinstance(model, CausalDecoder) else 0.0
    steps = None
    if isinstance(look, SphereInfluence) and layers is None:
        # once, so that the steps of a prompt do not depend on its batch
        steps = enough_steps(model, np.asarray(_starts(look, key, 0, TRIED, n)), depth)
    with Progress("prompts", prompts, show=show) as bar:
        for first, size in _batches(prompts, room):
            starts = _starts(look, key, first, size, n)
            counted = np.arange(first, first + size) < prompts
            ends = look.ends(model, starts, depth, layers, steps)
            sums.add(int(counted.sum()), *_moments(look, starts, ends, beta, counted))
            bar.update(sums.count)
    return sums


def _batches(prompts: int, room: float) -> Iterator[tuple[int, int]]:
    """(first prompt, how many): all alike, whole blocks or, where memory is short, parts of a block."""
    if room < BLOCK:
        size = 1 << int(math.log2(max(1.0, room)))
    else:
        blocks = -(-prompts // BLOCK)
        turns = -(-blocks // min(blocks, int(room // BLOCK)))
        size = BLOCK * -(-blocks // turns)
    return ((first, size) for first in range(0, prompts, size))


def _bytes(model: Any, n: int, d: int) -> float:
    """What one prompt takes, roughly: 12 arrays of n; without native prefix sums those of the stages of a step."""
    if not isinstance(model, CausalDecoder):
        return 8.0 * n * n * 16 * (2 + d)
    if not model.has_prefix_sums:
        return 8.0 * n * n * 32
    return 8.0 * n * (12 if native_serves(np.float64) else 32 * model.bessel.shape[0])


def _starts(look: Any, key: PRNGKeyArray, first: int, size: int, n: int) -> Array:
    """Starts of prompts ``first`` …: those of a block come from its own key."""
    drawn = _blocks(look, key, jnp.arange(-(-size // BLOCK)) + first // BLOCK, n)
    return drawn[first % BLOCK : first % BLOCK + size]


@partial(jax.jit, static_argnums=(0, 3))
def _blocks(look: Any, key: PRNGKeyArray, blocks: Array, n: int) -> Array:
    drawn = jax.vmap(lambda b: look.starts(jax.random.fold_in(key, b), BLOCK, n))(blocks)
    return drawn.reshape(-1, *drawn.shape[2:])


@partial(jax.jit, static_argnums=0)
def _moments(look: Any, starts: Array, ends: Any, beta: Any, counted: Array) -> tuple[Array, Array, Array]:
    """Sums over the prompts that count, of value and controls, of their products; the largest square of a value."""
    z = [v * counted.astype(v.dtype)[:, None] for v in look.samples(starts, ends, beta)]
    second = jnp.stack([jnp.stack([(a * b).sum(0) for b in z]) for a in z])
    return jnp.stack([v.sum(0) for v in z]), second, (z[0] ** 2).max(0)


def _dataset(model: Any, n: int, depth: float, sums: ControlledSums, layers: int | None) -> xr.Dataset:
    profile, error = sums.mean_and_error()
    position = np.arange(1, n)
    data = xr.Dataset(
        {"profile": ("position", profile), "error": ("position", error)},
        {"position": position, "relative_position": ("position", position / n)},
    )
    data["profile"].attrs = {"long_name": "retrieval profile", "symbol": "S_N"}
    data["error"].attrs = {"long_name": "standard error"}
    size, share = _nonlinearity(model, n, depth, profile), sums.largest_share
    data.attrs = {
        "model": type(model).__name__, "n": n, "depth": depth, "layers": layers or 0, "prompts": sums.count,
        "depends_linearly": size, "largest_share": share, "warning": "; ".join(_warnings(size, share, sums.count)),
    }  # fmt: skip
    if isinstance(model, CausalDecoder):
        data.attrs |= {"beta": float(model.beta), "softmax": int(model.softmax)}
    return data


def _nonlinearity(model: Any, n: int, depth: float, profile: np.ndarray) -> float:
    """e^{2x}/N, x = T sup a_n; without known rates from the profile itself, whose mean is e^x - 1 in linear theory."""
    if not isinstance(model, CausalDecoder):
        return float((1 + profile.mean()) ** 2 / n)
    bessel = np.asarray(model.bessel, float)
    x = depth * float((np.arange(len(bessel)) ** 2 * bessel).max())
    x = x / (float(model.beta) * bessel[0]) if model.softmax else x
    return math.exp(min(2 * x, 700.0)) / n


def _warnings(size: float, share: float, prompts: int) -> Iterator[str]:
    if size > LINEAR:
        yield f"e^(2x)/N = {size:.2g}: linear theory is meaningful below {LINEAR:g}"
    if share > HEAVY + LUCK / prompts:
        yield (
            f"heavy tails: one prompt has {share:.0%} of the sum of squares at some position, and errors may be too "
            f"small; more prompts or a smaller depth"
        )
    if prompts < FEW:
        yield f"{prompts} prompts: errors are {student(prompts):.2g} times the sample's, by Student's law"
