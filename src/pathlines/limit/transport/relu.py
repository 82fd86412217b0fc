"""ReLU pieces by another way: on its half-space a piece is linear, and its flow a matrix exponential."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import expm
from scipy.special import ndtr

from pathlines.foundation.numbers import real_array
from pathlines.foundation.papers.transport import NORMALIZING_FLOWS

SOURCES = (NORMALIZING_FLOWS,)


def relu_flow(x: ArrayLike, w: ArrayLike, a: ArrayLike, b: ArrayLike, t: ArrayLike) -> tuple[np.ndarray, float]:
    """One point moved by pieces x' = w (a·x + b)₊ in order, and the log-determinant of the map there.

    Where a·x + b > 0 the piece is X' = [[w aᵀ, bw], [0, 0]]X for X = (x, 1), so it is e^{t[…]}; elsewhere the identity.
    """
    point, jacobian = real_array("x", x), np.eye(np.size(x))
    rows = (real_array("w", w), real_array("a", a), real_array("b", b), real_array("t", t))
    for u, v, bias, time in zip(*rows):
        if v @ point + bias > 0:
            d = len(point)
            field = np.zeros((d + 1, d + 1))
            field[:d, :d], field[:d, d] = np.outer(u, v), bias * u
            moved = expm(time * field)
            point, jacobian = moved[:d, :d] @ point + moved[:d, d], moved[:d, :d] @ jacobian
    return point, float(np.linalg.slogdet(jacobian)[1])


class HingeSlope(NamedTuple):
    """dL/db of a mean log-density: all of it, and what is left without the jump at the hinge."""

    whole: np.ndarray
    without_surface: np.ndarray


def hinge_slope(b: ArrayLike, w: float) -> HingeSlope:
    """How the mean log-density L of N(0, 1) samples under one piece (w, a = 1, b, t = 1) moves with its hinge -b.

    log q(y) = log φ(y) for y + b ≤ 0, log φ(y - κ(y + b)) - w beyond, κ = 1 - e^{-w}. With y ~ N(0, 1)

        dL/db = -wφ(b) + κ((1 - κ)φ(b) - κbΦ(b)),

    whose first term is the jump -w of the log-density times the density at the hinge [derived].
    """
    bias = real_array("b", b)
    kappa = -np.expm1(-w)
    normal = np.exp(-(bias**2) / 2) / np.sqrt(2 * np.pi)
    inside = kappa * ((1 - kappa) * normal - kappa * bias * ndtr(bias))
    return HingeSlope(inside - w * normal, inside)
