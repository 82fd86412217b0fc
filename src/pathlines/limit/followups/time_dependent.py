"""Multi-head attention as a time-dependent gradient flow, in NumPy: paths, ω-limits, their linearisation.

v_i = P_{x_i} Σ_h n⁻¹Σ_j A_h(t)x_j e^{⟨x_i, A_h(t)x_j⟩} on the sphere, A_h symmetric, which climbs
E_t = (2n²)⁻¹ Σ_h Σ_ij e^{⟨x_i, A_h x_j⟩}. Multi-Headed Transformer Architectures as Time-dependent Wasserstein Gradient
Flows, arXiv:2605.18870; the convention is ours, the rates are derived. ``heads`` is a function of t with values
(H, d, d).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import solve_ivp

from pathlines.foundation.errors import PathlinesError, finite_array
from pathlines.foundation.numbers import real_array
from pathlines.foundation.papers.followups import TIME_DEPENDENT

SOURCES = (TIME_DEPENDENT,)
Path = Callable[[float], np.ndarray]


def multi_head_field(heads: ArrayLike, tokens: ArrayLike) -> np.ndarray:
    """v of all tokens."""
    a, x = np.asarray(heads, float), np.asarray(tokens, float)
    heard = np.einsum("hij,nj->hni", a, x)
    pull = np.einsum("hnm,hmi->ni", np.exp(np.einsum("ni,hmi->hnm", x, heard)), heard) / len(x)
    return pull - np.sum(pull * x, axis=1, keepdims=True) * x


def multi_head_energy(heads: ArrayLike, tokens: ArrayLike) -> float:
    """E = (2n²)⁻¹ Σ_h Σ_ij e^{⟨x_i, A_h x_j⟩}."""
    a, x = np.asarray(heads, float), np.asarray(tokens, float)
    return float(np.exp(np.einsum("ni,hij,mj->hnm", x, a, x)).sum() / (2 * len(x) ** 2))


def multi_head_path(heads: Path, tokens: ArrayLike, times: ArrayLike, kinks: ArrayLike = ()) -> np.ndarray:
    """Tokens at increasing times, (times, n, d), by DOP853 at 1e-11, restarted where the weights have kinks."""
    x = finite_array("tokens", tokens, ("n", "d")).astype(float)
    at = np.atleast_1d(real_array("times", times, 0.0))
    stops = np.union1d(np.union1d(at, [0.0]), [k for k in np.ravel(kinks) if 0 < k < at[-1]])
    found, state = {0.0: x}, x.ravel()
    field = lambda t, y: multi_head_field(heads(t), y.reshape(x.shape)).ravel()  # noqa: E731
    edges = [0.0, *(k for k in stops if k in set(np.ravel(kinks))), float(at[-1])]
    for begin, end in pairwise(edges):
        inside = [t for t in stops if begin < t <= end]
        if not inside:
            continue
        solution = solve_ivp(field, (begin, end), state, "DOP853", t_eval=inside, rtol=1e-11, atol=1e-13)
        if not solution.success:
            raise PathlinesError(f"The tokens could not be followed: {solution.message}")
        found |= {t: y.reshape(x.shape) for t, y in zip(inside, solution.y.T, strict=True)}
        state = solution.y[:, -1]
    return np.array([found[t] for t in at])


def tangent_jacobian(heads: ArrayLike, tokens: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """(J, frame): the linearisation in an orthonormal frame (n(d-1), n, d) of the tangent spaces, by differences."""
    x = np.asarray(tokens, float)
    rows = []
    for i, point in enumerate(x):
        for direction in np.linalg.svd(point[None])[2][1:]:
            rows.append(np.zeros_like(x))
            rows[-1][i] = direction
    frame, step = np.array(rows), 1e-6

    def field(y: np.ndarray) -> np.ndarray:
        return multi_head_field(heads, y / np.linalg.norm(y, axis=1, keepdims=True))

    columns = [(field(x + step * f) - field(x - step * f)) / (2 * step) for f in frame]
    flat = frame.reshape(len(frame), -1)
    return flat @ np.array([c.ravel() for c in columns]).T, frame


def omega_limit(heads: ArrayLike, tokens: ArrayLike, until: float = 200.0) -> np.ndarray:
    """Where the flow of constant heads takes these tokens."""
    constant = np.asarray(heads, float)
    return multi_head_path(lambda t: constant, tokens, [until])[0]


def slowest_rate(heads: ArrayLike, tokens: ArrayLike) -> float:
    """Decay of the slowest mode at a stationary point; J is symmetric up to the metric, so rates are real."""
    return float(-np.linalg.eigvals(tangent_jacobian(heads, tokens)[0]).real.max())


def settling_speeds(
    base: ArrayLike, swing: ArrayLike, decay: float, tokens: ArrayLike, limit: ArrayLike, after: ArrayLike
) -> np.ndarray:
    """max_i |v_i| at the times ``after`` one near the end, by the linearisation; v there is that of A_h + B_h, κ given.

    v' = Jv - κ f e^{-κt} about the ω-limit: v = F e^{-κt} + Σ_k c_k w_k e^{-μ_k t}, F = -κ(-κ - J)⁻¹f, c_k the
    coefficients of v(0) - F in eigenvectors w_k of J. Which rate is seen, and when, depends on the c_k.
    """
    a, b, x = np.asarray(base, float), np.asarray(swing, float), np.asarray(limit, float)
    jacobian, frame = tangent_jacobian(a, x)
    flat, step = frame.reshape(len(frame), -1), 1e-6
    force = flat @ ((multi_head_field(a + step * b, x) - multi_head_field(a - step * b, x)) / (2 * step)).ravel()
    driven = -decay * np.linalg.solve(-decay * np.eye(len(force)) - jacobian, force)
    rates, modes = np.linalg.eig(jacobian)
    free = np.linalg.solve(modes, flat @ multi_head_field(a + b, tokens).ravel() - driven)
    at = np.ravel(np.asarray(after, float))[:, None]
    moves = ((free * np.exp(at * rates)) @ modes.T).real + driven * np.exp(-decay * at)
    return np.linalg.norm((moves @ flat).reshape(len(at), *x.shape), axis=2).max(axis=1)


def linear_response(base: ArrayLike, swing: ArrayLike, frequency: float, tokens: ArrayLike) -> float:
    """Root mean square of |v| over a period and all tokens together, over ε, at A_h + ε B_h cos ωt, ε → 0.

    y' = J y + ε f cos ωt about the ω-limit: v = Re[iω (iω - J)⁻¹ f e^{iωt}] ε.
    """
    a, b = np.asarray(base, float), np.asarray(swing, float)
    jacobian, frame = tangent_jacobian(a, tokens)
    step = 1e-6
    force = (multi_head_field(a + step * b, tokens) - multi_head_field(a - step * b, tokens)) / (2 * step)
    f = frame.reshape(len(frame), -1) @ force.ravel()
    amplitude: Any = 1j * frequency * np.linalg.solve(1j * frequency * np.eye(len(f)) - jacobian, f)
    return float(np.sqrt(0.5 * np.sum(np.abs(amplitude) ** 2)))
