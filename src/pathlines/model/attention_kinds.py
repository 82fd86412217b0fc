"""Every registered kind of attention as a model of that name: `pathlines run l2`, `pathlines run sigmoid`, …"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from pathlines.attention import ATTENTIONS, Attention
from pathlines.model.base import MODELS, Description
from pathlines.model.self_attention import SelfAttention
from pathlines.weights import FixedWeights, IdentityWeights

COMMON = {
    "beta": 1.0,
    "value": None,
    "query": None,
    "key": None,
    "d": 2,
    "space": "sphere",
    "causal": False,
    "prefix": "sum",
    "multiplicities": None,
}


def builder(kind: type[Attention]) -> Callable[..., SelfAttention]:
    """A function that makes ``SelfAttention`` of that kind from β, matrices, a space, a mask and the kind's options.

    ``value`` is a number v (V = vI, one by default) or a matrix; of ``query`` and ``key`` what is missing is I.
    """
    options = inspect.signature(kind).parameters

    def build(**settings: Any) -> SelfAttention:
        given = {**COMMON, **settings}
        chosen = kind(**{name: given[name] for name in options if name in given})
        matrices = [None if given[name] is None else np.asarray(given[name], float) for name in ("query", "key")]
        value = np.asarray(1.0 if given["value"] is None else given["value"], float)
        if value.ndim == 0 and all(m is None for m in matrices):
            weights: Any = IdentityWeights(float(value))
        else:
            weights = FixedWeights(value * np.eye(given["d"]) if value.ndim == 0 else value, *matrices)
        return SelfAttention(
            given["beta"],
            attention=chosen,
            weights=weights,
            multiplicities=given["multiplicities"],
            space=given["space"],
            causal=given["causal"],
            prefix=given["prefix"],
        )

    keyword = inspect.Parameter.KEYWORD_ONLY
    common = [inspect.Parameter(name, keyword, default=value) for name, value in COMMON.items()]
    own = [option.replace(kind=keyword) for option in options.values()]
    build.__signature__ = inspect.Signature([*common, *own])  # type: ignore[attr-defined]
    return build


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
