"""Masked attention: a token sees its own position and those before it."""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from pathlines.attention import Attention
from pathlines.foundation.errors import ArgumentError, FormError, finite_array, require
from pathlines.foundation.module import Module
from pathlines.foundation.traceable import is_traced

PREFIXES = ("sum", "mean")


class Mask(Module):
    """Token i sees the tokens j with s_j ≤ s_i, positions s_1 ≤ … ≤ s_n; itself included.

    How Smooth Is Attention?, arXiv:2312.14820; A Unified Perspective on the Dynamics of Deep Transformers,
    arXiv:2501.18322: a measure on positions × tokens whose first marginal never changes. ``positions=True`` is s_i = i;
    tokens that share a position are the atoms of one conditional law. Normalised kinds divide by the sum over the
    prefix; for the others ``prefix`` "sum" keeps the masses 1/n of the whole context, "mean" divides by the mass of the
    prefix (1/i).
    """

    last: Int[Array, " n"] | None
    causal: bool = eqx.field(static=True)
    prefix: str = eqx.field(static=True)
    given: int | None = eqx.field(static=True)

    def __init__(self, attention: Attention, positions: Any = False, prefix: str = "sum") -> None:
        require(prefix in PREFIXES, "prefix", f"be one of {', '.join(PREFIXES)}", prefix)
        self.prefix, self.last, self.given = prefix, None, None
        self.causal = bool(positions) if isinstance(positions, (bool, np.bool_)) else True
        if self.causal and attention.unmaskable:
            raise FormError(f"There is no masked {type(attention).__name__}: {attention.unmaskable}.")
        if isinstance(positions, (bool, np.bool_)):
            return
        places = finite_array("causal", positions, ("n",)).astype(float)
        if np.any(np.diff(places) < 0):
            raise ArgumentError("Argument `causal` must hold positions that do not decrease; sort the tokens by them.")
        self.given = len(places)
        if np.any(np.diff(places) == 0):
            self.last = jnp.asarray(np.searchsorted(places, places, side="right") - 1)

    def check(self, n: int, multiplicities: Any) -> None:
        """One position a token, and something to see for everyone."""
        if self.given not in (None, n):
            raise ArgumentError(f"Argument `causal` must have one position a token ({n}), not {self.given}.")
        if not self.causal or multiplicities is None or is_traced(multiplicities):
            return
        seen = np.cumsum(np.asarray(multiplicities))[... if self.last is None else np.asarray(self.last)]
        empty = np.flatnonzero(seen <= 0)
        if len(empty):
            raise ArgumentError(
                f"The mask leaves row {empty[0]} empty: every token up to it has multiplicity 0; give one of them mass."
            )

    def scaled(
        self, attention: Attention, out: Float[Array, "*heads r d"], masses: Float[Array, " n"]
    ) -> Float[Array, "*heads r d"]:
        """Sums over a prefix as ``prefix`` has them; normalised kinds are averages already."""
        if not self.causal or self.prefix == "sum" or attention.normalised:
            return out
        seen = jnp.cumsum(masses)
        return out / (seen if self.last is None else seen[self.last])[:, None]
