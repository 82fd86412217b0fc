"""Every registered kind of attention as a model of that name: `pathlines run sa`, `pathlines run l2`, …"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from pathlines.attention import ATTENTIONS, Attention, SoftmaxAttention, UnnormalisedAttention
from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.papers import MEAN_FIELD_DYNAMICS, PERSPECTIVE
from pathlines.model.base import MODELS, Description
from pathlines.model.parts.perceptron import Perceptron
from pathlines.model.self_attention import SelfAttention
from pathlines.weights import FixedWeights, IdentityWeights

COMMON = {
    "beta": 1.0,
    "value": 1.0,
    "query": None,
    "key": None,
    "d": 3,
    "space": "sphere",
    "mask": None,
    "frozen": 0,
    "multiplicities": None,
    "outer": None,
    "inner": None,
    "inner_bias": None,
    "activation": "relu",
    "summation": "auto",
}


def builder(kind: type[Attention], beta: float = 1.0) -> Callable[..., SelfAttention]:
    """A function that makes ``SelfAttention`` of that kind from β, matrices, a space, a mask, a perceptron and the
    kind's options.

    ``value`` is a number v (V = vI) or a matrix; of ``query`` and ``key`` what is missing is I.
    """
    options = inspect.signature(kind).parameters
    defaults = {**COMMON, "beta": beta}

    def build(*first: Any, **settings: Any) -> SelfAttention:
        given = {**defaults, **dict(zip(defaults, first)), **settings}
        return SelfAttention(
            given["beta"],
            attention=kind(**{name: given[name] for name in options if name in given}),
            weights=_weights(given),
            perceptron=_perceptron(given),
            multiplicities=given["multiplicities"],
            space=given["space"],
            mask=given["mask"],
            frozen=given["frozen"],
            summation=given["summation"],
        )

    keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD
    said = {"mask": of.Mask}
    common = [
        inspect.Parameter(name, keyword, default=value, annotation=said.get(name, inspect.Parameter.empty))
        for name, value in defaults.items()
    ]
    own = [option.replace(kind=keyword) for option in options.values()]
    build.__signature__ = inspect.Signature([*common, *own])  # type: ignore[attr-defined]
    return build


def _weights(given: dict[str, Any]) -> IdentityWeights | FixedWeights:
    matrices = [None if given[name] is None else np.asarray(given[name], float) for name in ("query", "key")]
    value = np.asarray(1.0 if given["value"] is None else given["value"], float)
    if value.ndim:
        return FixedWeights(value, *matrices)
    if all(m is None for m in matrices):
        return IdentityWeights(float(value))
    heads = max(len(m) if m is not None and m.ndim == 3 else 1 for m in matrices)
    return FixedWeights(np.tile(value * np.eye(given["d"]), (heads, 1, 1)), *matrices)


def _perceptron(given: dict[str, Any]) -> Perceptron | None:
    if given["outer"] is None and given["inner"] is None:
        return None
    if given["outer"] is None or given["inner"] is None:
        raise ArgumentError("A perceptron Wσ(Bx + b) needs both `outer` (W) and `inner` (B).")
    return Perceptron(given["outer"], given["inner"], given["inner_bias"], given["activation"])


for _name, _kind in ATTENTIONS.items():
    MODELS.register(
        _name,
        Description(
            builder(_kind),
            _kind.label or _name,
            f"ẋ = P_x Σ_h V_h ∫ y κ_h(x,y) dμ(y),  {_kind.formula}",
            _kind.sees,
            "n = 5…200, d = 2 or 3, beta = 1; value, query, key as numbers or matrices; space sphere or euclidean",
            _kind.papers,
        ),
    )

MODELS.register(
    "sa",
    Description(
        builder(SoftmaxAttention, beta=4.0),
        "Self-attention (SA)",
        "ẋᵢ = P_xᵢ( Zᵢ⁻¹ Σⱼ e^{β⟨Qxᵢ,Kxⱼ⟩} V xⱼ ),  Zᵢ = Σₖ e^{β⟨Qxᵢ,Kxₖ⟩}",
        "Tokens gather in clusters that merge; one point in the end. Plateaus last e^{2β}-long times in low dimension.",
        "n = 32…200, d = 2 or 3, beta = 1 (direct collapse) or 9 (plateaus), until = 15…30",
        (PERSPECTIVE,),
    ),
)
MODELS.register(
    "usa",
    Description(
        builder(UnnormalisedAttention, beta=4.0),
        "Unnormalised self-attention (USA)",
        "ẋᵢ = P_xᵢ( n⁻¹ Σⱼ e^{β⟨xᵢ,xⱼ⟩} xⱼ )",
        "The same clusters, but faster the larger β: the late rate is e^β instead of 1. Not a time change of SA.",
        "beta ≤ 10, until = 1…3",
        (PERSPECTIVE, MEAN_FIELD_DYNAMICS),
    ),
)
