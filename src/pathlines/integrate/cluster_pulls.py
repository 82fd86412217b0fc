"""Clusters as points with masses: how they pull each other, how close they are, their energy."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class Pulls(NamedTuple):
    """L = ln of the largest weight of one cluster on another, velocities over e^L, ln of the closest pair's kernel."""

    log_scale: float
    velocity: np.ndarray
    log_nearest: float


def pulls(x: np.ndarray, masses: np.ndarray, beta: float, kind: str) -> Pulls:
    """Velocities over e^L, L = max ln(m_p e^{-βu_qp}) over pairs (SA: over Z_q too), which is returned with them."""
    if x.ndim == 1:
        turn = x[None, :] - x[:, None]
        cosines = np.cos(turn)
    else:
        x = x / np.sqrt(np.sum(x * x, axis=1))[:, None]
        cosines = x @ x.T
    logs = beta * (cosines - 1)
    # each cluster sees itself in Z but does not pull itself
    log_partition = np.log(np.exp(logs) @ masses)[:, None] if kind == "sa" else 0.0
    logs[np.diag_indices(len(x))] = -np.inf
    nearest = float(logs.max())
    logs = logs + np.log(masses) - log_partition
    top = float(logs.max())
    weights = np.exp(logs - top)
    if x.ndim == 1:
        return Pulls(top, np.sum(weights * np.sin(turn), axis=1), nearest)
    return Pulls(top, weights @ x - np.sum(weights * cosines, axis=1)[:, None] * x, nearest)


def energy_of(x: np.ndarray, masses: np.ndarray, beta: float) -> float:
    """E = Σ m_p m_q e^{β(<x_p,x_q>-1)}, one at consensus."""
    return float(masses @ np.exp(-beta * _deficits(x)) @ masses)


def _deficits(x: np.ndarray) -> np.ndarray:
    if x.ndim == 1:
        return 2 * np.sin((x[None, :] - x[:, None]) / 2) ** 2
    return 0.5 * np.sum((x[None, :] - x[:, None]) ** 2, axis=-1)


def closest(x: np.ndarray) -> tuple[int, int, float]:
    """The closest pair i < j and the angle between its clusters."""
    deficits = _deficits(x)
    deficits[np.diag_indices(len(x))] = np.inf
    i, j = np.unravel_index(np.argmin(deficits), deficits.shape)
    return int(min(i, j)), int(max(i, j)), float(_angle(deficits[i, j]))


def _angle(deficit: Any) -> Any:
    return 2 * np.arcsin(np.minimum(np.sqrt(deficit / 2), 1.0))
