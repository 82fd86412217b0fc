"""Which experts two tokens share: E Σ_e g_e g'_e over a random router, as a function of the cosine of its inputs.

Experts are independent, so two tokens have products in common only through those that speak for both: the perceptron's
kernel is multiplied by E Σ_e g_e g'_e. Scores are those of logits of standard deviation σ that are normal with the
cosine ρ between tokens; the k largest speak (ties aside, always k), weighted by their scores, or by their shares among
themselves. Where ρ is near one the chance that two tokens differ in an expert falls like √(1-ρ) only, so that the table
is one in arccos ρ. Drawn from a fixed seed: its own error is about 1 % for 8 experts, less for more.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy.interpolate import PchipInterpolator
from scipy.special import expit, softmax

from pathlines.architecture.record import Architecture

_NODES = 33
_DRAWS = 262_144
"""Numbers drawn for each node."""


def shared_experts(architecture: Architecture, rho: np.ndarray, size: float) -> np.ndarray:
    """E Σ_e g_e g'_e at cosines ρ of inputs of root mean square ``size``; ones where there are no experts."""
    a = architecture
    if not a.experts:
        return np.ones_like(rho)
    sigma = float(f"{np.sqrt(a.width) * a.deviations.router * size:.3g}")
    table = _table(a.experts, a.active_experts, a.expert_score, a.expert_shares, sigma)
    return a.expert_scale**2 * table(np.arccos(np.clip(rho, -1.0, 1.0)))


@lru_cache(maxsize=512)
def _table(experts: int, active: int, score: str, shares: bool, sigma: float) -> PchipInterpolator:
    rng = np.random.default_rng(0)
    one, other = rng.standard_normal((2, max(_DRAWS // experts, 256), experts))
    angles = np.linspace(0.0, np.pi, _NODES)
    first = _weights(sigma * one, active, score, shares)
    values = [
        np.sum(first * _weights(sigma * (np.cos(t) * one + np.sin(t) * other), active, score, shares)) / len(one)
        for t in angles
    ]
    return PchipInterpolator(angles, values)


def _weights(logits: np.ndarray, active: int, score: str, shares: bool) -> np.ndarray:
    """g of each expert."""
    least = -np.partition(-logits, active - 1, axis=1)[:, active - 1 : active]
    scores = softmax(logits, axis=1) if score == "softmax" else expit(logits)
    chosen = scores * (logits >= least)
    if not np.any(logits):  # a router of zeros: any k of them
        chosen = scores * (np.argsort(np.argsort(np.random.default_rng(1).random(logits.shape))) < active)
    return chosen / chosen.sum(axis=1, keepdims=True) if shares else chosen
