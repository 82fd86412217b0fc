"""Runs of pieces that share their directions, evaluated as one piecewise linear map.

Pieces with w ∥ u and a ∥ v (unit vectors u, v) compose to x → x + u h(v·x), h piecewise linear. A run of K pieces
then costs O(n log K) instead of O(nK): one binary search for each point. Runs of dilations (u = v), of shears (u ⟂ v)
and anything between are the same case. The list of pieces stays the truth; this is how it is evaluated.
"""

from __future__ import annotations

from functools import reduce

import msgspec
import numpy as np

from pathlines.transport.euclid.piece import phi1

DIGITS = 14
"""Decimals to which directions must agree to be one; those of one construction differ by rounding only."""
CHUNK = 1 << 15
"""Points that pass through all runs together, so that they stay in the cache."""


class RidgeMap(msgspec.Struct, frozen=True):
    """x → x + u h(σ), σ = v·x. Segment j of h lies left of knot j; ``anchors`` and ``values`` are a point on it.

    ``slopes`` is h', ``logs`` the logarithm of dσ'/dσ = 1 + (u·v) h', which is the log-determinant.
    """

    u: np.ndarray
    v: np.ndarray
    knots: np.ndarray
    anchors: np.ndarray
    values: np.ndarray
    slopes: np.ndarray
    logs: np.ndarray

    def height(self, sigma: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """h(σ) and the segments of the points."""
        j = np.searchsorted(self.knots, sigma, side="right")
        return self.values[j] + self.slopes[j] * (sigma - self.anchors[j]), j

    def inverse(self) -> RidgeMap:
        """x → x - u h(σ), σ found from σ' = σ + (u·v) h(σ): again of this form."""
        c = float(self.u @ self.v)
        images = self.anchors + c * self.values
        knots = images[1:]
        return RidgeMap(self.u, self.v, knots, images, -self.values, -self.slopes * np.exp(-self.logs), -self.logs)


def _after(one: RidgeMap, two: RidgeMap) -> RidgeMap:
    """``two`` after ``one``, on the same directions: knots of the second are carried back through the first."""
    c = float(one.u @ one.v)
    images = one.knots + c * one.values[1:]
    j = np.searchsorted(images, two.knots, side="right")
    anchor = one.anchors[j] + c * one.values[j]
    back = one.anchors[j] + (two.knots - anchor) * np.exp(-one.logs[j])
    knots = np.concatenate([one.knots, back])
    order = np.argsort(knots, kind="stable")
    knots = knots[order]
    first = np.searchsorted(one.knots, knots, side="right")
    second = np.searchsorted(back, knots, side="right")
    first = np.concatenate([[0], first])
    second = np.concatenate([[0], second])
    anchors = np.concatenate([knots[:1], knots])
    inner = one.values[first] + one.slopes[first] * (anchors - one.anchors[first])
    where = anchors + c * inner
    values = inner + two.values[second] + two.slopes[second] * (where - two.anchors[second])
    slopes = one.slopes[first] + two.slopes[second] * np.exp(one.logs[first])
    return RidgeMap(one.u, one.v, knots, anchors, values, slopes, one.logs[first] + two.logs[second])


def _hinge(u: np.ndarray, v: np.ndarray, amount: float, slope: float, b: float, t: float) -> RidgeMap:
    """One piece with w = amount·u and a = slope·v; slope 0 is the translation by u·amount·b₊t."""
    if slope == 0:
        zero = np.zeros(2)
        return RidgeMap(u, v, np.zeros(1), zero, np.full(2, amount * max(b, 0.0) * t), zero, zero)
    rate = amount * slope * float(u @ v) * t
    gain = amount * slope * t * float(phi1(rate))
    hinge, on = -b / slope, (0, 1) if slope > 0 else (1, 0)
    return RidgeMap(
        u, v, np.array([hinge]), np.full(2, hinge), np.zeros(2), gain * np.array(on, float), rate * np.array(on, float)
    )


def _composed(maps: list[RidgeMap]) -> RidgeMap:
    """All of them in order, in O(K log K): neighbours first, so that every level halves their number."""
    while len(maps) > 1:
        pairs = [_after(maps[i], maps[i + 1]) for i in range(0, len(maps) - 1, 2)]
        maps = pairs + maps[len(maps) - len(maps) % 2 :]
    return maps[0]


def fused_runs(w: np.ndarray, a: np.ndarray, b: np.ndarray, t: np.ndarray) -> list[RidgeMap]:
    """The runs of a schedule, each as one map, in order; pieces that move nothing are left out."""
    moving = (w != 0).any(1) & (t > 0) & ((a != 0).any(1) | (b > 0))
    w, a, b, t = w[moving], a[moving], b[moving], t[moving]
    (u, amounts, us), (v, slopes, vs) = _directions(w), _directions(a)
    runs: list[list[int]] = []
    current = (-1, -1)
    for i in range(len(w)):
        across = vs[i] if slopes[i] else -1
        joins = us[i] == current[0] and (across == current[1] or -1 in (across, current[1]))
        if not joins:
            runs.append([])
            current = (us[i], -1)
        current = (us[i], across if across >= 0 else current[1])
        runs[-1].append(i)
    found = []
    for run in runs:
        steep = [i for i in run if slopes[i]]
        one, other = u[run[0]], v[steep[0]] if steep else u[run[0]]
        found.append(_composed([_hinge(one, other, amounts[i], slopes[i], b[i], t[i]) for i in run]))
    return found


def _directions(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Unit vectors whose largest entry is positive, signed lengths, and a number for each direction."""
    lengths = np.linalg.norm(vectors, axis=1)
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(1)[:, None], 1)[:, 0] if len(vectors) else lengths
    signed = np.where(largest < 0, -lengths, lengths)
    units = vectors / np.where(signed == 0, 1.0, signed)[:, None]
    names = np.unique(np.round(units, DIGITS) + 0.0, axis=0, return_inverse=True)[1].ravel() if len(units) else signed
    return units, signed, names


def evaluate_runs(runs: list[RidgeMap], points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Points (n, d) moved by all runs, and their log-determinants (n,)."""
    out, logs = np.array(points, float), np.zeros(len(points))
    for start in range(0, len(out), CHUNK):
        rows = slice(start, start + CHUNK)
        columns = np.ascontiguousarray(out[rows].T)
        total = logs[rows]
        for run in runs:
            _moved(run, columns, total)
        out[rows] = columns.T
    return out, logs


def _moved(run: RidgeMap, columns: np.ndarray, total: np.ndarray) -> None:
    """One run applied in place; coordinates that it does not read or move are not touched."""
    read, write = np.flatnonzero(run.v), np.flatnonzero(run.u)
    sigma = reduce(np.add, (columns[i] if run.v[i] == 1 else run.v[i] * columns[i] for i in read))
    h, j = run.height(sigma)
    for i in write:
        columns[i] += h if run.u[i] == 1 else run.u[i] * h
    if run.logs.any():
        total += run.logs[j]
