"""Laws of gradients in closed form: how fast queries starve as tokens merge, and what sharp heads do (derived)."""

from __future__ import annotations

import numpy as np

from pathlines.architecture.record import Architecture, Deviations
from pathlines.foundation.errors import finite_number, positive_integer
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.architecture.attention import AttendedGram
from pathlines.limit.architecture.backward_attention import DRAWS, attention_back

SOURCES = (HOMOGENIZED,)


def query_rate(n: int, cosine: float, b: float, directions: float, *, common: bool = False) -> float:
    """σ_Q²‖∂W_Q‖²/σ_V²‖∂W_V‖² of n tokens of mean square one at one cosine ρ, uniform attention (small b²(1−ρ)).

    b²(1−ρ)² [(n−1)/n² + (n−1)²/n²D] ((1−ρ)t + ρu)/((ρ + (1−ρ)/n)u), u = t for independent gradients and nt for
    ``common`` ones; D ``directions`` that tokens fill. Near collapse b²(1−ρ)²(1/n + 1/D).

    Args:
        n: tokens.
        cosine: ρ, of every pair, from 0 to 1. The larger, the smaller the ratio.
        b: standard deviation of a logit.
        directions: D; the width for tokens that are fresh.
        common: whether all tokens have one gradient.
    """
    positive_integer("n", n, least=2)
    rho = finite_number("cosine", cosine, 0.0, 1.0)
    finite_number("b", b, 0.0)
    finite_number("directions", directions, 0.0, open_low=True)
    u = float(n) if common else 1.0
    pairs = (n - 1) / n**2 + (n - 1) ** 2 / (n**2 * directions)
    return b**2 * (1 - rho) ** 2 * pairs * ((1 - rho) + rho * u) / ((rho + (1 - rho) / n) * u)


def sharp_query_gain(n: int, b: float, head_dim: int, *, draws: int = 12) -> tuple[float, float]:
    """Gradient power through queries per unit of a, orthogonal tokens of infinite width: mean and standard error.

    Grows like b², then like b where attention rests on single keys: 4.70 at b = 8 and 11.1 at b = 16 for n = p = 64.

    Args:
        n: tokens.
        b: standard deviation of a logit.
        head_dim: p, width of a head.
        draws: how many times 32 heads are drawn.
    """
    size = np.sqrt(finite_number("b", b, 0.0) / head_dim)
    deviations = Deviations(embedding=1.0, query=size, key=size, value=1.0, output=1.0)
    one = Architecture(
        width=head_dim, heads=1, layers=1, mask="full", positions="none", norm="rms", deviations=deviations
    )
    attended, unit = AttendedGram(one, n, samples=DRAWS), np.eye(n)
    found = [
        b**2 * float(np.trace(attention_back(attended, unit, unit[None], np.inf, seed).pairs)) / n
        for seed in range(1, positive_integer("draws", draws, least=2) + 1)
    ]
    return float(np.mean(found)), float(np.std(found, ddof=1) / np.sqrt(len(found)))
