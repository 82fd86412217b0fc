"""Where causal self-attention with value matrix V leaves its tokens: the atlas of arXiv:2411.04990, Table 1.

Clustering in causal attention masking. λ_max is the eigenvalue of V of largest real part, L its eigenspace. One token
solves x' = P_x V x exactly: x(t) = e^{tV}x_0/|e^{tV}x_0|.
"""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import expm

from pathlines.foundation.errors import finite_array, require


class FinalState(msgspec.Struct, frozen=True):
    """What is expected, how well it is known (theorem, conjecture, observed), and λ_max with its multiplicity."""

    kind: str
    known: str
    eigenvalue: complex
    multiplicity: int


def final_state(value: ArrayLike) -> FinalState:
    """The row of the atlas for V; "not in the atlas" for complex or defective leading eigenvalues."""
    v = finite_array("value", value, ("d", "d")).astype(float)
    require(v.shape[0] == v.shape[1], "value", "be square", v.shape)
    eigenvalues, vectors = np.linalg.eig(v)
    size = max(np.abs(eigenvalues).max(), 1e-300)
    lead = eigenvalues[np.argmax(eigenvalues.real)]
    same = np.abs(eigenvalues - lead) <= 1e-9 * size
    count = int(same.sum())
    unclear = FinalState("not in the atlas", "unknown", complex(lead), count)
    ties = np.abs(eigenvalues.real - lead.real) <= 1e-9 * size
    if abs(lead.imag) > 1e-9 * size or int(ties.sum()) > count:
        return unclear
    if np.linalg.matrix_rank(vectors[:, same], tol=1e-6) < count:
        return unclear
    found = lambda kind, known: FinalState(kind, known, complex(lead.real), count)  # noqa: E731
    if lead.real > 0 and np.allclose(v, lead.real * np.eye(len(v)), atol=1e-12 * size):
        return found("one point, the first token's start", "theorem")
    if lead.real > 0 and count == 1:
        return found("two points ±ξ, the unit eigenvector", "conjecture")
    if lead.real > 0:
        return (
            found("one point, the first token's start projected on L", "conjecture")
            if _splits(v, lead.real, vectors[:, same])
            else unclear
        )
    return found("two clouds around ±ξ" if count == 1 else "a cloud around L", "observed") if lead.real < 0 else unclear


def _splits(v: np.ndarray, lead: float, vectors: np.ndarray) -> bool:
    """Whether V preserves L^⊥ and <Vz,z> < λ|z|² there."""
    basis, _ = np.linalg.qr(vectors.real)
    across = np.eye(len(v)) - basis @ basis.T
    kept = np.linalg.norm(basis.T @ v @ across) <= 1e-9 * np.linalg.norm(v)
    part = across @ (v + v.T) @ across / 2
    return bool(kept and np.linalg.eigvalsh(part).max() < lead)


def single_token(value: ArrayLike, start: Any, t: float) -> np.ndarray:
    """e^{tV}x_0/|e^{tV}x_0|, the first token of every causal system."""
    x = expm(t * np.asarray(value, float)) @ np.asarray(start, float)
    return x / np.linalg.norm(x)
