"""Schedules: finite lists of pieces, each the flow of one simple vector field for a given duration.

A schedule is what a deep network with piecewise constant weights is. It is immutable; it composes, inverts, counts its
pieces and bounds its Lipschitz constant, whatever its kind, and it is exchanged as one JSON object

    {"kind": "relu-euclid", "d": 2, "pieces": [{"w": [..], "a": [..], "b": 0.1, "t": 1.0}, ...]}

whose numbers are read back bit for bit. Kinds stand in files of their own: ``euclid/schedule.py`` (ReLU pieces in R^d,
arXiv:2412.19366, 2602.08606) and ``sphere/schedule.py`` (layers of a transformer on the sphere, arXiv:2411.04551).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from importlib import import_module
from pathlib import Path
from typing import Any, ClassVar, Self

import msgspec
import numpy as np

from pathlines.foundation.errors import ArgumentError, StoreError, of_kind, positive_integer
from pathlines.foundation.files import write_whole

KINDS = {
    "relu-euclid": "pathlines.transport.euclid.schedule:EuclideanSchedule",
    "transformer-sphere": "pathlines.transport.sphere.schedule:SphereSchedule",
}
"""Kind of a file → who reads it, imported when it is asked for."""
MOST_PIECES = 1_000_000
"""Pieces of a schedule; more are refused before anything is computed."""
LARGEST_FILE = 2_000_000_000
"""Bytes of a schedule file that are read at all."""


class PieceSchedule(ABC):
    """P pieces in dimension d, applied in order. Points are rows of (n, d)."""

    kind: ClassVar[str]
    d: int

    @property
    @abstractmethod
    def count(self) -> int:
        """P, the number of pieces."""

    @property
    @abstractmethod
    def switches(self) -> int:
        """Jumps of the control: pieces less one, after consecutive pieces with equal parameters are merged."""

    @abstractmethod
    def compose(self, after: Self) -> Self:
        """This schedule first, then ``after``."""

    @abstractmethod
    def inverse(self) -> Self:
        """The schedule that undoes this one, with as many pieces."""

    @abstractmethod
    def canonical(self, horizon: float = 1.0) -> Self:
        """The same map with normalised parameters and equal durations that sum to ``horizon``."""

    @abstractmethod
    def log_lipschitz(self) -> float:
        """An upper bound of the logarithm of the Lipschitz constants of the map and of its inverse."""

    @abstractmethod
    def records(self) -> list[dict[str, Any]]:
        """The pieces as the dictionaries of the exchange format."""

    @classmethod
    @abstractmethod
    def from_records(cls, d: int, records: list[dict[str, Any]]) -> Self:
        """The schedule of such dictionaries, after checking each."""

    def to_json(self) -> str:
        """The exchange format; every number is read back bit for bit."""
        return msgspec.json.encode({"kind": self.kind, "d": self.d, "pieces": self.records()}).decode()

    def save(self, path: Path | str) -> Path:
        """Write the exchange format to a file, in full or not at all."""
        return write_whole(path, self.to_json().encode())


def schedule_from_json(text: str | bytes) -> Any:
    """The schedule of a JSON text, of whichever kind it says."""
    if isinstance(text, str | bytes):  # every piece has its duration; ten million are refused before they are read
        check_count(text.count('"t"') if isinstance(text, str) else text.count(b'"t"'))
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, TypeError, UnicodeDecodeError) as error:
        raise ArgumentError(f"A schedule must be JSON with finite numbers, but: {error}.") from None
    return _built(found)


def read_schedule(path: Path | str) -> Any:
    """The schedule in a file of the exchange format.

    Args:
        path: a JSON file with ``kind``, ``d`` and ``pieces``.
    """
    file = Path(of_kind("path", path, (str, Path), "the path of a file"))
    try:
        if file.stat().st_size > LARGEST_FILE:
            raise ArgumentError(f"The schedule {path} has more than {LARGEST_FILE / 1e9:g} GB.")
        text = file.read_bytes()
    except OSError as error:
        raise StoreError(f"The schedule {path} cannot be read ({error.strerror}).") from None
    return schedule_from_json(text)


def _built(found: Any) -> Any:
    if not isinstance(found, dict):
        raise ArgumentError("A schedule must be a JSON object with `kind`, `d` and `pieces`.")
    for name in ("kind", "d", "pieces"):
        if name not in found:
            raise ArgumentError(f"A schedule must have the field `{name}`; it has: {', '.join(found) or 'none'}.")
    kind, d, pieces = found["kind"], found["d"], found["pieces"]
    if not isinstance(kind, str) or kind not in KINDS:
        raise ArgumentError(f"Field `kind` of a schedule must be {' or '.join(KINDS)}, but is {kind!r}.")
    if not isinstance(d, int) or isinstance(d, bool) or d < 1:
        raise ArgumentError(f"Field `d` of a schedule must be an integer ≥ 1, but is {d!r}.")
    if not isinstance(pieces, list) or not all(isinstance(p, dict) for p in pieces):
        raise ArgumentError("Field `pieces` of a schedule must be a list of objects, one for each piece.")
    check_count(len(pieces))
    module, _, name = KINDS[kind].partition(":")
    return getattr(import_module(module), name).from_records(d, pieces)


MOST_DRAWN = 1_000_000_000
"""Numbers of a sample."""


def checked_size(n: object, d: int) -> int:
    """How many points to draw; at most a billion numbers."""
    count = positive_integer("n", n)
    if count * d > MOST_DRAWN:
        raise ArgumentError(f"Argument `n` must be at most {MOST_DRAWN // d} in d = {d}, but is {count}.")
    return count


def check_count(pieces: int) -> None:
    """No schedule has more than a million pieces."""
    if pieces > MOST_PIECES:
        raise ArgumentError(f"A schedule has at most {MOST_PIECES} pieces, but this one has {pieces}.")


def piece_field(number: int, record: dict[str, Any], name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Field ``name`` of piece ``number`` as an array of that shape; a missing, ragged or infinite one is an error."""
    if name not in record:
        raise ArgumentError(f"Piece {number} of the schedule has no `{name}`; it has: {', '.join(record) or 'none'}.")
    try:
        array = np.asarray(record[name])
        fits = array.dtype.kind in "iuf" and array.shape == shape and bool(np.isfinite(array).all())
    except ValueError:
        fits = False
    if not fits:
        what = f"finite numbers of shape {shape}" if shape else "a finite number"
        raise ArgumentError(f"Field `{name}` of piece {number} must be {what}, but is {str(record[name])[:60]}.")
    return array.astype(float)
