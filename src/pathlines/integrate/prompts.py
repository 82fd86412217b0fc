"""Prompts through a causal decoder: angles at the end, and the exact derivative of the last in every start.

Native for ALiBi masks, all cores; any other model whose state is one angle per token goes the portable way, with the
same steps. The derivative is that of the steps taken (discrete adjoint), so that Σ_i J_i = 1 to rounding for models
that rotate with their tokens.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.attention.masks import AlibiMask
from pathlines.foundation.errors import finite_array, finite_number, positive_integer
from pathlines.foundation.module import exactly
from pathlines.foundation.precision import require_float64
from pathlines.foundation.programs import make_room_for_programs
from pathlines.integrate.methods import METHODS, RungeKutta
from pathlines.kernels.causal import positional_norms
from pathlines.kernels.native import native_decoder, native_serves
from pathlines.model.base import Model
from pathlines.model.causal.decoder import CausalDecoder

EULER = (np.zeros((1, 1)), np.ones(1))
STEP = 0.3
"""Step times the largest slope of the field: Runge-Kutta of order four is stable, and errs by 1e-5 of a profile."""


def fastest_rate(model: CausalDecoder) -> float:
    """The largest slope of the field: βe^β, that of w' at zero, or 1 + β for softmax."""
    beta = float(model.beta)
    return 1 + beta if model.softmax else beta * math.exp(beta)


def decoded(
    model: Model,
    starts: Any,
    depth: float,
    *,
    layers: int | None = None,
    steps: int | None = None,
    adjoint: bool = True,
) -> tuple[Float[np.ndarray, "r n"], Float[np.ndarray, "r n"] | None]:
    """(θ(depth), J) of each row of angles θ(0): J_i = ∂θ_N(depth)/∂θ_i(0), ``None`` without ``adjoint``.

    ``layers`` L are residual layers of step depth/L; else ``steps`` of Runge-Kutta of order four, as many as keep
    the error of a profile near 1e-5 by default. O(NK) per stage and prompt for ALiBi masks, else O(N²).
    """
    require_float64("Prompts through a decoder need")
    angles = finite_array("starts", starts, ("r", "n")).astype(float)
    depth = finite_number("depth", depth, 0.0)
    rate = fastest_rate(model) if isinstance(model, CausalDecoder) else 1.0
    by_default = max(1, math.ceil(depth * max(1.0, rate) / STEP))
    count = positive_integer("layers", layers) if layers is not None else positive_integer("steps", steps or by_default)
    classical = METHODS["rk4"]
    assert isinstance(classical, RungeKutta)
    tableau = EULER if layers is not None else (np.asarray(classical.a), np.asarray(classical.b))
    if exactly(model, CausalDecoder) and model.has_prefix_sums and native_serves(np.float64):
        return _native(model, angles, depth / count, count, tableau, adjoint)
    make_room_for_programs()
    ends, gradients = _portable(tableau[0].tobytes(), tableau[1].tobytes(), adjoint)(
        model, jnp.asarray(angles), jnp.asarray(depth / count), count
    )
    return np.asarray(ends), np.asarray(gradients) if adjoint else None


def _native(
    model: CausalDecoder, angles: np.ndarray, step: float, count: int, tableau: tuple[Any, ...], adjoint: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    assert isinstance(model.mask, AlibiMask)
    n, slope = angles.shape[1], float(model.mask.slope)
    norms = np.asarray(positional_norms(n, slope), float)
    inverse = np.divide(1.0, norms, out=np.zeros(n), where=norms > 0)
    return native_decoder(
        angles,
        np.asarray(model.bessel),
        inverse,
        tableau,
        softmax=model.softmax,
        adjoint=adjoint,
        beta=float(model.beta),
        decay=math.exp(-slope / n),
        step=step,
        steps=count,
    )


@lru_cache
def _portable(a: bytes, b: bytes, adjoint: bool) -> Any:
    """The same steps in JAX; memory of the derivative is one state per step (stages are computed again)."""
    weights = np.frombuffer(b)
    matrix = np.frombuffer(a).reshape(len(weights), len(weights))

    def end(model: Model, start: Float[Array, " n"], step: Array, count: int) -> Float[Array, " n"]:
        @jax.checkpoint
        def one(x: Array, _: None) -> tuple[Array, None]:
            slopes: list[Array] = []
            for row in matrix:
                y = x + step * sum((c * k for c, k in zip(row, slopes, strict=False) if c), start=jnp.zeros_like(x))
                slopes.append(model.drift(y, jnp.zeros(())))
            return x + step * sum(c * k for c, k in zip(weights, slopes, strict=True)), None

        return jax.lax.scan(one, start, None, length=count)[0]

    def both(model: Model, start: Array, step: Array, count: int) -> tuple[Array, Array]:
        last = lambda x: (lambda y: (y[-1], y))(end(model, x, step, count))  # noqa: E731
        gradient, at = jax.grad(last, has_aux=True)(start)
        return at, gradient

    def run(model: Model, starts: Array, step: Array, count: int) -> tuple[Array, Array]:
        if adjoint:
            return jax.vmap(lambda s: both(model, s, step, count))(starts)
        return jax.vmap(lambda s: end(model, s, step, count))(starts), jnp.zeros(())

    return eqx.filter_jit(run)
