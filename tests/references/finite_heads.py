"""Two and three heads with drift and noise together: the laws, the start and numbers of an independent NumPy program.

Expectations are of (mean overlap, ⟨x_1,e_1⟩, ⟨x_1,e_1⟩⟨x_2,e_2⟩) at T = 1.2, β = 1.5; they were computed once with a
program that shares nothing with this package (a tree of all heads for the chain; cubature with 6 and 9 steps for the
SDE), good to one unit of the last digit.
"""

import numpy as np

VALUES = np.array(
    [
        [[0.9, 0.3, -0.2], [-0.1, 0.7, 0.4], [0.2, -0.3, 1.1]],
        [[0.5, -0.6, 0.3], [0.4, 0.9, -0.5], [-0.3, 0.2, 0.4]],
        [[0.2, 0.8, 0.1], [-0.7, 0.3, 0.2], [0.4, -0.1, 0.9]],
    ]
)
SCORES = np.array(
    [
        [[1.2, 0.5, 0.0], [-0.3, 0.8, 0.4], [0.1, -0.6, 0.9]],
        [[-0.4, 1.0, 0.3], [0.6, 0.2, -0.8], [0.5, 0.7, 0.6]],
        [[0.3, -0.9, 0.5], [0.8, -0.2, 0.1], [-0.4, 0.6, 1.0]],
    ]
)
BETA, UNTIL = 1.5, 1.2

CHAIN = {
    (0.5, 12): (-0.101404279, 0.366062377, -0.113432167),
    (0.5, 20): (-0.101290931, 0.370113579, -0.117669551),
    (0.2, 12): (-0.127056499, 0.239363709, -0.139100710),
}
"""(p, layers) → expectations after all layers, H = 1."""

SDE = {
    (0.5, 12): (-0.100981147, 0.365427736, -0.112567545),
    (0.5, 20): (-0.101128401, 0.369871512, -0.117326055),
    (0.2, 12): (-0.126259735, 0.239168621, -0.138909482),
}
"""(p, T/η) → expectations with the boxed drift."""

DIFFERENCE = {
    (0.5, 6): (-1467, 2227, -2776),
    (0.5, 8): (-884, 1335, -1736),
    (0.5, 12): (-423, 635, -865),
    (0.5, 16): (-248, 370, -517),
    (0.5, 20): (-163, 242, -343),
    (0.2, 6): (-2916, 752, -824),
    (0.2, 8): (-1717, 432, -454),
    (0.2, 12): (-797, 195, -191),
    (0.2, 16): (-457, 110, -103),
    (0.2, 20): (-296, 71, -64),
}
"""(p, layers) → 10⁶ (chain - SDE)."""

SENSITIVITY = {
    "drift": {0.1: (0.0940, -0.0535, 0.0771), 0.2: (0.0947, -0.0591, 0.0724)},
    "noise": {0.1: (0.0043, -0.0076, 0.0270), 0.2: (0.0083, -0.0137, 0.0487)},
}
"""Derivatives of the SDE's expectations by the logarithm of D and of Σ at η, p = ½."""


def start(n: int = 4) -> np.ndarray:
    """x_i = N(cos i, sin 2i, cos 3i + 0.3), i = 1 … n."""
    i = np.arange(1, n + 1)
    x = np.stack([np.cos(i), np.sin(2 * i), np.cos(3 * i) + 0.3], axis=1)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def observed(x):
    """(mean overlap, ⟨x_1,e_1⟩, ⟨x_1,e_1⟩⟨x_2,e_2⟩) of (…, n, d)."""
    n, total = x.shape[-2], x.sum(axis=-2)
    overlap = ((total * total).sum(axis=-1) - n) / (n * (n - 1))
    first = x[..., 0, 0]
    return [overlap, first, first * x[..., 1, 1]]
