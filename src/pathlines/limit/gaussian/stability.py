"""Dobrushin estimates: how far the field of one law can be from that of another, in a ball (constants derived).

    |Γ_μ(x) - Γ_ν(x)| ≤ L_μ(R) W_1(μ, ν)  for x and both supports in a ball of radius R,
    |Γ_μ(x) - Γ_μ(x')| ≤ L_x(R) |x - x'|,   hence   W_1(μ_t, ν_t) ≤ exp(∫_0^t (L_x + L_μ)(R_s) ds) W_1(μ_0, ν_0).

A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322, proves the estimate for compact supports;
the constants come from Γ_μ - Γ_ν = Z_μ^{-1} V ∫(y - m_ν)G d(μ - ν).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.integrate import quad

from pathlines.foundation.errors import finite_number
from pathlines.foundation.numbers import one_of
from pathlines.foundation.papers import UNIFIED
from pathlines.limit.gaussian.moments import Head

SOURCES = (UNIFIED,)
KINDS = ("softmax", "l2", "sigmoid", "linear")


def _norm(matrix: Any) -> float:
    return float(np.linalg.norm(np.atleast_2d(matrix), 2))


def field_bound(kind: str, head: Head, radius: float) -> float:
    """sup |Γ| in the ball: |V|R, and |V|aR³ for linear attention."""
    one_of("kind", kind, KINDS)
    R = finite_number("radius", radius, 0.0, open_low=True)
    return _norm(head.value) * (_norm(head.score) * R**3 if kind == "linear" else R)


def token_constant(kind: str, head: Head, radius: float) -> float:
    """L_x: how fast the field changes from token to token."""
    factor = {"softmax": 1.0, "l2": 2.0, "sigmoid": 0.25, "linear": 1.0}[one_of("kind", kind, KINDS)]
    return factor * _norm(head.value) * _norm(head.score) * finite_number("radius", radius, 0.0) ** 2


def law_constant(kind: str, head: Head, radius: float) -> float:
    """L_μ: how fast the field changes with the law, in W_1."""
    R, a = finite_number("radius", radius, 0.0), _norm(head.score)
    if one_of("kind", kind, KINDS) == "softmax":
        constant = (1 + 2 * a * R**2) * np.exp(2 * a * R**2)
    elif kind == "l2":
        b = _norm(head.query) + _norm(head.key)
        constant = (1 + 4 * _norm(head.key) * b * R**2) * np.exp(b**2 * R**2)
    else:
        constant = 1 + a * R**2 / 4 if kind == "sigmoid" else 2 * a * R**2
    return float(_norm(head.value) * constant)


def stability_bound(kind: str, head: Head, radius: float, t: float) -> float:
    """W_1(μ_t, ν_t)/W_1(μ_0, ν_0) at most, supports starting in the ball: R_s = R e^{|V|s}; not for linear attention.

    Linear attention may carry a token to infinity in finite time, so that its radius has no such bound.
    """
    one_of("kind", kind, KINDS[:3])
    growth = _norm(head.value)
    rate = lambda s: sum(c(kind, head, radius * np.exp(growth * s)) for c in (token_constant, law_constant))  # noqa: E731
    return float(np.exp(quad(rate, 0.0, finite_number("t", t, 0.0))[0]))
