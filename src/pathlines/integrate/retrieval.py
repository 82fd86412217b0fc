"""retrieval: what the last token of a prompt remembers of every earlier one, estimated with little noise.

For independent uniform starts and n ≠ 0 (Kinetic theory for Transformers and the lost-in-the-middle phenomenon,
arXiv:2605.09213, for the model; the identity is derived, by parts in θ_i(0))

    E cos n(θ_N(t) - θ_i(0)) = E[ J_i cos n(θ_N(t) - θ_i(0)) ],    J_i = ∂θ_N(t)/∂θ_i(0),

and J_i = O(1/N): the right side has N² times less variance than the left. The profile is

    S_N(i) = E[ N J_i W(θ_N(t) - θ_i(0)) ],   W(D) = Σ_{n≥1} w_n cos nD,

with w_n = e^{-π²n²/(2M²)} for the soft decoder over M codewords, sin(πn/M)/(πn) for the hard one. Its control variate
is the first order in depth, c_i = -N T p_Ni w''(D⁰_i) W(D⁰_i), whose mean N T p_Ni Σ w_n n² I_n(β) is known.
"""

from __future__ import annotations

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr
from jaxtyping import Array, Float, PRNGKeyArray

from pathlines.foundation.errors import finite_number, of_kind, positive_integer, require
from pathlines.foundation.keys import random_key
from pathlines.foundation.progress import Progress
from pathlines.integrate.prompts import decoded
from pathlines.model.causal.decoder import CausalDecoder

BLOCK = 64
"""Prompts that share a key: which prompts there are depends neither on the memory nor on the processors."""
ARRAYS = 12
"""Numbers at a time for each token of each prompt."""
DECODERS = ("soft", "hard")
ESTIMATORS = ("adjoint", "naive")
LINEAR = 0.05
"""Largest e^{2x}/N at which linear theory is within 5 %."""


def decoder_kernel(distance: Float[Array, "*s"], vocabulary: int, decoder: str = "soft") -> Float[Array, "*s"]:
    """W(D) in closed form: ½(M√(2/π) Σ_k e^{-M²(D-2πk)²/(2π²)} - 1), or ½(1{|D| ≤ π/M} - 1/M)."""
    near, m = jnp.abs(jnp.remainder(distance + jnp.pi, 2 * jnp.pi) - jnp.pi), vocabulary
    if decoder == "hard":
        return 0.5 * ((near <= jnp.pi / m) - 1 / m)
    # other copies of the peak are below e^{-2M²}, 1e-21 for M ≥ 5
    copies = (0, 1) if m >= 5 else (-1, 0, 1, 2)
    peaks = jnp.sum(jnp.stack([jnp.exp(-((m * (near / jnp.pi - 2 * k)) ** 2) / 2) for k in copies]), axis=0)
    return 0.5 * (m * math.sqrt(2 / math.pi) * peaks - 1)


