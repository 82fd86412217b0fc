"""Observables of a residual stream against depth, and their mean and spread over seeds and inputs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from pathlines.foundation.errors import ArgumentError
from pathlines.probing.stream import Stream

MASSIVE = 4.0
"""A token is massive where its length exceeds this many medians: in trained models the first token reaches 5 to 10."""

OBSERVABLES = {
    "mean_cosine": "mean cosine of pairs of tokens",
    "effective_rank": "effective rank",
    "residual_rms": "RMS of the residual stream",
    "attention_entropy": "entropy of attention (nats)",
}


class Curve(msgspec.Struct, frozen=True):
    """An observable at layers 0, 1, …: mean over inputs and seeds; ``spread``: standard deviation over seeds."""

    mean: list[float]
    spread: list[float]


Curves = dict[str, Curve]


def observed(stream: Stream, keep: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Each observable of one run at every depth, over the tokens of ``keep``.

    Cosines are those of h_i, h_j, i ≠ j; the effective rank is the exponential of the entropy of the eigenvalues of
    their matrix over n; attention entropy is that of the layer that follows, so it has one entry less.
    """
    hidden = stream.hidden if keep is None else stream.hidden[:, keep]
    attention = stream.attention if keep is None else stream.attention[:, :, keep]
    unit = hidden / np.linalg.norm(hidden, axis=-1, keepdims=True)
    n = hidden.shape[1]
    total = np.sum(np.sum(unit, axis=1) ** 2, axis=-1)
    return {
        "mean_cosine": (total - n) / (n * (n - 1)),
        "effective_rank": np.array([stream_rank(rows) for rows in unit]),
        "residual_rms": np.sqrt(np.mean(hidden**2, axis=(1, 2))),
        "attention_entropy": -np.mean(np.sum(_x_log_x(attention), axis=-1), axis=(1, 2)),
    }


def stream_rank(unit: np.ndarray) -> float:
    """exp(-Σ p ln p), p the squared singular values of unit rows over their number."""
    p = np.linalg.svd(unit, compute_uv=False) ** 2 / len(unit)
    return float(np.exp(-np.sum(_x_log_x(p))))


def massive_tokens(stream: Stream) -> np.ndarray:
    """Tokens whose length exceeds ``MASSIVE`` medians after some layer."""
    lengths = np.linalg.norm(stream.hidden, axis=-1)
    return np.any(lengths > MASSIVE * np.median(lengths, axis=1, keepdims=True), axis=0)


def kept_tokens(special: np.ndarray, massive: np.ndarray) -> np.ndarray:
    """Indices of the tokens that are neither; at least two must be left."""
    keep = np.flatnonzero(~(special | massive))
    if len(keep) < 2:
        raise ArgumentError(f"Dropping tokens leaves {len(keep)} of {len(special)}; give a longer text.")
    return keep


def summary(runs: Sequence[Sequence[dict[str, np.ndarray]]]) -> Curves:
    """Mean over inputs (inner) and seeds (outer), and the standard deviation over seeds of the mean over inputs."""
    curves = {}
    for name in runs[0][0]:
        by_seed = np.array([np.mean([one[name] for one in inputs], axis=0) for inputs in runs])
        spread = by_seed.std(axis=0, ddof=1) if len(by_seed) > 1 else np.zeros_like(by_seed[0])
        curves[name] = Curve(by_seed.mean(axis=0).tolist(), spread.tolist())
    return curves


def _x_log_x(p: np.ndarray) -> np.ndarray:
    return p * np.log(np.where(p > 0, p, 1.0))
