"""The idea of an attention kind."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from pathlines.attention.masks import PrefixMask
from pathlines.foundation.errors import finite_number
from pathlines.foundation.module import Module
from pathlines.foundation.papers import Paper
from pathlines.foundation.registry import Registry

Attended = tuple[Float[Array, "n d"], Float[Array, " n"]]
Lifted = tuple[Float[Array, "n q"], Float[Array, "m q"], Float[Array, "m d"]]
Sums = Callable[[Float[Array, "n p"], Float[Array, "m p"], Float[Array, "m d"], Float[Array, " m"]], Attended]
"""(queries, keys, values, masses) → (Σ_j m_j e^{s_ij} v_j / Z_i, ln Z_i), Z_i = Σ_j m_j e^{s_ij}, by the kernels."""


SHORTCUTS = {"normalise": ("core", "direct", "fused", "conservative"), "lift": ("direct", "fused", "conservative")}
"""What is true of a kind because of the methods that define it."""


def check_parameter(name: str, value: Any) -> None:
    """A parameter of a kind is a finite number; of one that a program is traced with nothing is known yet."""
    if not isinstance(value, jax.core.Tracer):
        finite_number(name, value)


def beside_scores(masses: Float[Array, "*rows n"], scores: Float[Array, "*heads r n"]) -> Float[Array, "*ones n"]:
    """Masses m_j, or m_ij of each row, with as many axes as the scores have."""
    return jnp.expand_dims(masses, tuple(range(scores.ndim - masses.ndim)))


class Attention(Module):
    """From scores s_ij and token masses m_j (summing to one) to weights a_ij, so that token i hears Σ_j a_ij v_j.

    A kind is the normalisation alone; scores, masks and summation live elsewhere, so a new one is a class with
    ``normalise``, registered. The rest is for kinds that have more to say: ``lift`` where scores are not <q_i, k_j>
    (the ``core`` kind then weighs the lifted vectors), ``direct`` where there is a cheaper sum than that over pairs,
    ``fused`` where the native kernel serves, ``caution`` where a start may cost more than one expects.

    ``normalised`` kinds have rows that sum to one, over a prefix too; ``conservative`` ones climb the energy E_β when
    V = Q^T K is symmetric; ``unmaskable`` says why there is no masked form. ``label``, ``formula``, ``sees`` and
    ``papers`` describe the kind to people.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """A kind derived from another, with weights or scores of its own, loses the shortcuts it does not define."""
        super().__init_subclass__(**options)
        own = vars(cls)
        lost = {name for method, names in SHORTCUTS.items() if method in own for name in names if name not in own}
        for name in lost:
            setattr(cls, name, vars(Attention)[name])

    normalised: ClassVar[bool] = False
    conservative: ClassVar[bool] = False
    unmaskable: ClassVar[str] = ""
    label: ClassVar[str] = ""
    formula: ClassVar[str] = ""
    sees: ClassVar[str] = ""
    papers: ClassVar[tuple[Paper, ...]] = ()

    @abstractmethod
    def normalise(
        self, scores: Float[Array, "*heads r n"], masses: Float[Array, "*rows n"]
    ) -> tuple[Float[Array, "*heads r n"], Float[Array, "*heads r"]]:
        """Return (a, log_scale), a_ij = m_j exp(s_ij - log_scale_i) for the exponential kinds.

        Under a mask masses are those of each row, m_ij, zero where nothing is seen; a row may be all zero, and a = 0.

        ``log_scale`` is what the energy identities weigh |dx_i/dt|² with: log of the partition function for softmax,
        a constant for unnormalised attention, zero for kinds that are not exponential.
        """

    @property
    def fused(self) -> tuple[bool, Array | float] | None:
        """(normalised?, shift) when weights are m_j e^{s_ij - c_i} with c_i = ln Σ m_j e^{s_ij}, or c_i = shift."""
        return None

    @property
    def core(self) -> Attention:
        """The kind that weighs the lifted vectors."""
        return self

    @property
    def head_axes(self) -> Attention | None:
        """Axes of the heads in the kind's own arrays, for ``jax.vmap``; none where all heads share them."""
        return None

    def lift(
        self,
        queries: Float[Array, "n p"],
        keys: Float[Array, "m p"],
        values: Float[Array, "m d"],
        masses: Float[Array, " m"],
        beta: Float[Array, ""] | float,
        sums: Sums,
    ) -> Lifted:
        """(queries, keys, values) whose inner products are the scores, β times those of the kind."""
        return beta * queries, keys, values

    def caution(self, paired: Callable[[], tuple[np.ndarray, ...]]) -> str:
        """What a user should know before a run from tokens with these (β queries, keys, masses); mostly nothing."""
        return ""

    def legible(self, paired: Callable[[], tuple[Array, Array]]) -> Array | None:
        """Whether weights of these (β queries, keys) are more than rounding of their scores; ``None``: always."""
        return None

    def direct(
        self,
        queries: Float[Array, "n p"],
        keys: Float[Array, "m p"],
        values: Float[Array, "m d"],
        masses: Float[Array, " m"],
        mask: PrefixMask | None,
    ) -> Attended | None:
        """(A, log_scale) without a sum over pairs, for kinds that have one; over q_ij m_j for a mask in order."""
        return None


ATTENTIONS: Registry[type[Attention]] = Registry("attention kind", "pathlines.attention")
