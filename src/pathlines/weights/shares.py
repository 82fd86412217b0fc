"""How the H heads of a layer fall on the atoms of a finite law: outcomes and their chances.

A layer depends on its heads through the shares N_a/H only, N multinomial. For two atoms N_1 is binomial, and a layer is
smooth in N_1/H - p = O(H^{-1/2}): its Gauss rule with q nodes has the first 2q-1 moments of all H+1 outcomes. The nodes
are eigenvalues of the Jacobi matrix of the Krawtchouk polynomials, a_k = p(H-k) + (1-p)k, b_k² = kp(1-p)(H-k+1).
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.special import gammaln

from pathlines.foundation.errors import positive_integer


def binomial_rule(heads: int, chance: float, nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes and weights of the Gauss rule of Bin(H, p): exact for polynomials of degree 2·``nodes`` - 1, in N_1.

    With ``nodes`` > H these are 0 … H and their binomial chances.
    """
    k = np.arange(min(positive_integer("nodes", nodes), heads + 1))
    diagonal = chance * (heads - k) + (1 - chance) * k
    beside = np.sqrt(k[1:] * chance * (1 - chance) * (heads - k[1:] + 1))
    points, vectors = eigh_tridiagonal(diagonal, beside)
    return points, vectors[0] ** 2


def head_shares(probabilities: Any, heads: int, nodes: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """(outcomes, m) shares N_a/H of the atoms in one layer of H heads, and their chances.

    One atom, one head, and more than two atoms: all outcomes. Two atoms: the Gauss rule with ``nodes`` nodes, which is
    all of them while H < ``nodes``. ``nodes=1`` is the mean p, the layer of infinitely many heads.
    """
    p = np.asarray(probabilities, float)
    heads, nodes = positive_integer("heads", heads), positive_integer("nodes", nodes)
    if nodes == 1:
        return p[None], np.ones(1)
    if len(p) == 2:
        counts, chances = binomial_rule(heads, float(p[0]), nodes)
        shares = np.stack([counts, heads - counts], axis=1) / heads
    else:
        shares, chances = _multinomial(p, heads)
    return shares[chances > 0], chances[chances > 0]


def _multinomial(p: np.ndarray, heads: int) -> tuple[np.ndarray, np.ndarray]:
    draws = itertools.combinations_with_replacement(range(len(p)), heads)
    counts = np.array([np.bincount(draw, minlength=len(p)) for draw in draws])
    ways = np.exp(gammaln(heads + 1) - gammaln(counts + 1).sum(axis=1))
    return counts / heads, ways * np.prod(p**counts, axis=1)