def retrieval(
    model: CausalDecoder,
    n: int,
    depth: float,
    *,
    key: PRNGKeyArray,
    prompts: int = 2000,
    vocabulary: int = 8,
    decoder: str = "soft",
    mode: int | None = None,
    layers: int | None = None,
    estimator: str = "adjoint",
    memory: float = 2e8,
    progress: bool | None = None,
) -> xr.Dataset:
    """S_N(i) for every source position i < N: variables ``profile`` and its standard ``error``, dim ``position``.

    ``model`` is a causal decoder with any mask; ``prompts`` independent uniform prompts have N = ``n`` tokens; T =
    ``depth`` is a time or, with ``layers``, that many residual layers of step T/L. ``vocabulary`` M and ``decoder``
    choose W; ``mode`` n takes W = cos nD instead. ``estimator="naive"`` is N E W(θ_N - θ_i) by plain Monte Carlo, for
    comparison only. Prompts come in blocks of 64 with keys of their own: the same key means the same prompts whatever
    ``memory`` (bytes) allows. The attribute ``depends_linearly`` is e^{2x}/N: beyond 0.05 linear theory is off by more
    than 5 %, and ``warning`` says so. O(prompts · N K) per step.
    """
    of_kind("model", model, CausalDecoder, "a CausalDecoder")
    n, prompts = positive_integer("n", n, 2), positive_integer("prompts", prompts, 2)
    depth, m = finite_number("depth", depth, 0.0, open_low=True), positive_integer("vocabulary", vocabulary, 2)
    require(decoder in DECODERS, "decoder", f"be one of {', '.join(DECODERS)}", decoder)
    require(estimator in ESTIMATORS, "estimator", f"be one of {', '.join(ESTIMATORS)}", estimator)
    wave = None if mode is None else positive_integer("mode", mode)
    random_key("key", key)
    model.mask.check(n)
    row = model.mask.last_row(n)[:-1]
    sums, look = _Sums(n - 1), _Look(m, decoder, wave, estimator == "adjoint")
    known = n * depth * np.asarray(row) * _mean_of_control(model, look)
    blocks = -(-prompts // BLOCK)
    together = min(blocks, max(1, int(memory / (n * BLOCK * 8 * ARRAYS))))
    with Progress("prompts", prompts, show=progress) as bar:
        for first in range(0, blocks, together):
            starts = _starts(key, jnp.arange(first, first + together), n)
            ends, gradients = decoded(
                model, starts.reshape(-1, n), depth, layers=layers, adjoint=estimator == "adjoint"
            )
            counted = np.arange(first * BLOCK, (first + together) * BLOCK) < prompts
            back = ends if gradients is None else gradients
            sums.add(counted, *_moments(look, starts, ends, back, row, model.beta, depth, counted))
            bar.update(min(prompts, (first + together) * BLOCK))
    profile, error = sums.controlled(known) if estimator == "adjoint" else sums.plain()
    return _dataset(model, n, depth, profile, error, layers, prompts)


class _Look(NamedTuple):
    """What is looked at: a decoder over M codewords, or one mode; with the adjoint or without."""

    vocabulary: int
    decoder: str
    mode: int | None
    adjoint: bool

    def kernel(self, x: Array) -> Array:
        """W(x)."""
        return decoder_kernel(x, self.vocabulary, self.decoder) if self.mode is None else jnp.cos(self.mode * x)


@partial(jax.jit, static_argnums=2)
def _starts(key: PRNGKeyArray, blocks: Array, n: int) -> Array:
    """Uniform angles, shape (blocks, BLOCK, n): each block from its own key."""
    draw = lambda b: jax.random.uniform(jax.random.fold_in(key, b), (BLOCK, n), float, 0.0, 2 * jnp.pi)  # noqa: E731
    return jax.vmap(draw)(blocks)


@partial(jax.jit, static_argnums=0)
def _moments(
    look: _Look, starts: Array, ends: Array, back: Array, row: Array, beta: Array, depth: float, counted: Array
) -> tuple[Array, Array]:
    """Sums over the prompts that count, of value and control and of their squares and product."""
    blocks, size, n = starts.shape
    start, end, gradient = (x.reshape(blocks * size, n) for x in (starts, ends, back))
    value = n * look.kernel(end[:, -1:] - start[:, :-1]) * counted[:, None]
    if not look.adjoint:
        zero = jnp.zeros(n - 1)
        return jnp.stack([value.sum(0), zero]), jnp.stack([(value**2).sum(0), zero, zero])
    value, before = value * gradient[:, :-1], start[:, -1:] - start[:, :-1]
    # w'' = (β² sin² - β cos) e^{β cos}
    second = (beta**2 * jnp.sin(before) ** 2 - beta * jnp.cos(before)) * jnp.exp(beta * jnp.cos(before))
    control = -n * depth * row * second * look.kernel(before) * counted[:, None]
    first = jnp.stack([value.sum(0), control.sum(0)])
    return first, jnp.stack([(value**2).sum(0), (control**2).sum(0), (value * control).sum(0)])


def _mean_of_control(model: CausalDecoder, look: _Look) -> float:
    """E[-w''(D)W(D)] = Σ w_n n² I_n over uniform D."""
    bessel = np.asarray(model.bessel, float)
    k = np.arange(1, len(bessel))
    if look.mode is not None:
        return float(look.mode**2 * bessel[look.mode]) if look.mode < len(bessel) else 0.0
    m = look.vocabulary
    weights = np.exp(-((np.pi * k / m) ** 2) / 2) if look.decoder == "soft" else np.sin(np.pi * k / m) / (np.pi * k)
    return float(np.sum(weights * k**2 * bessel[1:]))


class _Sums:
    """Sums over prompts, of a value and its control, position by position."""

    def __init__(self, size: int) -> None:
        self.count = 0
        self.first, self.second = np.zeros((2, size)), np.zeros((3, size))

    def add(self, counted: np.ndarray, first: Array, second: Array) -> None:
        """More prompts."""
        self.count += int(counted.sum())
        self.first += np.asarray(first)
        self.second += np.asarray(second)

    def _moments(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        mean, own = self.first / self.count
        a, b, c = self.second / self.count - np.stack([mean**2, own**2, mean * own])
        return mean, own, np.maximum(a, 0), np.maximum(b, 0), c

    def plain(self) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard error."""
        mean, _, variance, _, _ = self._moments()
        return mean, np.sqrt(variance / (self.count - 1))

    def controlled(self, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and standard error with the control's known mean, at the coefficient of least variance."""
        mean, own, variance, spread, joint = self._moments()
        slope = np.divide(joint, spread, out=np.zeros_like(joint), where=spread > 0)
        left = np.maximum(variance - slope * joint, 0)
        return mean - slope * (own - known), np.sqrt(left / max(1, self.count - 2))


def _dataset(
    model: CausalDecoder, n: int, depth: float, profile: np.ndarray, error: np.ndarray, layers: int | None, prompts: int
) -> xr.Dataset:
    position = np.arange(1, n)
    bessel = np.asarray(model.bessel, float)
    x = depth * float((np.arange(len(bessel)) ** 2 * bessel).max())
    x = x / (float(model.beta) * bessel[0]) if model.softmax else x
    size = math.exp(min(2 * x, 700.0)) / n
    data = xr.Dataset(
        {"profile": ("position", profile), "error": ("position", error)},
        {"position": position, "relative_position": ("position", position / n)},
    )
    data["profile"].attrs = {"long_name": "retrieval profile", "symbol": "S_N"}
    data["error"].attrs = {"long_name": "standard error"}
    words = f"e^(2x)/N = {size:.2g}: linear theory is meaningful below {LINEAR:g}" if size > LINEAR else ""
    data.attrs = {
        "model": type(model).__name__, "beta": float(model.beta), "softmax": int(model.softmax), "n": n, "depth": depth,
        "layers": layers or 0, "prompts": prompts, "depends_linearly": size, "warning": words,
    }  # fmt: skip
    return data
