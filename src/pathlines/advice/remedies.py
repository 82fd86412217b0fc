"""What keeps tokens apart: recipes of the literature and turned knobs, each with what it leads to and what else moves.

A remedy says two things: the changed record, for the prediction, and what a model that stands already is multiplied by
(``weights``: matrices by the names of ``Deviations``; ``branches`` scales what both branches add, ``logits`` the
scores). The second is enough to put a remedy to the test on a module that knows nothing of the first
(``pathlines.probing.remedied``). Order: those that meet the target and leave gradients trainable, recipes before knobs
and what is easiest to change first; then those that meet it at a price; then the rest by what they reach.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from pathlines.advice.knobs import EMBEDDINGS, MATRICES, PROJECTIONS, deepnorm, placed, scaled, unit_embedding
from pathlines.advice.target import Change, Target
from pathlines.architecture import Architecture
from pathlines.limit.architecture.backward_cover import not_followed
from pathlines.limit.architecture.gradients import Gradients, predict_gradients
from pathlines.limit.architecture.numbers import Numbers
from pathlines.limit.architecture.predict import cosine_band
from pathlines.limit.architecture.start import Tokens

Weights = dict[str, float]
Recipe = Callable[[Architecture], "tuple[Architecture, Weights | None] | None"]
LOOKED_AT = 3
"""Remedies whose gradients are predicted too."""


class Remedy(msgspec.Struct, frozen=True):
    """One change with what it leads to; ``changes`` are the record's fields that differ, by name.

    ``share``: of random starts that are predicted to meet the target; ``also``: what else it changes; ``weights`` is
    None where a model that stands has to be built anew.
    """

    name: str
    recipe: bool
    meets: bool
    before: float
    cosine: float
    spread: float
    share: float
    changes: dict[str, Any]
    weights: Weights | None
    also: tuple[str, ...] = ()
    trainable: bool = True


def _branches(a: Architecture, x: float) -> Architecture:
    return a.changed(attention_residual=x * a.attention_residual, mlp_residual=x * a.mlp_residual)


def _projections(a: Architecture) -> tuple[Architecture, Weights] | None:
    x = 1 / math.sqrt(2 * a.layers)
    if a.deviations.output <= 1.01 * x * a.deviations.query or a.placement in ("sandwich", "output"):
        return None
    return scaled(a, PROJECTIONS, x), dict.fromkeys(PROJECTIONS, x)


def _residual(a: Architecture) -> tuple[Architecture, Weights]:
    x = 1 / math.sqrt(2 * a.layers)
    return _branches(a, x), {"branches": x}


def _embedding(a: Architecture) -> tuple[Architecture, Weights] | None:
    changed = unit_embedding(a)
    if changed is None or a.deviations.embedding == 0 or a.embedding_width or a.placement == "post":
        return None
    return changed, {"embedding": changed.deviations.embedding / a.deviations.embedding}


def _both(a: Architecture) -> tuple[Architecture, Weights] | None:
    first, second = _embedding(a), _projections(a)
    if first is None or second is None:
        return None
    return scaled(first[0], PROJECTIONS, second[1]["output"]), {**first[1], **second[1]}


def _deepnorm(a: Architecture) -> tuple[Architecture, Weights] | None:
    """norm(αh + f) is norm(h + f/α), so α of a model that stands goes into the output projections."""
    if a.placement != "post":
        return None
    alpha, beta = (2 * a.layers) ** 0.25, (8 * a.layers) ** -0.25
    inner = {name: beta for name in ("value", "mlp_in", "mlp_gate") if getattr(a.deviations, name)}
    return deepnorm(a), inner | dict.fromkeys(PROJECTIONS, beta / alpha)


def _logits(a: Architecture) -> tuple[Architecture, Weights] | None:
    b = Numbers.of(a).b
    if not b > 1.5:
        return None
    return a.changed(logit_multiplier=a.logit_multiplier / b), {"logits": 1 / b}


def _normed_queries(a: Architecture) -> tuple[Architecture, None] | None:
    return None if a.qk_norm else (a.changed(qk_norm=True, logit_multiplier=a.head_dim**-0.5), None)


def _pre(a: Architecture) -> tuple[Architecture, None] | None:
    changed = placed("pre")(a)
    return None if changed is None or a.placement != "post" else (changed, None)


RECIPES: tuple[tuple[str, Recipe], ...] = (
    ("output projections started × 1/√(2L) (GPT-2)", _projections),
    ("both branches × 1/√(2L)", _residual),
    ("embeddings of unit mean square", _embedding),
    ("embeddings of unit mean square, output projections × 1/√(2L)", _both),
    ("DeepNorm (α = (2L)^¼, β = (8L)^-¼)", _deepnorm),
    ("logits of unit variance", _logits),
    ("norms on queries and keys", _normed_queries),
    ("norm before each branch instead of after (pre)", _pre),
)
"""Of the literature, the easiest to change first."""
KNOB_WEIGHTS: dict[str, tuple[str, ...]] = {
    "residual scale of both branches": ("branches",),
    "std of output projections": PROJECTIONS,
    "embedding std": EMBEDDINGS,
    "logit scale": ("logits",),
    "residual scale of attention": ("attention",),
    "residual scale of the perceptron": ("perceptron",),
    "init std of all matrices": MATRICES,
}
"""What a turned knob multiplies, the easiest first."""


def remedies(
    architecture: Architecture, tokens: Tokens, target: Target, before: float, changes: Iterable[Change],
    turned: Callable[[Change], Architecture],
) -> tuple[Remedy, ...]:  # fmt: skip
    """All that may help, the best first; ``turned`` gives the record with a knob's change."""
    found, records = [], {}
    for name, recipe in RECIPES:
        made = recipe(architecture)
        if made is not None and made[0] != architecture:
            records[name] = made[0]
            found.append(_recipe(name, architecture, *made, tokens, target, before))
    by_knob = {change.knob: change for change in changes if change.factor is not None}
    for knob, names in KNOB_WEIGHTS.items():
        if knob in by_knob:
            one = by_knob[knob]
            remedy = _knob(one, names, architecture, turned(one), before)
            records[remedy.name] = turned(one)
            found.append(remedy)
    ordered = sorted(found, key=lambda r: (not r.meets, 0 if r.meets else r.cosine))
    looked = [_with_gradients(r, architecture, records[r.name], tokens) for r in ordered[:LOOKED_AT] if r.meets]
    rest = ordered[len(looked) :]
    return tuple(sorted([*looked, *rest], key=lambda r: (not r.meets, not r.trainable)))


