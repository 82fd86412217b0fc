"""The softmax drift in every array library: x ↦ P_x( Σ_j a_ij V x_j ), a_ij ∝ e^{β<Q x_i, K x_j>}.

Peers are written as their users write them, without gratuitous copies: this is what our times are compared with.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from typing import Any

import jax
import jax.numpy as jnp
import msgspec
import numpy as np

from pathlines.attention import SoftmaxAttention
from pathlines.kernels.native import fused_attend
from pathlines.kernels.portable import portable_attend
from pathlines.model import SelfAttention
from pathlines.weights import FixedWeights

Field = Callable[[Any], Any]
RELATIVE = {"float32": 1e-5, "float64": 1e-10}
"""Relative error that a model is allowed when it chooses how to sum."""


class Tokens(msgspec.Struct, frozen=True):
    """Tokens on the sphere, (n, d) or (runs, n, d), with (Q, K, V) that are general unless they are None."""

    x: np.ndarray
    beta: float
    heads: tuple[np.ndarray, np.ndarray, np.ndarray] | None

    def projections(self, x: Any, array: Callable[[np.ndarray], Any]) -> tuple[Any, Any, Any]:
        """(β x Q^T, x K^T, x V^T) in the library whose arrays ``array`` makes."""
        if self.heads is None:
            return self.beta * x, x, x
        query, key, value = (array(m.T) for m in self.heads)
        return x @ (self.beta * query), x @ key, x @ value

    @property
    def pairs(self) -> float:
        """Bytes of all attention weights."""
        return float(np.prod(self.x.shape[:-1]) * self.x.shape[-2] * self.x.itemsize)


def uniform_tokens(n: int, d: int, dtype: str, *, general: bool = True, beta: float = 4.0) -> Tokens:
    """Uniform tokens; general heads are near the identity, so that scores have the size of β."""
    rng = np.random.default_rng([n, d])
    x = rng.standard_normal((n, d))
    x = (x / np.linalg.norm(x, axis=-1, keepdims=True)).astype(dtype)
    heads = tuple((np.eye(d) + 0.3 * rng.standard_normal((d, d)) / np.sqrt(d)).astype(dtype) for _ in range(3))
    return Tokens(x, beta, heads if general else None)


def tangent(x: Any, out: Any) -> Any:
    """P_x A = A - <x, A> x, in any array library."""
    return out - (x * out).sum(-1)[..., None] * x


def unit(x: Any) -> Any:
    """x/|x| in any array library."""
    return x / ((x * x).sum(-1) ** 0.5)[..., None]


def numpy_field(p: Tokens) -> Field:
    """One matrix of weights, exponentiated in place."""

    def field(x: np.ndarray) -> np.ndarray:
        q, k, v = p.projections(x, np.ascontiguousarray)
        weights = q @ k.swapaxes(-1, -2)
        weights -= weights.max(-1, keepdims=True)
        np.exp(weights, out=weights)
        return tangent(x, (weights @ v) / weights.sum(-1)[..., None])

    return field


def torch_field(p: Tokens, fused: bool) -> Field:
    """``softmax`` of a matrix (``bmm`` in batches), or ``scaled_dot_product_attention``."""
    import torch

    def eager(q: Any, k: Any, v: Any) -> Any:
        return torch.softmax(q @ k.transpose(-1, -2), -1) @ v

    def sdpa(q: Any, k: Any, v: Any) -> Any:
        query, key, value = (a.reshape(-1, 1, *a.shape[-2:]) for a in (q, k, v))
        return torch.nn.functional.scaled_dot_product_attention(query, key, value, scale=1.0).reshape(q.shape)

    attend = sdpa if fused else eager
    return lambda x: tangent(x, attend(*p.projections(x, torch.from_numpy)))


def keops_field(p: Tokens) -> Field:
    """A symbolic matrix, reduced by a kernel that KeOps compiles."""
    with redirect_stdout(StringIO()):
        import pykeops
        from pykeops.numpy import LazyTensor

    pykeops.set_verbose(False)

    def field(x: np.ndarray) -> np.ndarray:
        q, k, v = (np.ascontiguousarray(a) for a in p.projections(x, np.ascontiguousarray))
        i, j, values = LazyTensor(q[:, None, :]), LazyTensor(k[None, :, :]), LazyTensor(v[None, :, :])
        return tangent(x, (i | j).sumsoftmaxweight(values, axis=1))

    return field


def jax_field(p: Tokens, way: str) -> Field:
    """Ours: ``native``, ``portable``, or ``automatic``, which is what a model does when nobody asks."""
    if way == "automatic":
        weights = None if p.heads is None else FixedWeights(p.heads[2], p.heads[0], p.heads[1])
        (n, d), dtype = p.x.shape[-2:], p.x.dtype.name
        model, _ = SelfAttention(p.beta, weights=weights).with_fast_sums(n, d, dtype, RELATIVE[dtype])
        return lambda x: model.drift(x, jnp.zeros((), x.dtype)).astype(x.dtype)
    attend: Any = {"native": fused_attend, "portable": portable_attend, "plain": _plain}[way]

    def field(x: jax.Array) -> jax.Array:
        masses = jnp.full(x.shape[0], 1 / x.shape[0], x.dtype)
        return tangent(x, attend(SoftmaxAttention(), *p.projections(x, jnp.asarray), masses)[0])

    return field


def _plain(
    attention: SoftmaxAttention, q: jax.Array, k: jax.Array, v: jax.Array, masses: jax.Array
) -> tuple[jax.Array, None]:
    """Attention as anyone would write it in JAX: the field of peers that integrate JAX functions."""
    return jax.nn.softmax(q @ k.T, axis=-1) @ v, None


def dense_rows(p: Tokens, rows: np.ndarray) -> np.ndarray:
    """The drift of some rows by a direct sum in float64: the reference."""
    x = p.x.astype(np.float64)
    wide = Tokens(x, p.beta, None if p.heads is None else tuple(m.astype(float) for m in p.heads))  # type: ignore
    q, k, v = wide.projections(x, np.ascontiguousarray)
    scores = q[rows] @ k.T
    weights = np.exp(scores - scores.max(1, keepdims=True))
    return tangent(x[rows], weights @ v / weights.sum(1)[:, None])
