"""The effective rank of tokens of finite width: exp of the entropy of the eigenvalues of their matrix of cosines.

Tokens of d coordinates have a Gram matrix that fluctuates about its mean K, which lowers the entropy. With p_a the
eigenvalues of K/n and φ(κ) = Σ_a p_a/(p_a+κ), the deterministic equivalent of sample covariances gives (derived)

    entropy = -Σ_a p_a log(p_a+κ) - Q/2d + κd/2,    Q = Σ_ab p_a p_b (log(p_a+κ) - log(p_b+κ))/(p_a-p_b),

κ = 0 where there are fewer tokens than coordinates, else φ(κ) = d. For orthogonal tokens log n - n/2d and log d - d/2n
(Page's formula). Cosines do not fluctuate on the diagonal: d counts as dn/(n-1).

Gaussian tokens have products of relative variance 1/d; those that passed matrices have more. Let what tokens do not
share, of mean square π, have products of variance π²/D. A branch of private power f, whose products follow those of the
stream with slope s and whose inner matrices have e units, is added (derived):

    Var' = (α² + s)² π²/D + (2α²πf + f²)/d + f²/e,    π' = α²π + f.

Attention averages private parts away (s = 0), and its own come from few draws: 1/e is 1/value_size + 1/(Hp) for W_V and
the logits, + 1/H(n-1) for the keys of H heads. The entropy falls by another ½w log(1 + (1/D - 1/d)Q/w), w = 1 - c the
private share: the first order in 1/D for few tokens, the logarithm of a spread of sizes for many.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq


def expected_rank(cosines: np.ndarray, d: float, directions: float | None = None) -> float:
    """Of tokens with these mean cosines in d coordinates, and D ≤ d ``directions`` of what they do not share; O(n³)."""
    n = len(cosines)
    d, excess = d * n / (n - 1), 0.0 if directions is None else (n - 1) / n * (1 / directions - 1 / d)
    p = np.maximum(np.linalg.eigvalsh(cosines) / n, 1e-14)
    shift = _shift(p, d)
    log = np.log(p + shift)
    gap, log_gap = p[:, None] - p, log[:, None] - log
    close = np.abs(gap) < 1e-9 * (p + shift)[:, None]
    pairs = float(p @ np.where(close, 1 / (p + shift)[:, None], log_gap / np.where(close, 1.0, gap)) @ p)
    private = max(private_power(cosines), 1e-12)
    cost = 0.5 * pairs / d - 0.5 * shift * d + 0.5 * private * np.log1p(max(excess, 0.0) * pairs / private)
    return float(np.exp(max(-float(p @ log) - cost, 0.0)))


def _shift(p: np.ndarray, d: float) -> float:
    """κ ≥ 0 with Σ p/(p+κ) = d; 0 where there are no more tokens than coordinates."""
    if len(p) <= d:
        return 0.0
    return float(brentq(lambda k: np.sum(p / (p + k)) - d, 0.0, 1 / d, xtol=1e-15))


def private_power(gram: np.ndarray) -> float:
    """The mean square of what tokens do not share: mean diagonal less the mean of the rest."""
    n = len(gram)
    own = np.trace(gram)
    return float(max(own / n - (np.sum(gram) - own) / (n * (n - 1)), 0.0))


def directions_after(
    directions: float, before: np.ndarray, branch: np.ndarray, slope: float, d: float, inner: float
) -> float:
    """D after a branch, from the Gram matrices of αh and of the branch; ``slope`` is s/α²."""
    old, new = private_power(before), private_power(branch)
    if old + new <= 0:
        return directions
    variance = (old * (1 + slope)) ** 2 / directions + (2 * old * new + new**2) / d + new**2 / inner
    return float((old + new) ** 2 / variance)
