"""Settings of a study and what became of them: rows in, labelled columns out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

DONE, MISSING = 0, -1
"""Status of a point; k ≥ 1 is a failure, in the words of error number k."""
LONGEST = 300
"""Letters of an error that are kept."""


class Points(NamedTuple):
    """``size`` settings: what all have, and by name what differs."""

    constant: dict[str, Any]
    columns: dict[str, list[Any]]
    size: int

    def rows(self) -> Iterator[dict[str, Any]]:
        """One setting after the other."""
        for k in range(self.size):
            yield {**self.constant, **{name: column[k] for name, column in self.columns.items()}}

    def take(self, which: Sequence[int] | np.ndarray) -> Points:
        """Some of them."""
        return Points(self.constant, {n: [c[k] for k in which] for n, c in self.columns.items()}, len(which))


class Layout(msgspec.Struct, frozen=True):
    """What the numbers of one setting are: dimensions and attributes by name, coordinates of their dimensions."""

    dims: dict[str, tuple[str, ...]]
    attrs: dict[str, dict[str, str]] = {}
    coords: dict[str, list[Any]] = {}


class Results(NamedTuple):
    """One row for each setting; ``errors`` are one line each."""

    values: dict[str, np.ndarray]
    status: np.ndarray
    errors: tuple[str, ...]
    layout: Layout


def one_line(error: BaseException | str) -> str:
    """An error as a person reads it in a table."""
    text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
    return " ".join(text.split())[:LONGEST]


def gathered(rows: Sequence[Mapping[str, Any] | str], layout: Layout) -> Results:
    """Results from numbers by name, or an error, for each setting; shorter arrays are filled up with NaN."""
    good = [row for row in rows if not isinstance(row, str)]
    names = list(dict.fromkeys(name for row in good for name in row))
    arrays = [{n: as_floats(row[n]) for n in row} if not isinstance(row, str) else {} for row in rows]
    values = {name: padded([a.get(name) for a in arrays]) for name in names}
    return Results(values, *numbered(rows), layout)


def numbered(rows: Sequence[Any]) -> tuple[np.ndarray, tuple[str, ...]]:
    """Status of each setting and the errors, each once."""
    errors = tuple(dict.fromkeys(row for row in rows if isinstance(row, str)))
    place = {error: k + 1 for k, error in enumerate(errors)}
    status = np.array([place[row] if isinstance(row, str) else DONE for row in rows], np.int32)
    return status, errors


def as_floats(value: Any) -> np.ndarray:
    """Numbers as floats: counts and truths too, since a setting may fail and have none."""
    array = np.asarray(value)
    return array if array.dtype.kind in "fc" else array.astype(float)


def padded(arrays: Sequence[np.ndarray | None]) -> np.ndarray:
    """Arrays of one rank stacked; where one is shorter, or there is none, stands NaN."""
    there = [a for a in arrays if a is not None]
    shape = tuple(int(x) for x in np.max([a.shape for a in there], axis=0)) if there and there[0].ndim else ()
    out = np.full((len(arrays), *shape), np.nan, np.result_type(*there) if there else float)
    for k, array in enumerate(arrays):
        if array is not None:
            out[corner((k,), array.shape)] = array
    return out


def corner(first: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """Indices of the first entries along each of the dimensions that follow."""
    return (*first, *(slice(size) for size in shape))


def concatenated(parts: Sequence[Results]) -> Results:
    """Results one after the other."""
    errors = tuple(dict.fromkeys(e for part in parts for e in part.errors))
    place = {error: k + 1 for k, error in enumerate(errors)}
    status = [_renumbered(part, place) for part in parts]
    names = list(dict.fromkeys(name for part in parts for name in part.values))
    values = {name: _joined(name, parts) for name in names}
    layout = next((p.layout for p in parts if p.values), parts[0].layout)
    return Results(values, np.concatenate(status), errors, layout)


def _renumbered(part: Results, place: Mapping[str, int]) -> np.ndarray:
    table = np.array([DONE, *(place[e] for e in part.errors)], np.int32)
    return np.where(part.status > 0, table[np.maximum(part.status, 0)], part.status)


def _joined(name: str, parts: Sequence[Results]) -> np.ndarray:
    blocks = [part.values.get(name) for part in parts]
    shapes = [b.shape[1:] for b in blocks if b is not None]
    if all(b is not None for b in blocks) and len(set(shapes)) == 1:
        return np.concatenate([b for b in blocks if b is not None])
    rows: list[np.ndarray | None] = []
    for block, part in zip(blocks, parts, strict=True):
        rows += [None] * len(part.status) if block is None else list(block)
    return padded(rows)
