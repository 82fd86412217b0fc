"""Mixtures of Gaussians as targets: densities, conditionals and exact samples."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import logsumexp, ndtr

from pathlines.foundation.errors import ArgumentError, finite_array, positive_integer
from pathlines.transport.euclid.quantile import LineLaw
from pathlines.transport.schedule import checked_size


class GaussianMixture:
    """Σ_k p_k N(m_k, Σ_k) in R^d.

    Args:
        weights: p_k > 0, which sum to 1.
        means: m_k, (k, d).
        covariances: Σ_k, (k, d, d), positive definite.
    """

    def __init__(self, weights: Any, means: Any, covariances: Any) -> None:
        self.weights = finite_array("weights", weights, ("k",)).astype(float)
        self.means = finite_array("means", means, (len(self.weights), "d")).astype(float)
        self.d = self.means.shape[1]
        shape = (len(self.weights), self.d, self.d)
        self.covariances = finite_array("covariances", covariances, shape).astype(float)
        if (self.weights <= 0).any() or abs(self.weights.sum() - 1) > 1e-9:
            raise ArgumentError(
                f"Argument `weights` must be positive and sum to 1, but sums to {self.weights.sum():.9g}."
            )
        if np.abs(self.covariances - self.covariances.transpose(0, 2, 1)).max() > 1e-9 * np.abs(self.covariances).max():
            raise ArgumentError("Argument `covariances` must be symmetric matrices, but one is not.")
        try:
            self.roots = np.linalg.cholesky(self.covariances)
        except np.linalg.LinAlgError:
            raise ArgumentError("Argument `covariances` must be positive definite matrices, but one is not.") from None

    def log_prob(self, y: Any) -> np.ndarray:
        """Log-density at rows of y."""
        points = np.asarray(y, float)[:, None] - self.means
        white = np.einsum("kij,nkj->nki", np.linalg.inv(self.roots), points)
        size = np.log(np.diagonal(self.roots, axis1=1, axis2=2)).sum(1) + self.d / 2 * np.log(2 * np.pi)
        return logsumexp(-0.5 * np.sum(white**2, axis=2) - size, axis=1, b=self.weights)

    def sample(self, n: int, seed: int = 0) -> np.ndarray:
        """n exact draws."""
        rng = np.random.default_rng(positive_integer("seed", seed, 0))
        k = rng.choice(len(self.weights), size=checked_size(n, self.d), p=self.weights)
        return self.means[k] + np.einsum("nij,nj->ni", self.roots[k], rng.standard_normal((n, self.d)))

    def marginal(self, j: int) -> LineLaw:
        """The law of coordinate j + 1."""
        return _line(self.weights, self.means[:, j], np.sqrt(self.covariances[:, j, j]))

    def line(self, given: Any = ()) -> LineLaw:
        """The law of coordinate j + 1 given the first j (``given``); without any, the first marginal."""
        x = finite_array("given", given, ("j",)).astype(float) if np.size(given) else np.zeros(0)
        j = len(x)
        gains = np.linalg.solve(self.covariances[:, :j, :j], self.covariances[:, :j, j][..., None])[..., 0]
        means = self.means[:, j] + np.sum(gains * (x - self.means[:, :j]), axis=1)
        spread = np.sqrt(self.covariances[:, j, j] - np.sum(gains * self.covariances[:, :j, j], axis=1))
        weights = self.weights
        if j:
            first = type(self)(weights, self.means[:, :j], self.covariances[:, :j, :j])
            likely = [
                GaussianMixture([1.0], m[None], c[None]).log_prob(x[None])[0]
                for m, c in zip(first.means, first.covariances)
            ]
            logs = np.log(weights) + np.array(likely)
            weights = np.exp(logs - logsumexp(logs))
        return _line(weights, means, spread)


def _line(weights: np.ndarray, means: np.ndarray, deviations: np.ndarray) -> LineLaw:
    def scores(y: Any) -> np.ndarray:
        return (np.asarray(y, float)[..., None] - means) / deviations

    def logpdf(y: Any) -> np.ndarray:
        with np.errstate(over="ignore"):
            return logsumexp(-0.5 * scores(y) ** 2 - np.log(deviations) - 0.5 * np.log(2 * np.pi), axis=-1, b=weights)

    return LineLaw(logpdf, lambda y: ndtr(scores(y)) @ weights, lambda y: ndtr(-scores(y)) @ weights)
