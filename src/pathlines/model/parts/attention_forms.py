"""The forms of self-attention: tokens, their span, angles on the circle, pair deficits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jax.numpy as jnp
import numpy as np

from pathlines.attention import UnnormalisedAttention
from pathlines.foundation.module import exactly, overridden
from pathlines.kernels.choice import Sums, least_partition, own_share, spectral_obstacle
from pathlines.model.base import Model
from pathlines.model.clustering.carried import CarriedSinkhorn, carries
from pathlines.model.clustering.gram import GramAttention
from pathlines.model.metastability.circle import CircleAttention
from pathlines.model.parts.offer import Form, Offer, Posed, Wanted
from pathlines.model.self_attention import SelfAttention
from pathlines.weights import IdentityWeights

CIRCLE_TOKENS = 128
"""A drift by Fourier modes costs as much as one of so many tokens."""


def attention_forms(model: SelfAttention, wanted: Wanted) -> Iterator[Offer]:
    """All four; the cheapest is the span for d > n, and Fourier modes on the circle for many tokens."""
    n, d = wanted.shape
    yield span_offer(model, model, SelfAttention, wanted)
    circle = _circle_obstacle(model, wanted)
    yield Offer("circle-fourier", CIRCLE_TOKENS * n * d, lambda: _circle(model, wanted), circle)
    reason = "asked for" if wanted.asked else f"n = {n}, d = {d}: coordinates are the cheapest exact form"
    pose = lambda: _carried(Posed(model, wanted.tokens, Form("tokens", 0.0, reason)), wanted)  # noqa: E731
    yield Offer("tokens", n * n * d, pose)
    obstacle = model.plain_obstacle()
    for name in wanted.coordinates:
        obstacle = f"`{name}` needs token coordinates"
    yield Offer("gram-deficit", n**3, lambda: _gram(model, wanted), obstacle, unasked=False)


def span_offer(model: Model, inner: SelfAttention, kind: type, wanted: Wanted) -> Offer:
    """Coordinates in the span of d > n tokens, for a model of that kind whose attention is ``inner``."""
    n, d = wanted.shape
    reason = f"d = {d} > n = {n} and only rotations matter: the {n}-dimensional span is exact"
    return Offer(
        "span", n**3, lambda: _carried(_span(model, wanted, reason), wanted), _rotates(model, inner, kind, wanted)
    )


def _rotates(model: Model, inner: SelfAttention, kind: type, wanted: Wanted) -> str | None:
    """Why rotations matter, or the span is no smaller than the space."""
    if not exactly(inner.weights, IdentityWeights) or inner.perceptron is not None:
        return "it needs Q = K = I and a scalar V (anything else singles out directions of R^d)"
    for part, own in ((inner, SelfAttention), (model, kind)):
        if changed := overridden(part, own):
            return f"{type(part).__name__} has its own `{changed[0]}`"
    n, d = wanted.shape
    if d <= n:
        return f"it needs d > n, but d = {d}, n = {n}"
    return next((f"`{name}` looks at ambient coordinates" for name in wanted.ambient if name != "tokens"), None)


def _span(model: Model, wanted: Wanted, reason: str) -> Posed:
    basis, factor = np.linalg.qr(np.asarray(wanted.tokens).T)
    rows = jnp.asarray(factor.T, wanted.tokens.dtype)
    return Posed(model, rows, Form("span", 0.0, reason), lambda x: x @ jnp.asarray(basis.T, x.dtype))


def _carried(posed: Posed, wanted: Wanted) -> Posed:
    """With the potentials of Sinkhorn attention in the state, where that pays."""
    steps = 0 if wanted.asked else carries(posed.model, posed.tokens)
    if not steps:
        return posed
    reason = f"{posed.form.reason}; potentials, {steps} steps from zero, start from those of the step before"
    return Posed(CarriedSinkhorn(posed.model), posed.tokens, Form(posed.form.name, 0.0, reason), posed.lift)


def _circle_obstacle(model: SelfAttention, wanted: Wanted) -> str | None:
    n, d = wanted.shape
    if d != 2:
        return f"it needs d = 2, but d = {d}"
    obstacle = model.plain_obstacle()
    if obstacle is not None:
        return obstacle
    beta = float(model.beta)
    if beta <= 0:
        return "it needs β > 0"
    if model.multiplicities is None:
        return None
    least = least_partition(own_share(np.asarray(model.multiplicities)), beta)
    return spectral_obstacle(Sums(model.attention, n, d, beta, jnp.dtype(wanted.tokens.dtype).name, partition=least))


def _circle(model: SelfAttention, wanted: Wanted) -> Posed:
    circle = CircleAttention(float(model.beta), model.multiplicities, *_kernel(model))
    reason = f"d = 2 and n = {wanted.shape[0]}: {circle.modes} Fourier modes instead of n² pairs"
    return Posed(circle, wanted.tokens, Form("circle-fourier", 0.0, reason))


def _gram(model: SelfAttention, wanted: Wanted) -> Posed:
    gram = GramAttention(model.beta, model.multiplicities, *_kernel(model))
    return Posed(gram, wanted.tokens, Form("gram-deficit", 0.0, "asked for"))


def _kernel(model: SelfAttention) -> tuple[bool, Any]:
    kind = model.attention
    return (True, kind.shift) if isinstance(kind, UnnormalisedAttention) else (False, 0.0)
