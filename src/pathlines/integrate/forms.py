"""Equivalent forms of one problem: tokens, their span, angles on the circle, pair deficits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import msgspec
import numpy as np
from jaxtyping import Array

from pathlines.attention import UnnormalisedAttention
from pathlines.foundation.errors import ArgumentError, FormError
from pathlines.foundation.module import exactly, overridden
from pathlines.integrate.observe import Observable
from pathlines.kernels.choice import Choice, Sums, least_partition, spectral_obstacle
from pathlines.model import Model, SelfAttention
from pathlines.model.clustering.carried import CarriedSinkhorn, carries
from pathlines.model.clustering.gram import GramAttention
from pathlines.model.clustering.normalised import NormalisedAttention
from pathlines.model.metastability.circle import CircleAttention
from pathlines.model.parts.summation import lightest
from pathlines.weights import IdentityWeights

FORMS = ("auto", "tokens", "span", "gram-deficit", "circle-fourier")
CIRCLE_TOKENS = 128


class Form(msgspec.Struct, frozen=True):
    """The form in force from a time on, and why."""

    name: str
    since: float
    reason: str


class Posed(msgspec.Struct, frozen=True):
    """A problem in its form: the model and start to integrate, and the map back to ambient tokens."""

    model: Model
    tokens: Any
    form: Form
    lift: Callable[[Array], Array] | None = None


def choose_form(model: Model, tokens: Any, record: tuple[Observable, ...], form: str = "auto") -> Posed:
    """Pick the cheapest exact form; with ``form`` given, that one or an error that says why not."""
    if form not in FORMS:
        raise ArgumentError(f"Argument `form` must be one of {', '.join(FORMS)}, but is {form!r}.")
    posed = _cheapest(model, tokens, record, form)
    steps = carries(posed.model, posed.tokens) if form == "auto" else 0
    if not steps:
        return posed
    assert isinstance(posed.model, SelfAttention)
    reason = f"{posed.form.reason}; potentials, {steps} steps from zero, start from those of the step before"
    return Posed(CarriedSinkhorn(posed.model), posed.tokens, Form(posed.form.name, 0.0, reason), posed.lift)


def _cheapest(model: Model, tokens: Any, record: tuple[Observable, ...], form: str) -> Posed:
    """The form by the shape of the problem."""
    n, d = tokens.shape[-2:]
    if form in ("auto", "span"):
        obstacle = _span_obstacle(model, n, d, record)
        if obstacle is None:
            return _span(
                model, tokens, f"d = {d} > n = {n} and only rotations matter: the {n}-dimensional span is exact"
            )
        if form == "span":
            raise FormError(f"The span form is not available: {obstacle}.")
    if form in ("auto", "circle-fourier"):
        obstacle = _circle_obstacle(model, n, d, tokens.dtype)
        if obstacle is None and (form != "auto" or n >= CIRCLE_TOKENS):
            circle = _circle(model)
            reason = f"d = 2 and n = {n}: {circle.modes} Fourier modes instead of n² pairs"
            return Posed(circle, tokens, Form("circle-fourier", 0.0, reason))
        if form == "circle-fourier":
            raise FormError(f"The circle-fourier form is not available: {obstacle}.")
    if form == "gram-deficit":
        return _gram(model, tokens, record)
    reason = "asked for" if form == "tokens" else f"n = {n}, d = {d}: coordinates are the cheapest exact form"
    return Posed(model, tokens, Form("tokens", 0.0, reason))


def with_sums(posed: Posed, tolerance: float) -> tuple[Posed, Choice | None]:
    """The same problem with sums a tenth of the tolerance accurate, in the cheapest way; the form says which."""
    n, d = posed.tokens.shape[-2:]
    model, choice = posed.model.summed(n, d, posed.tokens.dtype, tolerance / 10)
    if choice is None or choice.method != "spectral":
        return posed, choice
    form = Form(posed.form.name, posed.form.since, f"{posed.form.reason}; sums: {choice.reason}")
    return Posed(model, posed.tokens, form, posed.lift), choice


def _plain(model: Model) -> str | None:
    """Why the model is not SA or USA with Q = K = V = I on the sphere."""
    if not isinstance(model, SelfAttention):
        return f"{type(model).__name__} is not plain self-attention"
    if changed := overridden(model, SelfAttention):
        return f"{type(model).__name__} has its own `{changed[0]}`"
    if model.identity != "identity" or float(model.weights.value_sign) != 1:
        return "it needs softmax or unnormalised attention with Q = K = V = I on the sphere"
    return None


def _kernel(model: SelfAttention) -> tuple[bool, Any]:
    kind = model.attention
    return (True, kind.shift) if isinstance(kind, UnnormalisedAttention) else (False, 0.0)


def _span_obstacle(model: Model, n: int, d: int, record: tuple[Observable, ...]) -> str | None:
    inner = model.inner if isinstance(model, NormalisedAttention) else model
    if (
        not isinstance(inner, SelfAttention)
        or not exactly(inner.weights, IdentityWeights)
        or inner.perceptron is not None
    ):
        return "it needs Q = K = I and a scalar V (anything else singles out directions of R^d)"
    for part, kind in ((inner, SelfAttention), (model, type(model) if model is inner else NormalisedAttention)):
        if changed := overridden(part, kind):
            return f"{type(part).__name__} has its own `{changed[0]}`"
    if d <= n:
        return f"it needs d > n, but d = {d}, n = {n}"
    for o in record:
        if o.ambient and o.name != "tokens":
            return f"`{o.name}` looks at ambient coordinates"
    return None


def _span(model: Model, tokens: Any, reason: str) -> Posed:
    basis, factor = np.linalg.qr(np.asarray(tokens).T)
    rows = jnp.asarray(factor.T, tokens.dtype)
    return Posed(model, rows, Form("span", 0.0, reason), lambda x: x @ jnp.asarray(basis.T, x.dtype))


def _circle_obstacle(model: Model, n: int, d: int, dtype: Any) -> str | None:
    if d != 2:
        return f"it needs d = 2, but d = {d}"
    obstacle = _plain(model)
    if obstacle is not None:
        return obstacle
    assert isinstance(model, SelfAttention)
    beta = float(model.beta)
    if beta <= 0:
        return "it needs β > 0"
    if model.multiplicities is None:
        return None
    least = least_partition(lightest(n, model.multiplicities), beta)
    return spectral_obstacle(Sums(model.attention, n, d, beta, jnp.dtype(dtype).name, partition=least))


def _circle(model: Model) -> CircleAttention:
    assert isinstance(model, SelfAttention)
    return CircleAttention(float(model.beta), model.multiplicities, *_kernel(model))


def _gram(model: Model, tokens: Any, record: tuple[Observable, ...]) -> Posed:
    obstacle = _plain(model)
    for o in record:
        if o.needs_tokens:
            obstacle = f"`{o.name}` needs token coordinates"
    if obstacle is not None:
        raise FormError(f"The gram-deficit form is not available: {obstacle}.")
    assert isinstance(model, SelfAttention)
    gram = GramAttention(model.beta, model.multiplicities, *_kernel(model))
    return Posed(gram, tokens, Form("gram-deficit", 0.0, "asked for"))
