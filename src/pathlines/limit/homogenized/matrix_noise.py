"""Chain and SDE of Gaussian values with a mean, driven by one matrix Brownian motion: their difference, in NumPy.

For V = V̄ + σ_V N and fixed scores A the homogenized SDE of *Homogenized Transformers* (arXiv:2604.01978) is

    dX_i = D_i dt + √(η/H) σ_V P_i dW m(x_i),     m(x_i) = Σ_k π_ik x_k,

W a d × d matrix of Brownian motions, and a layer of the chain is exactly N(x + ηV̄m + √(η/H) σ_V ΔW m) with the
increment ΔW of the same W over time η (derived). Path by path they differ by O(η^{3/2}), noise of size √η frozen for a
time η, so that a mean difference of O(η²) needs far fewer paths than two separate means.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pathlines.foundation.errors import finite_array, finite_number, positive_integer, require
from pathlines.limit.homogenized.finite_law import FiniteLawSDE, HeadFields, flowed, tangent, unit

BLOCK = 2000


class CoupledEnds(NamedTuple):
    """Tokens of the chain and of the SDE at the end, (runs, n, d) each, run by run from the same W."""

    chain: np.ndarray
    sde: np.ndarray


class MatrixNoise:
    """The law V = V̄ + σ_V N with scores A, inverse temperature β, and the chain of step η with H heads."""

    def __init__(
        self, value: np.ndarray, score: np.ndarray, sigma_v: float, beta: float, step: float, heads: int = 1
    ) -> None:
        value = finite_array("value", value, ("d", "d")).astype(float)
        self.mean = FiniteLawSDE(
            values=value[None],
            scores=np.asarray(score)[None],
            probabilities=np.ones(1),
            beta=beta,
            step=step,
            heads=heads,
        )
        unit_value = np.eye(len(value))[None]
        self._attention = FiniteLawSDE(
            values=unit_value, scores=np.asarray(score)[None], probabilities=np.ones(1), beta=beta, step=step
        )
        self.scale = finite_number("sigma_v", sigma_v, 0.0) * np.sqrt(self.mean.step / self.mean.heads)

    def attended(self, x: np.ndarray) -> np.ndarray:
        """m(x_i), (n, d, runs)."""
        return HeadFields(self._attention, x).fields[0]

    def shaken(self, x: np.ndarray, change: np.ndarray) -> np.ndarray:
        """√(η/H) σ_V ΔW m(x_i)."""
        return self.scale * np.einsum("edr,ndr->ner", change, self.attended(x))

    def layer(self, x: np.ndarray, change: np.ndarray) -> np.ndarray:
        """N(x + ηV̄m + √(η/H) σ_V ΔW m)."""
        return unit(x + self.mean.step * HeadFields(self.mean, x).fields[0] + self.shaken(x, change))

    def advanced(self, x: np.ndarray, change: np.ndarray, time: float) -> np.ndarray:
        """The SDE over ``time``: half a flow of D, noise, half a flow of D."""
        y = flowed(self.mean.drift, x, time / 2)
        return flowed(self.mean.drift, unit(y + tangent(y, self.shaken(y, change))), time / 2)

    def ends(self, start: np.ndarray, depth: int, parts: int, runs: int, seed: int) -> CoupledEnds:
        """Both after ``depth`` layers from ``start`` (n, d), each layer cut in ``parts`` steps of the SDE."""
        start = unit(finite_array("start", start, ("n", "d")).astype(float))
        depth, parts, runs = (positive_integer(*a) for a in (("depth", depth), ("parts", parts), ("runs", runs)))
        require(start.shape[1] == self.mean.values.shape[-1], "start", "have the dimension of the law", start.shape)
        rng = np.random.default_rng(seed)
        blocks = [self._block(start, depth, parts, min(BLOCK, runs - k), rng) for k in range(0, runs, BLOCK)]
        chain, sde = (np.concatenate([np.moveaxis(b[k], -1, 0) for b in blocks]) for k in (0, 1))
        return CoupledEnds(chain, sde)

    def _block(
        self, start: np.ndarray, depth: int, parts: int, runs: int, rng: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        d, time = start.shape[1], self.mean.step / parts
        x = y = np.repeat(start[..., None], runs, axis=-1)
        for _ in range(depth):
            total = np.zeros((d, d, runs))
            for _ in range(parts):
                change = np.sqrt(time) * rng.standard_normal((d, d, runs))
                y = self.advanced(y, change, time)
                total += change
            x = self.layer(x, total)
        return x, y
