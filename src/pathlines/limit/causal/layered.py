"""The layered mean field of causal attention, and its 1/N correlations, in Fourier modes.

Kinetic theory for Transformers and the lost-in-the-middle phenomenon, arXiv:2605.09213. The position σ in (0,1] is a
label. With f̂(σ,n) = E e^{-inθ} and F_m(σ) = ∫_0^σ k_λ(σ,σ') f̂(σ',m) dσ' (derived from the paper's equations)

    ∂_t f̂_n = n Σ_m m I_m(β) F_m f̂_{n-m},      ∂_t Â_n = n Σ_m m I_m F_m Â_{n-m},
    ∂_t Ĉ_n = n Σ_m m I_m [ f̂_{n-m} (∫_{σ0}^σ k_λ Ĉ_m dσ' + k_λ(σ,σ0) Â_m(σ0)) + Ĉ_{n-m} F_m ],

A the covariance of a token with a function φ of its own start, C/N that with a function of the start at σ0 < σ. If the
start does not depend on σ, neither mask nor ALiBi shows in f. Cells in σ carry exactly integrated weights of k_λ, so
that errors are second order in their width; time by Runge-Kutta of order four. O(cells² K + cells K²) per step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from pathlines.foundation.errors import finite_number, positive_integer, require
from pathlines.limit.causal.rates import modes_needed
from pathlines.limit.causal.response import positional_kernel
from pathlines.numerics.runge_kutta import State, rk4_step


class Layers(NamedTuple):
    """Cells of positions (``edges``, midpoints ``sigma``), modes n = -K … K, and ∫ k_λ over the cells below each σ."""

    edges: np.ndarray
    sigma: np.ndarray
    modes: np.ndarray
    weights: np.ndarray
    kernel: np.ndarray
    slope: float


def layer_grid(beta: float, slope: float, cells: int = 200, modes: int | None = None) -> Layers:
    """The grid; K = ``modes`` is what w_β needs, plus what products of modes bring in."""
    beta, slope = finite_number("beta", beta, 0.0, open_low=True), finite_number("slope", slope)
    count = positive_integer("cells", cells, 2)
    k = 2 * modes_needed(beta) if modes is None else positive_integer("modes", modes)
    edges = np.linspace(0, 1, count + 1)
    sigma = (edges[1:] + edges[:-1]) / 2
    n = np.arange(-k, k + 1)
    # ∫_a^b k_λ(σ,σ')dσ' is a difference of (e^{λσ'}-1)/(e^{λσ}-1) at min(σ', σ)
    below = np.minimum(edges[None], sigma[:, None])
    share = _share(below, sigma[:, None], slope)
    return Layers(edges, sigma, n, np.diff(share, axis=1), n * special.iv(np.abs(n), beta), slope)


def _share(source: np.ndarray, sigma: np.ndarray, slope: float) -> np.ndarray:
    """∫_0^{source} k_λ(σ,σ') dσ'."""
    if slope == 0:
        return source / sigma
    return np.exp(slope * (source - sigma)) * np.expm1(-slope * source) / np.expm1(-slope * sigma)


def _convolved(kernel: np.ndarray, n: np.ndarray, field: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """n Σ_m (m I_m) field_m moved_{n-m}, row by row."""
    k = len(n) // 2
    coupled = kernel * field
    out = np.zeros_like(moved)
    for row in range(len(moved)):
        out[row] = np.convolve(coupled[row], moved[row])[k : k + len(n)]
    return n * out


def von_mises(kappa: float, modes: np.ndarray) -> np.ndarray:
    """f̂(n) = I_n(κ)/I_0(κ) of the density e^{κ cos θ}/I_0(κ)."""
    return special.ive(np.abs(modes), kappa) / special.ive(0, kappa)


def layered_mean_field(grid: Layers, start: Any, t: float, steps: int = 100) -> np.ndarray:
    """f̂(σ, n) at depth t from f̂ at 0, shape (cells, 2K+1) or one row for all positions."""
    field = lambda f: grid.weights @ f  # noqa: E731
    drift = lambda f: (_convolved(grid.kernel, grid.modes, field(f), f),)  # noqa: E731
    return _stepped(drift, (_rows(grid, start),), t, steps)[0]


class Correlations(NamedTuple):
    """f̂, Â and Ĉ at depth t, on the cells of the grid; C is zero below the source."""

    mean: np.ndarray
    own: np.ndarray
    other: np.ndarray


def correlations(grid: Layers, start: Any, phi: Any, source: float, t: float, steps: int = 100) -> Correlations:
    """(f̂, Â_φ, Ĉ_φ) for a test function with Fourier coefficients ``phi`` and the source at σ0, an edge of a cell.

    N Cov(e^{-inθ_j(t)}, φ(θ_{j0}(0))) tends to Ĉ(t, σ, n; σ0).
    """
    require(0 < source < 1, "source", "be between 0 and 1", source)
    first = int(np.argmin(np.abs(grid.edges - source)))
    at = float(grid.edges[first])
    f0, n = _rows(grid, start), grid.modes
    k = len(n) // 2
    phi = np.asarray(phi, complex)
    own0 = (
        np.stack([np.convolve(row, phi)[k : k + len(n)] for row in f0])
        - f0 * np.einsum("cn,n->c", f0, phi[::-1])[:, None]
    )
    beyond = np.arange(len(grid.sigma)) >= first
    weights = np.where(beyond[None] & beyond[:, None], grid.weights, 0.0)
    direct = np.where(beyond, positional_kernel(np.maximum(grid.sigma, at), at, grid.slope), 0.0)

    def drift(f: np.ndarray, a: np.ndarray, c: np.ndarray) -> State:
        field = grid.weights @ f
        at_source = (a[first - 1] + a[first]) / 2 if first else a[0]
        pulled = weights @ c + direct[:, None] * at_source
        moved = _convolved(grid.kernel, n, pulled, f) + _convolved(grid.kernel, n, field, c)
        return _convolved(grid.kernel, n, field, f), _convolved(grid.kernel, n, field, a), moved

    return Correlations(*_stepped(drift, (f0, own0, np.zeros_like(f0)), t, steps))


def _rows(grid: Layers, start: Any) -> np.ndarray:
    shape = (len(grid.sigma), len(grid.modes))
    rows = np.asarray(start, complex)
    require(rows.shape in (shape, shape[1:]), "start", f"have shape {shape} or {shape[1:]}", rows.shape)
    return np.array(np.broadcast_to(rows, shape))


def _stepped(drift: Callable[..., State], state: State, t: float, steps: int) -> State:
    t, count = finite_number("t", t, 0.0), positive_integer("steps", steps)
    for _ in range(count):
        state = rk4_step(drift, state, t / count)
    return state
