"""Where gradients start: the Gram matrix of the loss's gradients behind the last norm, and below it (derived).

    iid            Δ = I                      every token its own gradient of unit power: ratios are then scale free
    last, first    Δ = e_k e_kᵀ               a causal classifier, CLS
    mean           Δ = 11ᵀ/n²                 pooled
    common, private    Δ = 11ᵀ,  I − 11ᵀ/n    what gradients of tokens share, and what they do not
    cross-entropy  Δ_ij = dσ_U²/N² ([y_i = y_j] + (e^{νX_ij} − 2)/N_V),  ν = dσ_U²

the last for N counted positions, a head of deviation σ_U and N_V words, from δx_i = W_Uᵀ(p_i − e_{y_i})/N; it holds for
logits of deviation √ν up to 1.5. The stack's weights must be independent of these gradients: a loss of the stream's own
length, ½|h|², is not covered (a norm above kills exactly that direction).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from pathlines.architecture.record import Architecture
from pathlines.foundation.errors import ArgumentError, finite_array, finite_number, require
from pathlines.limit.architecture.backward_norms import below_norm
from pathlines.limit.architecture.branch import Stream
from pathlines.limit.architecture.start import normalised

LOSSES = ("iid", "last", "first", "mean", "common", "private", "cross-entropy")
SHARP = 1.5
IGNORED = -100


class GradientStart(NamedTuple):
    """Γ_L, ‖∂W_U‖² where there is a head, and the deviation of its logits."""

    gram: np.ndarray
    head: float | None = None
    logits: float = 0.0


def gradient_start(
    architecture: Architecture,
    last: Stream,
    loss: str | np.ndarray,
    labels: Sequence[int] | np.ndarray | None = None,
    head: float | None = None,
    *,
    finite: bool = True,
) -> GradientStart:
    """Γ_L of a named loss, or of a given Gram matrix, which is taken as Γ_L itself.

    With pre-normalisation the loss sees the stream behind one more norm; with post-normalisation the stream itself.
    """
    a, n = architecture, len(last.powers)
    if not isinstance(loss, str):
        return GradientStart(_checked(loss, n))
    require(loss in LOSSES, "loss", "be one of " + ", ".join(LOSSES) + ", or a Gram matrix", loss)
    behind = last.gram if a.placement == "post" else normalised(last.gram, a.norm_gain, a.norm_epsilon)
    weight, logits = None, 0.0
    if loss == "cross-entropy":
        sigma = finite_number("head", a.deviations.embedding if head is None else head, 0.0, open_low=True)
        delta, weight, logits = _cross_entropy(a, behind, labels, sigma)
    else:
        delta = _plain(loss, n)
    if a.placement != "post":
        delta = below_norm(a, delta, last.gram, finite=finite)
    return GradientStart(delta, weight, logits)


def _plain(loss: str, n: int) -> np.ndarray:
    found = np.zeros((n, n))
    if loss == "iid":
        return np.eye(n)
    if loss == "mean":
        return np.full((n, n), 1 / n**2)
    if loss == "common":
        return np.ones((n, n))
    if loss == "private":
        return np.eye(n) - 1 / n
    place = 0 if loss == "first" else -1
    found[place, place] = 1.0
    return found


def _cross_entropy(
    a: Architecture, x: np.ndarray, labels: Sequence[int] | np.ndarray | None, sigma: float
) -> tuple[np.ndarray, float, float]:
    if not a.vocabulary:
        raise ArgumentError('Argument `loss` must not be "cross-entropy" where `vocabulary` is 0; give it, or use iid.')
    if labels is None:
        raise ArgumentError("Argument `labels` must name the word that each position predicts (-100: none).")
    words = finite_array("labels", labels, ("n",))
    require(len(words) == len(x), "labels", f"have one entry for each of {len(x)} tokens", len(words))
    counted = words != IGNORED
    require(bool(counted.any()), "labels", "count at least one position", labels)
    if np.any((words[counted] < 0) | (words[counted] >= a.vocabulary)):
        raise ArgumentError(f"Labels must lie between 0 and {a.vocabulary - 1} (or be -100).")
    nu, many = a.width * sigma**2, int(counted.sum())
    same = words[:, None] == words
    d = np.where(counted[:, None] & counted, same + (np.exp(np.minimum(nu * x, 300.0)) - 2) / a.vocabulary, 0.0)
    logits = float(np.sqrt(nu * np.mean(np.diag(x))))
    return nu / many**2 * d, a.width / many**2 * float(np.sum(x * d)), logits


def _checked(loss: np.ndarray, n: int) -> np.ndarray:
    found = finite_array("loss", loss, ("n", "n")).astype(np.float64)
    require(found.shape == (n, n), "loss", f"be a {n} × {n} Gram matrix", found.shape)
    scale = float(np.trace(found))
    least = float(np.linalg.eigvalsh(0.5 * (found + found.T)).min())
    right = scale > 0 and np.allclose(found, found.T, atol=1e-9 * scale) and least >= -1e-9 * scale
    require(right, "loss", "be a symmetric positive semi-definite Gram matrix that is not zero", "another matrix")
    return found
