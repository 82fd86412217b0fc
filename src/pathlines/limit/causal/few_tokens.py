"""Two and three tokens exactly: N E cos n(θ_N(t) - θ_i(0)) by quadrature over uniform starts.

The decoder of Kinetic theory for Transformers and the lost-in-the-middle phenomenon, arXiv:2605.09213: token 1 rests,
so that N = 2 is one equation D' = w_β'(D) and N = 3 two; the trapezoid rule over the starts converges faster than any
power.
"""

from __future__ import annotations

import numpy as np
from scipy import integrate

from pathlines.foundation.errors import finite_number, positive_integer, require

MOST_NODES = {2: 1 << 14, 3: 512}
"""Nodes per token beyond which the trapezoid rule gives up: tokens have merged, and their ends are steps."""


def few_token_influence(
    n: int, beta: float, t: float, modes: int, *, slope: float = 0.0, nodes: int | None = None
) -> np.ndarray:
    """N E cos m(θ_N(t) - θ_i(0)), m = 1 … modes, i = 1 … N-1, for N = 2 or 3. Shape (modes, N-1)."""
    require(n in (2, 3), "n", "be 2 or 3", n)
    beta, t = finite_number("beta", beta, 0.0, open_low=True), finite_number("t", t, 0.0)
    count, share = positive_integer("modes", modes), float(np.exp(-finite_number("slope", slope) / n))
    if nodes is not None:
        return _on_grid(n, beta, t, count, share, positive_integer("nodes", nodes))
    size = 32
    found = _on_grid(n, beta, t, count, share, size)
    while size < MOST_NODES[n]:
        size *= 2
        found, before = _on_grid(n, beta, t, count, share, size), found
        # the error squares when the nodes are doubled
        if np.abs(found - before).max() < 1e-6:
            break
    return found


def _on_grid(n: int, beta: float, t: float, modes: int, share: float, count: int) -> np.ndarray:
    starts = np.stack(np.meshgrid(*[2 * np.pi * np.arange(count) / count] * (n - 1), indexing="ij"))
    ends = _ends(starts, beta, t, share)
    sources = np.concatenate([np.zeros_like(starts[:1]), starts[:-1]])
    m = np.arange(1, modes + 1)
    cosines = np.cos(m[:, None, ...].reshape(-1, 1, *[1] * (n - 1)) * (ends[-1] - sources))
    return n * cosines.mean(axis=tuple(range(2, n + 1)))


def _ends(starts: np.ndarray, beta: float, t: float, share: float) -> np.ndarray:
    """θ_2 … θ_N at t, with θ_1 = 0 and the weights 1, e^{-λ/N} of the last and the last but one."""
    pull = lambda x: -beta * np.sin(x) * np.exp(beta * np.cos(x))  # noqa: E731

    def drift(_: float, y: np.ndarray) -> np.ndarray:
        theta = y.reshape(starts.shape)
        speeds = [pull(theta[0])]
        if len(theta) == 2:
            speeds.append((pull(theta[1] - theta[0]) + share * pull(theta[1])) / (1 + share))
        return np.stack(speeds).ravel()

    found = integrate.solve_ivp(drift, (0, t), starts.ravel(), method="DOP853", rtol=1e-12, atol=1e-12)
    return found.y[:, -1].reshape(starts.shape)