def _recipe(
    name: str, a: Architecture, changed: Architecture, weights: Weights | None, tokens: Tokens, target: Target,
    before: float,
) -> Remedy:  # fmt: skip
    band = cosine_band(changed, tokens, target.layer)
    return Remedy(
        name, True, target.excess(band) <= 0, before, band.cosine, band.spread, target.share(band),
        differences(a, changed), weights,
    )  # fmt: skip


def _knob(one: Change, names: tuple[str, ...], a: Architecture, changed: Architecture, before: float) -> Remedy:
    assert one.factor is not None and one.cosine is not None and one.spread is not None and one.share is not None
    name = f"{one.knob} × {one.factor:.2g}"
    there = [n for n in names if n not in a.deviations.__struct_fields__ or getattr(a.deviations, n) > 0]
    weights = dict.fromkeys(there, one.factor)
    return Remedy(name, False, True, before, one.cosine, one.spread, one.share, differences(a, changed), weights)


def differences(a: Architecture, b: Architecture) -> dict[str, Any]:
    """Fields of b that differ from a's, deviations as ``deviations.NAME``."""
    one, two = (msgspec.to_builtins(x) for x in (a, b))
    inner = {f"deviations.{k}": v for k, v in two.pop("deviations").items() if v != one["deviations"][k]}
    return {name: value for name, value in two.items() if value != one[name]} | inner


def _with_gradients(remedy: Remedy, a: Architecture, changed: Architecture, tokens: Tokens) -> Remedy:
    """What else moves: the gradient that reaches embeddings, what queries get, the first layer's logits."""
    if a.shared or not_followed(a) or not_followed(changed):
        return remedy
    then = predict_gradients(changed, tokens)
    return msgspec.structs.replace(remedy, also=_also(then, a, changed), trainable=then.trainable)


def _also(then: Gradients, a: Architecture, changed: Architecture) -> tuple[str, ...]:
    ratio = then.matrices["query"] / then.matrices["value"].clip(1e-300)
    found = [
        f"a token's own gradient reaches its embedding at {then.transmission:.2g} of its size at the top",
        f"queries get {ratio[-1]:.2g} of the values' gradient in the last layer",
    ]
    one, two = Numbers.of(a).b, Numbers.of(changed).b
    if not math.isclose(one, two, rel_tol=0.01):
        found.append(f"logit scale {one:.2g} → {two:.2g}")
    if not then.trainable:
        found.append("hard to train: " + ", ".join(then.labels))
    return tuple(found)
