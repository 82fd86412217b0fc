"""How far samples are from N(0, I), from their nearest neighbours alone.

Kozachenko and Leonenko: log p̂(z_i) = ψ(k) - log(n - 1) - log V_d - d log ρ_i, ρ_i the distance to the k-th nearest
of the n - 1 others, V_d the volume of the unit ball, has the mean of log p as n → ∞. So the mean of log p̂ - log φ
estimates KL(law of z‖N(0, I)), and with z = Φ^{-1}(y) it is KL(law of y‖flow): relative entropy does not change under
an invertible map. Near the Gaussian, what the estimate of a Gaussian sample of the same size is off by is subtracted
[derived]. O(n log n) in few dimensions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.spatial import cKDTree
from scipy.special import digamma, gammaln

from pathlines.foundation.errors import ArgumentError

NEIGHBOUR = 8
MOST_ROWS = 5000
"""Rows that are looked at."""
REFERENCES = 12
"""Gaussian samples that the bias is taken from."""


class EstimatedKL(NamedTuple):
    """KL(target‖flow) as held-out samples tell it, and its standard error."""

    kl: float
    error: float

    @property
    def bound(self) -> float:
        """Two standard errors above."""
        return self.kl + 2 * self.error


def entropy_of(z: np.ndarray) -> EstimatedKL:
    """KL(law of the rows of z‖N(0, I)), by nearest neighbours."""
    z = z[:MOST_ROWS]
    n, d = z.shape
    rng = np.random.default_rng(0)
    reference = [_terms(rng.standard_normal((n, d))).mean() for _ in range(REFERENCES)]
    terms = _terms(z)
    spread = terms.std() * np.sqrt((1 + 1 / REFERENCES) / n)
    return EstimatedKL(float(terms.mean() - np.mean(reference)), float(spread))


def _terms(z: np.ndarray) -> np.ndarray:
    """log p̂ - log φ at each row."""
    n, d = z.shape
    k = min(NEIGHBOUR, n - 1)
    far = cKDTree(z).query(z, k + 1)[0][:, -1]
    if not far.min() > 0:
        raise ArgumentError(f"Argument `X` has a row more than {k} times: a law with repeated rows has no density.")
    ball = d / 2 * np.log(np.pi) - gammaln(d / 2 + 1)
    density = digamma(k) - np.log(n - 1) - ball - d * np.log(far)
    return density + 0.5 * np.sum(z**2, axis=1) + d / 2 * np.log(2 * np.pi)


def missed(error: float, found: EstimatedKL | None, samples: int, remedy: str) -> ArgumentError:
    """What is said when no flow meets a target."""
    said = "" if found is None else f": KL is estimated as {found.kl:.3g} ± {found.error:.2g} (two errors count)"
    return ArgumentError(f"Argument `error` = {error:g} was not met with {samples} samples{said}; {remedy}.")
