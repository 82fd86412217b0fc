"""From axes to chunks: settings that share a program stand together, and each has an address of its own.

The grid is the product of the axes, as xarray has it; no list of its points is ever made. A key of 128 bits stands for
a point: the sum of the hashes of its fields with their values, so that a grid has as many hashes to compute as its axes
have values, and a point has the same key in every study of the subject.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import msgspec
import numpy as np

from pathlines.sweep.axes import Axis
from pathlines.sweep.points import Points

Keys = np.ndarray
"""(points, 2) of unsigned 64-bit numbers."""


class Chunk(NamedTuple):
    """Points that are computed, stored and counted together; ``where`` are their places in the grid."""

    name: str
    program: int
    where: np.ndarray
    keys: Keys


class StudyPlan:
    """Points of a grid in chunks of at most ``size``; along ``within`` fields settings share a program."""

    def __init__(self, fixed: dict[str, Any], axes: tuple[Axis, ...], within: frozenset[str], size: int) -> None:
        self.fixed, self.axes, self.size = fixed, axes, size
        self.shape = tuple(len(axis) for axis in axes)
        self.count = math.prod(self.shape)
        inner = [k for k, axis in enumerate(axes) if set(axis.names) <= within]
        self._outer = [k for k in range(len(axes)) if k not in inner]
        self._order = self._outer + inner
        self.programs = math.prod(self.shape[k] for k in self._outer)
        self._points_a_program = self.count // max(self.programs, 1)

    @property
    def chunk_count(self) -> int:
        """How many chunks there are."""
        return self.programs * -(-self._points_a_program // self.size)

    def chunks(self) -> Iterator[Chunk]:
        """All chunks, those of one program next to one another."""
        places = np.arange(self.count).reshape(self.shape or (1,)).transpose(self._order or (0,))
        for program, row in enumerate(places.reshape(self.programs, -1)):
            for start in range(0, len(row), self.size):
                where = row[start : start + self.size]
                keys = self.keys(where)
                yield Chunk(hashlib.sha256(keys.tobytes()).hexdigest()[:24], program, where, keys)

    def keys(self, where: np.ndarray) -> Keys:
        """The keys of the points at these places."""
        total = np.broadcast_to(self._constant_key, (len(where), 2)).copy()
        for axis_keys, index in zip(self._axis_keys, np.unravel_index(where, self.shape) if self.shape else ()):
            total += axis_keys[index]
        return total

    def points(self, where: np.ndarray) -> Points:
        """The settings at these places; what is the same for all of them is said once."""
        constant, columns = dict(self.fixed), {}
        for k, (axis, index) in enumerate(zip(self.axes, np.unravel_index(where, self.shape) if self.shape else ())):
            one = k in self._outer and len(where) > 0 and bool((index == index[0]).all())
            for name, values in zip(axis.names, axis.values, strict=True):
                if one:
                    constant[name] = values[int(index[0])]
                else:
                    columns[name] = [values[i] for i in index.tolist()]
        return Points({n: v for n, v in constant.items() if n not in columns}, columns, len(where))

    @cached_property
    def _varied(self) -> frozenset[str]:
        return frozenset(name for axis in self.axes for name in axis.names)

    @cached_property
    def _constant_key(self) -> np.ndarray:
        parts = [field_key(n, v) for n, v in self.fixed.items() if n not in self._varied]
        return _summed(parts) if parts else np.zeros(2, np.uint64)

    @cached_property
    def _axis_keys(self) -> list[np.ndarray]:
        found = []
        for axis in self.axes:
            columns = [
                np.array([field_key(n, v) for v in values]) for n, values in zip(axis.names, axis.values, strict=True)
            ]
            found.append(_summed(columns))
        return found


def field_key(name: str, value: Any) -> np.ndarray:
    """128 bits that stand for a field with its value."""
    plain = repr(value) if isinstance(value, float) and not math.isfinite(value) else value
    said = msgspec.json.encode([name, plain], order="sorted", enc_hook=_listed)
    return np.frombuffer(hashlib.sha256(said).digest()[:16], np.uint64)


def _summed(parts: list[np.ndarray]) -> np.ndarray:
    total: np.ndarray = np.add.reduce(np.stack(parts), axis=0, dtype=np.uint64)
    return total


def _listed(value: Any) -> Any:
    return np.asarray(value).tolist()


def derived_seed(seed: int, number: int) -> int:
    """The seed of repetition ``number``: that of the study first, then 31 bits from both.

    More repetitions keep the first ones, and any of them can be run by itself (``pathlines run sa --seed …``).
    """
    if number == 0:
        return seed
    state = np.random.SeedSequence([seed % 2**64, number]).generate_state(1)
    return int(state[0] >> 1)


def repetitions(seed: int, count: int) -> Axis:
    """The axis of repetitions: seeds, all different."""
    seeds = [derived_seed(seed, k) for k in range(count)]
    for k in range(count):
        while seeds[k] in seeds[:k]:
            seeds[k] += 1
    return Axis("repeat", ("seed",), (tuple(seeds),))
