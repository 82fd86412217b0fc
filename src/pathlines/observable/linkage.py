"""Single linkage of many points without n × n numbers: cells in few dimensions, sweeps over blocks of rows in many.

SciPy's graphs and trees are imported where they are used: a third of the time that a small run spends on imports.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from pathlines.model.base import in_rows

CELL_DIMENSIONS = 3
"""Up to here a cell has few neighbours (62 pairs of directions for d = 3, 312 for d = 4)."""
PAIRS_AT_ONCE = 1 << 20
"""Pairs of points compared in one go; two cells with more than that are compared by a tree."""


def component_labels(adjacency: Bool[Array, "n n"]) -> Int[Array, " n"]:
    """The smallest index of each token's connected component, by minimum propagation with pointer jumping."""
    n = adjacency.shape[0]
    return _propagated(n, lambda labels: jnp.min(jnp.where(adjacency, labels[None, :], n), axis=1))


def linked_labels(x: Float[Array, "n d"], delta: Array | float) -> Int[Array, " n"]:
    """``component_labels`` of the graph ½|x_i - x_j|² ≤ δ, many points: O(n log n) for d ≤ 3, else O(n²d) per sweep."""
    n, d = x.shape
    if d <= CELL_DIMENSIONS:
        shape = jax.ShapeDtypeStruct((n,), jnp.result_type(int))
        call = lambda x, delta: linked_by_cells(np.asarray(x, float), float(delta)).astype(shape.dtype)  # noqa: E731
        return jax.pure_callback(call, shape, x, jnp.asarray(delta, x.dtype), vmap_method="sequential")

    def lowest(labels: Array) -> Array:
        near = lambda i: jnp.sum((x - x[i]) ** 2, axis=1) <= 2 * jnp.asarray(delta)  # noqa: E731
        return in_rows(lambda i: jnp.min(jnp.where(near(i), labels, n)), n)

    return _propagated(n, lowest)


def _propagated(n: int, lowest: Any) -> Int[Array, " n"]:
    """Labels that no longer change when each token takes the ``lowest`` label of its neighbours."""

    def spread(state: tuple[Array, Array]) -> tuple[Array, Array]:
        labels, _ = state
        new = jnp.minimum(labels, lowest(labels))
        return new[new], jnp.any(new != labels)

    labels, _ = jax.lax.while_loop(lambda s: s[1], spread, (jnp.arange(n), jnp.asarray(True)))
    return labels


def linked_by_cells(x: np.ndarray, delta: float) -> np.ndarray:
    """The smallest index in each point's component of the graph ½|x_i - x_j|² ≤ δ.

    Points are sorted into cells of diameter below √(2δ): those of one cell are linked. One point a cell links most
    cells; what is left are pairs of near cells of different components, whose points are compared.
    """
    from scipy.spatial import cKDTree

    n = len(x)
    if delta < 0 or not np.isfinite(x).all():
        return np.arange(n)
    cells, cell_of = _cells(x, math.sqrt(2 * delta))
    order = np.argsort(cell_of, kind="stable")
    size = np.bincount(cell_of)
    first = np.cumsum(size) - size
    tree = cKDTree(x[order[first]])
    groups = _joined(tree.query_pairs(math.sqrt(2 * delta), output_type="ndarray"), np.arange(len(cells)))
    for a, b in _neighbours(cells) if delta > 0 else ():
        if groups.max() == 0:
            break
        apart = groups[a] != groups[b]
        a, b = a[apart], b[apart]
        touch = _touching(x, order, first, size, a, b, delta)
        groups = _joined(np.stack([a[touch], b[touch]], axis=1), groups)
    lowest = np.full(groups.max() + 1, n)
    np.minimum.at(lowest, groups[cell_of], np.arange(n))
    return lowest[groups[cell_of]]


def _cells(x: np.ndarray, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """(integer coordinates of the cells in use, the cell of each point); for reach 0 a cell is one point."""
    side = reach * (1 - 1e-9) / math.sqrt(x.shape[1])
    places = np.floor((x - x.min(axis=0)) / side).astype(np.int64) if reach > 0 else x
    cells, cell_of = np.unique(places, axis=0, return_inverse=True)
    return cells, cell_of.ravel()


def _joined(pairs: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The group of each cell after the groups of each pair of cells are joined."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    if len(pairs) == 0:
        return groups
    count = int(groups.max()) + 1
    ends = groups[pairs]
    graph = coo_array((np.ones(len(ends), bool), (ends[:, 0], ends[:, 1])), shape=(count, count))
    return connected_components(graph, directed=False)[1][groups]


def _neighbours(cells: np.ndarray) -> Any:
    """Pairs of cells (a, b) that may hold points within reach of each other, direction by direction, the nearest first.

    Cells at the offset o have points no nearer than √Σ max(|o_k| - 1, 0)² sides, and the reach is √d sides.
    """
    d = cells.shape[1]
    far = math.ceil(math.sqrt(d)) + 1
    steps = [o for o in itertools.product(range(-far, far + 1), repeat=d) if o > (0,) * d]
    nearest = {o: sum(max(abs(k) - 1, 0) ** 2 for k in o) for o in steps}
    width = cells.max(axis=0) + 2 * far + 1
    strides = np.append(np.cumprod(width[:0:-1])[::-1], 1)
    keys = (cells + far) @ strides
    order = np.argsort(keys)
    ranked = keys[order]
    for offset in sorted((o for o in steps if nearest[o] <= d), key=lambda o: sum(k * k for k in o)):
        wanted = keys + np.dot(offset, strides)
        at = np.minimum(np.searchsorted(ranked, wanted), len(keys) - 1)
        a = np.flatnonzero(ranked[at] == wanted)
        yield a, order[at[a]]


def _touching(
    x: np.ndarray, order: np.ndarray, first: np.ndarray, size: np.ndarray, a: np.ndarray, b: np.ndarray, delta: float
) -> np.ndarray:
    """Whether some point of cell a_k and some point of cell b_k have ½|x - y|² ≤ δ."""
    from scipy.spatial import cKDTree

    touch = np.zeros(len(a), bool)
    work = size[a] * size[b]
    for k in np.flatnonzero(work > PAIRS_AT_ONCE):
        mine, other = (x[order[first[c] : first[c] + size[c]]] for c in (a[k], b[k]))
        touch[k] = np.min(cKDTree(mine).query(other)[0]) ** 2 <= 2 * delta
    small = np.flatnonzero(work <= PAIRS_AT_ONCE)
    parts = np.split(small, np.flatnonzero(np.diff(np.cumsum(work[small]) // PAIRS_AT_ONCE)) + 1)
    for part in (p for p in parts if len(p)):
        begin = np.cumsum(work[part]) - work[part]
        pair = np.repeat(np.arange(len(part)), work[part])
        number = np.arange(len(pair)) - begin[pair]
        i, j = number // size[b[part]][pair], number % size[b[part]][pair]
        difference = x[order[first[a[part]][pair] + i]] - x[order[first[b[part]][pair] + j]]
        touch[part] = np.minimum.reduceat(0.5 * np.sum(difference**2, axis=1), begin) <= delta
    return touch
