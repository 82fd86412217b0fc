"""Which form of a problem is integrated: the cheapest of those that its model offers."""

from __future__ import annotations

from typing import Any, TypeVar

from pathlines.foundation.errors import ArgumentError, FormError
from pathlines.integrate.observe import Observable
from pathlines.kernels.choice import Choice
from pathlines.model.base import Model
from pathlines.model.capability import HasFastSums
from pathlines.model.parts.offer import Form, Offer, OffersForms, Posed, Wanted

M = TypeVar("M", bound=Model)

FORMS = ("tokens", "span", "gram-deficit", "circle-fourier")
"""Forms that some model offers; a model may offer others."""


def choose_form(model: Model, tokens: Any, record: tuple[Observable, ...], form: str = "auto") -> Posed:
    """Pick the cheapest exact form; with ``form`` given, that one or an error that says why not."""
    coordinates = tuple(o.name for o in record if o.needs_tokens)
    ambient = tuple(o.name for o in record if o.ambient)
    wanted = Wanted(tokens, coordinates, ambient, None if form == "auto" else form)
    offers = list(model.forms(wanted)) if isinstance(model, OffersForms) else []
    offers += [] if any(o.name == "tokens" for o in offers) else [_as_it_stands(model, wanted)]
    if form == "auto":
        return min((o for o in offers if o.unasked and o.obstacle is None), key=lambda o: o.cost).pose()
    found = next((o for o in offers if o.name == form), None)
    if found is None and form not in FORMS:
        names = ", ".join(("auto", "tokens", *(o.name for o in offers if o.name != "tokens")))
        raise ArgumentError(f"Argument `form` must be one of {names}, but is {form!r}.")
    obstacle = f"{type(model).__name__} does not offer it" if found is None else found.obstacle
    if found is None or obstacle is not None:
        raise FormError(f"The {form} form is not available: {obstacle}.")
    return found.pose()


def _as_it_stands(model: Model, wanted: Wanted) -> Offer:
    n, d = wanted.shape
    reason = "asked for" if wanted.asked else f"n = {n}, d = {d}: coordinates are the cheapest exact form"
    return Offer("tokens", n * n * d, lambda: Posed(model, wanted.tokens, Form("tokens", 0.0, reason)))


def with_sums(posed: Posed, tolerance: float) -> tuple[Posed, Choice | None]:
    """The same problem with sums a tenth of the tolerance accurate, in the cheapest way; the form says which."""
    model, choice, words = fast_sums(posed.model, posed.tokens, tolerance)
    form = Form(posed.form.name, posed.form.since, posed.form.reason + words)
    return Posed(model, posed.tokens, form, posed.lift), choice


def fast_sums(model: M, tokens: Any, tolerance: float) -> tuple[M, Choice | None, str]:
    """(model, choice, the choice in words where sums are not direct)."""
    if not isinstance(model, HasFastSums):
        return model, None, ""
    n, d = tokens.shape[-2:]
    found, choice = model.with_fast_sums(n, d, tokens.dtype, tolerance / 10)
    return found, choice, f"; sums: {choice.reason}" if choice is not None and choice.method == "spectral" else ""
