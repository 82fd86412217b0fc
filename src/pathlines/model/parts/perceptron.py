"""The perceptron block added to attention."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from pathlines.foundation.errors import ArgumentError, UnknownNameError
from pathlines.foundation.module import Module
from pathlines.foundation.traceable import traceable_array

ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "relu": jax.nn.relu,
    "gelu": lambda x: jax.nn.gelu(x, approximate=False),
    "silu": jax.nn.silu,
    "tanh": jnp.tanh,
    "erf": jax.lax.erf,
    "linear": lambda x: x,
    "quick_gelu": lambda x: x * jax.nn.sigmoid(1.702 * x),
    "relu2": lambda x: jax.nn.relu(x) ** 2,
}


class Perceptron(Module):
    """x ↦ W σ(B x + b).

    Args:
        outer: W, (d, m). The larger, the more the perceptron does against attention.
        inner: B, (m, d): the directions in which the m neurons look.
        bias: b, (m,); zero by default.
        activation: σ: "relu" (the default), "gelu", "silu", "tanh", "erf" or "linear".
    """

    outer: Float[Array, "d m"]
    inner: Float[Array, "m d"]
    bias: Float[Array, " m"]
    activation: str = eqx.field(static=True)

    def __init__(self, outer: Any, inner: Any, bias: Any = None, activation: str = "relu") -> None:
        outer, inner = traceable_array("outer", outer, ("d", "m")), traceable_array("inner", inner, ("m", "d"))
        if outer.shape != inner.shape[::-1]:
            raise ArgumentError(f"Argument `inner` must have shape {outer.shape[::-1]}, but has shape {inner.shape}.")
        if activation not in ACTIVATIONS:
            raise UnknownNameError(f"There is no activation `{activation}`; there are {', '.join(ACTIVATIONS)}.")
        self.outer, self.inner = jnp.asarray(outer), jnp.asarray(inner)
        self.bias = jnp.zeros(len(inner)) if bias is None else jnp.asarray(traceable_array("bias", bias, (len(inner),)))
        self.activation = activation

    def __call__(self, x: Float[Array, "n d"]) -> Float[Array, "n d"]:
        """Apply to each row."""
        return ACTIVATIONS[self.activation](x @ self.inner.T + self.bias[None]) @ self.outer.T
