"""The R^d equation once more, in x instead of z and solved by SciPy: a second opinion without the engine's code.

    x_i' = Σ_j P_ij V x_j,   P_ij = softmax_j <Q x_i, K x_j>,   z_i = e^{-tV} x_i

(The emergence of clusters in self-attention dynamics, arXiv:2305.05465.) What float64 can follow ends at the horizon
where the scores, which grow like e^{2λt}, have no digits after the point; times are cut there.
"""

from __future__ import annotations

from typing import Annotated, Any

import jax
import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.linalg import expm
from scipy.spatial import ConvexHull

from pathlines.claim.clustering.perspective_direct import attention_vectors, trajectory
from pathlines.domain import Euclidean
from pathlines.foundation import vocabulary as of
from pathlines.foundation.setting import Setting, means
from pathlines.limit.clustering.euclidean import horizon, polytope_fixed_set


class Cube(Setting):
    """Tokens drawn uniformly in a cube."""

    n: of.Tokens = 20
    d: of.Dimension = 2
    low: Annotated[float, means("lower end of the cube's sides")] = -5.0
    high: Annotated[float, means("upper end of the cube's sides")] = 5.0
    seed: of.Seed = 0


def cube_start(s: Cube, seed: int | None = None) -> np.ndarray:
    """n uniform tokens of [low, high]^d, with n, d, low, high and (unless given) seed from the setting."""
    key = jax.random.key(s.seed if seed is None else seed)
    return np.asarray(Euclidean(s.d).cube(key, s.n, s.low, s.high))


def softmax(scores: np.ndarray) -> np.ndarray:
    """Row-wise e^{s_ij}/Σ_k e^{s_ik}."""
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def direct_tokens(start: np.ndarray, times: Any, value: np.ndarray, metric: np.ndarray | None = None) -> np.ndarray:
    """x at ``times``, with Q = K = ``metric`` (None: identity)."""
    field = lambda x: attention_vectors(x, 1.0, query=metric, key=metric, value=value)  # noqa: E731
    return trajectory(field, start, times, rtol=1e-11)


def direct_rescaled(start: np.ndarray, times: Any, value: np.ndarray, metric: np.ndarray | None = None) -> np.ndarray:
    """z = e^{-tV} x at ``times``, each no later than the horizon."""
    size = float(np.linalg.norm(start if metric is None else start @ metric.T, axis=1).max())
    reached = np.minimum(np.asarray(times, float), horizon(value, size))
    x = direct_tokens(start, np.unique(reached), value, metric)[np.searchsorted(np.unique(reached), reached)]
    return np.stack([tokens @ expm(-t * value).T for tokens, t in zip(x, reached, strict=True)])


def left_to_go(z: np.ndarray, times: np.ndarray, rate: float = 1.0) -> float:
    """How far a follower still is from its leader: what it went between the last two records, over e^{λΔ} − 1."""
    went = float(np.linalg.norm(z[-1] - z[-2], axis=-1).max())
    return went / np.expm1(rate * (times[-1] - times[-2]))


def groups(points: np.ndarray, distance: float) -> np.ndarray:
    """Labels 1, 2, … of the groups in which one can walk by jumps of at most ``distance``."""
    return fcluster(linkage(points, "single"), distance, "distance")


def limit_points(z: np.ndarray, distance: float, metric: np.ndarray | None = None) -> np.ndarray:
    """For each token the nearest point of S = {x in K: |Ax|² = max_v <Ax, Av>}, K the polytope that late tokens span.

    A leader is the first of its group to arrive and the longest in the metric A; its place stands for the vertex.
    """
    labels = groups(z, distance)
    length = np.linalg.norm(z if metric is None else z @ metric.T, axis=1)
    vertices = np.stack([z[labels == k][np.argmax(length[labels == k])] for k in np.unique(labels)])
    fixed = polytope_fixed_set(vertices, metric)
    return fixed[np.argmin(np.linalg.norm(z[:, None] - fixed[None], axis=-1), axis=1)]


def outline(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The closed boundary of the convex hull of the first two coordinates, to draw."""
    flat = points[:, :2]
    around = flat[ConvexHull(flat).vertices]
    closed = np.vstack([around, around[:1]])
    return closed[:, 0], closed[:, 1]
