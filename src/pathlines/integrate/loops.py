"""Loops with derivatives in both directions and few states kept: what reverse mode needs is computed again."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from equinox.internal import unvmap_any

Body = Callable[[Any, Any], tuple[Any, Any]]


def bounded_while(unfinished: Callable[[Any], Any], step: Callable[[Any], Any], carry: Any, most: int) -> Any:
    """``jax.lax.while_loop`` for at most ``most`` steps M, as two nested loops of √M each.

    A while-loop has no reverse mode. This one keeps 2√M carries (900 for M = 200,000) and computes each step twice
    more. Steps beyond the end are skipped, under ``vmap`` once every lane is done.
    """
    size = max(1, math.ceil(math.sqrt(most)))

    def repeated(inner: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def one(c: Any, _: None) -> tuple[Any, None]:
            going = unfinished(c)
            chosen = lambda c: jax.tree.map(lambda a, b: jnp.where(going, a, b), inner(c), c)  # noqa: E731
            return jax.lax.cond(unvmap_any(going), chosen, lambda c: c, c), None

        saved = jax.checkpoint(one, prevent_cse=False)
        return lambda c: jax.lax.scan(saved, c, None, length=size)[0]

    return repeated(repeated(step))(carry)


def frugal_scan(body: Body, carry: Any, rows: Any, length: int) -> tuple[Any, Any]:
    """``jax.lax.scan`` whose reverse mode keeps about 2√N of N carries, and computes each step twice more."""
    size = _chunk(length)
    whole = length - length % size
    saved = jax.checkpoint(body, prevent_cse=False)
    chunk = jax.checkpoint(lambda c, rows: jax.lax.scan(saved, c, rows, length=size), prevent_cse=False)
    parts = jax.tree.map(lambda x: x[:whole].reshape(whole // size, size, *x.shape[1:]), rows)
    carry, out = jax.lax.scan(chunk, carry, parts, length=whole // size)
    out = jax.tree.map(lambda x: x.reshape(whole, *x.shape[2:]), out)
    if whole < length:
        rest = jax.tree.map(lambda x: x[whole:], rows)
        carry, last = jax.lax.scan(saved, carry, rest, length=length - whole)
        out = jax.tree.map(lambda a, b: jnp.concatenate([a, b]), out, last)
    return carry, out


def frugal_repeat(one: Callable[[Any], Any], carry: Any, times: int) -> Any:
    """``one`` applied ``times`` times, as ``frugal_scan``."""
    return frugal_scan(lambda c, _: (one(c), None), carry, None, times)[0]


def _chunk(length: int) -> int:
    """About √N; a divisor of N if there is one, so that the body is compiled once."""
    root = max(1, math.isqrt(length))
    near = [k for k in range(root // 2 + 1, 2 * root + 1) if length % k == 0]
    return min(near, key=lambda k: abs(k - root), default=root)
