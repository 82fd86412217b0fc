"""One ReLU piece x' = w (a·x + b)₊ for a time t: its flow in closed form.

With s = a·x + b and c = a·w, s never changes sign, so

    s ≤ 0:  x stays, log|det| = 0;       s > 0:  x → x + w s t φ₁(ct),  log|det| = ct,       φ₁(z) = (e^z - 1)/z.

The inverse is the piece with -w. The map is piecewise linear and bi-Lipschitz with constant at most e^{|w||a|t}.
[derived; the pieces are those of arXiv:2412.19366 and 2602.08606]. O(nd).
"""

from __future__ import annotations

import math

import numpy as np


def phi1(z: np.ndarray | float) -> np.ndarray:
    """(e^z - 1)/z, 1 at 0."""
    z = np.asarray(z, float)
    return np.where(z == 0, 1.0, np.expm1(z) / np.where(z == 0, 1.0, z))


def relu_piece(x: np.ndarray, w: np.ndarray, a: np.ndarray, b: float, t: float) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, d) moved by one piece, and the log-determinants (n,)."""
    s = x @ a + b
    rate = float(a @ w) * t
    gain = t * math.expm1(rate) / rate if rate else t
    moved = x + (np.maximum(s, 0.0) * gain)[:, None] * w
    return moved, (s > 0) * rate
