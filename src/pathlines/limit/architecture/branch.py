"""What adding a random branch does to the Gram matrix of the residual stream, with its first finite-width effects.

h' = αh + f, where f is Gaussian given the past, independent between coordinates, with Gram matrix F: G' = α²G + F on
average. The width d is finite, so scalar products fluctuate. With A = h'_i·h'_j/d, B_i = |h'_i|²/d,
P_i = E B_i, C = E A (the terms in 1/e come from the inner matrix of the branch, of e units; derived):

    Cov(A, B_i) = (2/d)(P_i C - G_ii G_ij) + (2/e) F_ii F_ij,    Var B_i = (2/d)(P_i² - G_ii²) + (2/e) F_ii²,
    Cov(B_i, B_j) = (2/d)(C² - G_ij²) + (2/e) F_ij²,

and E cos = C/√(P_iP_j) [1 - ½Σ Cov(a,b) + ¼Cov(b_i,b_j) + ⅜Σ Var b] to first order, lower-case being relative. For
small F this is the correction of ``homogenized.gram.gram_layer``, 1-(2-K²)/d on S_ij; without stream 1-(1-ρ²)/2d,
that of cosines of Gaussian vectors.

A branch with a norm of its own (``normed``) has fixed lengths: the terms in F_ii F_ij, F_ii² and F_ij² of these three
are absent, and its mean products are F_ij [1 - (1-ρ_ij²)(1/2d + 1/2e)], ρ its cosines.

The mean cosine c = tr(uG) to first order in fluctuations fluctuates by Var δc = (4/d) tr(uGuF) + (2/d+2/e) tr(uFuF);
``noise`` gives the matrix Cov(δG, δc)/√Var for each term: what a deviation of c by one standard deviation carries.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

_ROUNDING = 1e-13


class Stream(NamedTuple):
    """Cosines K and mean squares r² of the residual stream."""

    cosines: np.ndarray
    powers: np.ndarray

    @property
    def gram(self) -> np.ndarray:
        """G_ij = r_i r_j K_ij."""
        root = np.sqrt(self.powers)
        return root[:, None] * self.cosines * root


def stream_of(gram: np.ndarray) -> Stream:
    """Cosines and mean squares of a Gram matrix."""
    powers = np.diag(gram).copy()
    root = np.sqrt(powers)
    cosines = np.clip(gram / (root[:, None] * root), -1.0, 1.0)
    np.fill_diagonal(cosines, 1.0)
    return Stream(cosines, powers)


def added(stream: Stream, branch: np.ndarray, skip: float = 1.0) -> Stream:
    """h' = αh + f in infinite width."""
    return stream_of(skip**2 * stream.gram + branch)


def width_correction(
    before: np.ndarray, branch: np.ndarray, d: float, inner: float, normed: bool = False
) -> np.ndarray:
    """What finite width adds to the cosines of h', from the Gram matrices of αh and of f; zero diagonal."""
    after = before + branch
    own, old, new = np.diag(after), np.diag(before), np.diag(branch)
    root = np.sqrt(own)
    cosine = after / (root[:, None] * root)
    alone = 0.0 if normed else 2 / d + 2 / inner  # fluctuations of the branch by itself
    cross = 2 / d * (old[:, None] * branch + new[:, None] * before) + alone * new[:, None] * branch
    half = -0.5 * cross / (own[:, None] * root[:, None] * root)
    both = 4 / d * before * branch + alone * branch**2
    single = (4 / d * old * new + alone * new**2) / own**2
    found = half + half.T + cosine * (0.25 * both / (own[:, None] * own) + 0.375 * (single[:, None] + single))
    if normed:
        shorter = (1 - branch**2 / np.maximum(new[:, None] * new, 1e-300)) * (0.5 / d + 0.5 / inner)
        found -= branch * shorter / (root[:, None] * root)
    np.fill_diagonal(found, 0.0)
    return found


def mean_cosine(cosines: np.ndarray) -> float:
    """The mean over pairs of different tokens."""
    n = len(cosines)
    return float((np.sum(cosines) - np.trace(cosines)) / (n * (n - 1)))


class Sensitivity:
    """δc = Σ u_kl δG_kl at a stream: u = rr^T-weights of the pairs less the change of lengths."""

    def __init__(self, stream: Stream) -> None:
        n = len(stream.powers)
        self.weight = 1 / np.sqrt(stream.powers) / np.sqrt(n * (n - 1))
        rows = np.sum(stream.cosines, axis=1) - 1
        self.diagonal = self.weight**2 * (1 + rows)

    def of(self, change: np.ndarray) -> float:
        """δc of a change of the Gram matrix."""
        return float(self.weight @ change @ self.weight - self.diagonal @ np.diag(change))

    def rounding(self, change: np.ndarray) -> float:
        """What ``of`` may return for a change that leaves c as it is."""
        size = np.abs(change)
        return float(_ROUNDING * (self.weight @ size @ self.weight + np.abs(self.diagonal) @ np.diag(size)))

    def times(self, matrix: np.ndarray) -> np.ndarray:
        """u·matrix."""
        return np.outer(self.weight, self.weight @ matrix) - self.diagonal[:, None] * matrix


def noise(
    stream: Stream, before: np.ndarray, branch: np.ndarray, d: float, inner: float, normed: bool = False
) -> list[np.ndarray]:
    """One matrix for each independent source, at the stream after the branch; none where rounding is all there is.

    Of tokens that are nearly one, c barely moves: what is left of a variance is then the difference of equal numbers.
    """
    u = Sensitivity(stream)
    turned = u.times(branch)
    crossed = before @ turned
    if normed:
        turned = turned - (np.diag(turned) / np.maximum(np.diag(branch), 1e-300))[:, None] * branch
    alone = branch @ turned
    if normed:
        relative = np.diag(alone) / np.maximum(np.diag(branch), 1e-300)
        alone = alone - 0.5 * branch * (relative[:, None] + relative)
    sources = [(2 / d * (crossed + crossed.T)), (2 / d + 2 / inner) * alone]
    found = []
    for source in sources:
        variance = u.of(source)
        if variance > u.rounding(source):
            found.append(0.5 * (source + source.T) / np.sqrt(variance))
    return found


def merged(stream: Stream, modes: list[np.ndarray]) -> np.ndarray:
    """Independent modes as the one mode Cov(δG, δc)/√Var δc."""
    u = Sensitivity(stream)
    sizes = np.array([u.of(m) for m in modes])
    total = float(np.sqrt(np.sum(sizes**2)))
    if total == 0:
        return np.zeros_like(stream.cosines)
    return np.tensordot(sizes / total, np.array(modes), axes=1)
