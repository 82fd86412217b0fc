"""Everything linear theory says about the first pattern out of uniform tokens, in one place."""

from __future__ import annotations

import msgspec
import numpy as np

from pathlines.foundation.errors import ArgumentError, finite_number, positive_integer, require
from pathlines.foundation.papers import METASTABLE_EMERGENCE
from pathlines.limit.metastability.growth import (
    dominant_degree,
    formation_time,
    growth_rates,
    log_mean_kernel,
    selection_probabilities,
    threshold,
)
from pathlines.limit.metastability.linear_phase import mean_first_time, mean_maxima

SOURCES = (METASTABLE_EMERGENCE,)


class Forecast(msgspec.Struct, frozen=True):
    """Rates by degree, the fastest degree, when it forms, how likely each degree is first, where it changes.

    Rates and times of USA are given on both clocks: scaled kernel e^{β(<x,y>-1)}, printed kernel e^{β<x,y>}; ``None``
    beyond e^±700. Times of k* are (½ ln N + ln c)/λ; ``mean_time`` averages over starts and modes.
    """

    beta: float
    d: int
    tokens: float
    level: float
    dominant_degree: int
    degrees: list[int]
    rates_sa: list[float]
    rates_usa_scaled: list[float | None]
    rates_usa_printed: list[float | None]
    formation_times: dict[str, float | None]
    mean_time: float | None
    probabilities: list[float] | None
    expected_maxima: float | None
    threshold_below: float | None
    threshold_above: float


def forecast(beta: float, d: int, tokens: float, level: float = 0.1) -> Forecast:
    """The first pattern of N i.i.d. uniform tokens on the sphere of R^d (derived from arXiv:2410.23228).

    Args:
        beta: β > 0. The larger, the more clusters: about √(2β) on the circle.
        d: the ambient dimension, d ≥ 2. Beyond 3β/2 there is one cluster from the start. The larger, the fewer
            clusters.
        tokens: N ≥ 1. The more, the later (ln N) and the surer the fastest pattern.
        level: the amplitude of a mode that counts as formed, 0.1 by default. The larger, the later.
    """
    beta, d = finite_number("beta", beta, 0.0, open_low=True), positive_integer("d", d, 2)
    n, c = finite_number("tokens", tokens, 1.0, open_low=True), finite_number("level", level, 0.0, 1.0, open_low=True)
    require(n * c * c > 1, "tokens", f"exceed 1/level² = {1 / c**2:g} (modes start at 1/√N, below the level)", n)
    top = dominant_degree(beta, d)
    count = max(6, 2 * top + 2)
    softmax, time = growth_rates(beta, d, count).tolist(), formation_time(beta, d, n, c)
    log_kernel = log_mean_kernel(beta, d)
    on_circle = d == 2
    return Forecast(
        beta=beta,
        d=d,
        tokens=n,
        level=c,
        dominant_degree=top,
        degrees=list(range(1, count + 1)),
        rates_sa=softmax,
        rates_usa_scaled=[_grown(rate, log_kernel) for rate in softmax],
        rates_usa_printed=[_grown(rate, log_kernel + beta) for rate in softmax],
        formation_times={
            "sa": time,
            "usa_scaled": _grown(time, -log_kernel),
            "usa_printed": _grown(time, -log_kernel - beta),
        },
        mean_time=mean_first_time(beta, n, c) if on_circle else None,
        probabilities=_probabilities(beta, d, n, c, count),
        expected_maxima=float(mean_maxima(beta)) if on_circle else None,
        threshold_below=threshold(top - 1, d) if top > 1 else None,
        threshold_above=threshold(top, d),
    )


def _probabilities(beta: float, d: int, tokens: float, level: float, count: int) -> list[float] | None:
    """Of each degree to be first; on higher spheres ``None`` where so few tokens have degrees above the level."""
    try:
        return selection_probabilities(beta, tokens, level, count, d).tolist()
    except ArgumentError:
        if d == 2:
            raise
        return None


def _grown(value: float, exponent: float) -> float | None:
    """value · e^exponent, or ``None`` where that may be no normal number."""
    if value == 0:
        return 0.0
    log = np.log(value) + exponent
    return float(np.exp(log)) if abs(log) < 700 else None
