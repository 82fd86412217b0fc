"""What can be turned: continuous knobs, each one factor on an architecture, and named what-ifs."""

from __future__ import annotations

import math
from collections.abc import Callable

import msgspec

from pathlines.architecture import Architecture

MATRICES = ("query", "key", "value", "output", "mlp_in", "mlp_gate", "mlp_out")
PROJECTIONS = ("output", "mlp_out")
EMBEDDINGS = ("embedding", "position", "type")
Turn = Callable[[Architecture, float], Architecture]


class Knob(msgspec.Struct, frozen=True):
    """``turn(architecture, x)`` multiplies what the knob names by x; x = 1 changes nothing."""

    name: str
    fields: str
    turn: Turn


class WhatIf(msgspec.Struct, frozen=True):
    """One named change; ``change`` returns None where it would change nothing or has no meaning."""

    name: str
    change: Callable[[Architecture], Architecture | None]


def scaled(architecture: Architecture, names: tuple[str, ...], factor: float) -> Architecture:
    """Deviations by name, times a factor."""
    old = architecture.deviations
    return architecture.changed(deviations={name: factor * getattr(old, name) for name in names})


KNOBS = (
    Knob("embedding std", "deviations.embedding, position, type", lambda a, x: scaled(a, EMBEDDINGS, x)),
    Knob("init std of all matrices", "deviations, embeddings apart", lambda a, x: scaled(a, MATRICES, x)),
    Knob("std of output projections", "deviations.output, mlp_out", lambda a, x: scaled(a, PROJECTIONS, x)),
    Knob(
        "residual scale of both branches",
        "attention_residual, mlp_residual",
        lambda a, x: a.changed(attention_residual=x * a.attention_residual, mlp_residual=x * a.mlp_residual),
    ),
    Knob(
        "residual scale of attention",
        "attention_residual",
        lambda a, x: a.changed(attention_residual=x * a.attention_residual),
    ),
    Knob("residual scale of the perceptron", "mlp_residual", lambda a, x: a.changed(mlp_residual=x * a.mlp_residual)),
    Knob("logit scale", "logit_multiplier", lambda a, x: a.changed(logit_multiplier=x * a.logit_multiplier)),
)


def unit_embedding(a: Architecture) -> Architecture | None:
    """Embeddings of mean square one (what norms make of them)."""
    if a.embedding_norm or a.patch_inputs:
        return None
    return a.changed(deviations={"embedding": 1.0 / a.embedding_scale})


def _deep_projections(a: Architecture) -> Architecture | None:
    """GPT-2's rule, unless it is there already."""
    factor = 1 / math.sqrt(2 * a.layers)
    if a.deviations.output <= 1.01 * factor * a.deviations.query:
        return None
    return scaled(a, PROJECTIONS, factor)


def _deep_residual(a: Architecture) -> Architecture:
    factor = 1 / math.sqrt(a.layers)
    return a.changed(attention_residual=factor * a.attention_residual, mlp_residual=factor * a.mlp_residual)


def _both(a: Architecture) -> Architecture | None:
    embedded = unit_embedding(a)
    return None if embedded is None else _deep_projections(embedded)


def deepnorm(a: Architecture) -> Architecture:
    """DeepNorm for one stack: post-norm, α = (2L)^{1/4}, values, outputs and perceptron times (8L)^{-1/4}."""
    skip, gain = (2 * a.layers) ** 0.25, (8 * a.layers) ** -0.25
    names = ("value", "output", "mlp_in", "mlp_gate", "mlp_out")
    return scaled(a.changed(placement="post", skip=skip), names, gain)


def placed(placement: str) -> Callable[[Architecture], Architecture | None]:
    """The same with norms elsewhere."""
    return lambda a: None if a.placement == placement else a.changed(placement=placement, skip=1.0)


def _heads(factor: float) -> Callable[[Architecture], Architecture | None]:
    def change(a: Architecture) -> Architecture | None:
        heads = round(a.heads * factor)
        groups = max(1, round(a.kv_heads * factor))
        if heads < 1 or a.attention_width % heads or heads % groups:
            return None
        return a.changed(heads=heads, kv_heads=groups, head_dim=a.attention_width // heads)

    return change


WHAT_IFS = (
    WhatIf("embeddings of unit mean square", unit_embedding),
    WhatIf("output projections × 1/√(2L)", _deep_projections),
    WhatIf("both of these", _both),
    WhatIf("init std of all matrices × ½", lambda a: scaled(a, MATRICES, 0.5)),
    WhatIf("init std of all matrices × 2", lambda a: scaled(a, MATRICES, 2.0)),
    WhatIf("both branches × 1/√L", _deep_residual),
    WhatIf("DeepNorm (α = (2L)^¼, β = (8L)^-¼)", deepnorm),
    WhatIf("norm before each branch (pre)", placed("pre")),
    WhatIf("norm after each sum (post)", placed("post")),
    WhatIf("norms on both sides (sandwich)", placed("sandwich")),
    WhatIf("branches side by side (parallel)", placed("parallel")),
    WhatIf("logits × 4", lambda a: a.changed(logit_multiplier=4 * a.logit_multiplier)),
    WhatIf("twice the heads", _heads(2.0)),
    WhatIf("half the heads", _heads(0.5)),
    WhatIf("half the layers", lambda a: a.changed(layers=a.layers // 2) if a.layers > 1 else None),
    WhatIf("twice the layers", lambda a: a.changed(layers=2 * a.layers)),
)
