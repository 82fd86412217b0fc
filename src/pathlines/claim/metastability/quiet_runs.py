"""Runs from starts as quiet as those of N i.i.d. uniform tokens, and the moments of those very starts."""

from __future__ import annotations

from typing import Annotated, Any

import jax
import numpy as np

from pathlines.domain.circle_law import QuietMoments, QuietTokens
from pathlines.foundation import vocabulary as of
from pathlines.foundation.setting import Setting, means
from pathlines.integrate import ensemble
from pathlines.integrate.run import Run
from pathlines.limit.metastability.growth import dominant_degree, growth_rates
from pathlines.model.metastability.circle import CircleAttention
from pathlines.observable.patterns import potential_modes

RTOL = 1e-5
NOISE = 0.01
"""Of the solver, over the size 1/√N of the modes of a start: its errors are bumps too, and they grow alike."""


class QuietStarts(Setting):
    """Starts as quiet as those of N uniform tokens."""

    runs: of.Runs = 280
    points: Annotated[of.Count, means("quantile points that stand for the tokens")] = 200
    noisy: Annotated[of.Count, means("Fourier modes that carry noise")] = 18
    seed: of.Seed = 0


def quiet_runs(model: CircleAttention, s: QuietStarts, tokens: float, times: Any, record: Any) -> Run:
    """``s.runs`` starts of N tokens, each as ``s.points`` quantile points with ``s.noisy`` modes."""
    law = QuietTokens(QuietMoments(tokens, s.noisy), s.points)
    rtol = min(RTOL, NOISE / np.sqrt(tokens))
    key = jax.random.key(s.seed)
    return ensemble(model, law, runs=s.runs, key=key, times=times, record=record, rtol=rtol, atol=rtol / 10)


def start_moments(s: QuietStarts, tokens: float) -> np.ndarray:
    """(runs, noisy): complex moments m_k, k = 1.., of the starts of ``quiet_runs``."""
    keys = jax.vmap(lambda i: jax.random.fold_in(jax.random.key(s.seed), i))(np.arange(s.runs))
    parts = np.asarray(jax.vmap(QuietMoments(tokens, s.noisy))(keys))[:, 1:]
    return parts[..., 0] + 1j * parts[..., 1]


def counts(model: CircleAttention, s: QuietStarts, tokens: float, times: Any) -> np.ndarray:
    """(runs, times): maxima of the potential, through saturation."""
    return quiet_runs(model, s, tokens, times, potential_modes)["potential_modes"].values


def saturation(beta: float, tokens: float, kind: str = "sa") -> float:
    """(½ ln N + 2)/λ*: two e-folds after the linear amplitude of the fastest mode is one."""
    return (0.5 * np.log(tokens) + 2) / growth_rates(beta, 2, dominant_degree(beta, 2), kind)[-1]
