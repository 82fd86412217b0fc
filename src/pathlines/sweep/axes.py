"""Axes of a study: what a person writes for them, and the values that it means, each checked before anything runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np

from pathlines.foundation.errors import ArgumentError, UnknownNameError, require
from pathlines.foundation.registry import near
from pathlines.foundation.setting import fields
from pathlines.foundation.written import value_of

GRAMMAR = (
    "LOW:HIGH:COUNT, LOW:HIGH:log[:COUNT], LOW:HIGH:random:COUNT[:SEED], LOW:HIGH:halton:COUNT, LOW:HIGH:sobol:COUNT"
    " or VALUE,VALUE,…"
)
PAIR = "/"
"""Between the names, and between the values, of axes that go together."""
FRACTIONS = (0.5, 1.5, -0.5, 1000.5)
"""Numbers, one of which is within the bounds of any field that takes fractions."""
MOST = 10**8
"""Values of one axis."""
SHOWN = 6
"""Refused values that an error quotes."""


class Axis(NamedTuple):
    """One dimension of a study: the fields that vary along it together, and the values of each."""

    dim: str
    names: tuple[str, ...]
    values: tuple[tuple[Any, ...], ...]

    def __len__(self) -> int:
        """Points along the dimension."""
        return len(self.values[0])


def made_axes(owner: str, record: type[msgspec.Struct], axes: Mapping[str, Any]) -> tuple[Axis, ...]:
    """Axes over fields of a record; all values that it does not allow are named in one error.

    A name is a field, or several fields joined by "/" that go together ("n/d"); a value is text in the grammar above
    or a sequence, for fields that go together one of each.
    """
    if not isinstance(axes, Mapping):
        raise ArgumentError(f"Argument `axes` must be a dictionary of axes by name, but is {axes!r:.80}.")
    kinds = {f.name: f.type for f in msgspec.structs.fields(record)}
    made, refused, seen = [], [], set[str]()
    for name, said in axes.items():
        names = tuple(str(name).split(PAIR))
        for one in names:
            _require_new(owner, one, kinds, seen)
        columns, wrong = _columns(names, said, kinds, record)
        refused += wrong
        made.append(Axis("_".join(names), names, columns))
    if refused:
        raise ArgumentError(f"{owner} does not allow {'; '.join(refused)}: nothing was run.")
    return tuple(made)


def _require_new(owner: str, name: str, kinds: Mapping[str, Any], seen: set[str]) -> None:
    if name not in kinds:
        close = near(name, kinds)
        hint = f" Did you mean {close}?" if close else f" It has {', '.join(sorted(kinds)) or 'none'}."
        raise UnknownNameError(f"{owner} has no setting `{name}` to make an axis of.{hint}")
    if name in seen:
        raise ArgumentError(f"Axis `{name}` is given twice.")
    seen.add(name)


def _columns(
    names: tuple[str, ...], said: Any, kinds: Mapping[str, Any], record: type
) -> tuple[tuple[tuple[Any, ...], ...], list[str]]:
    """Converted values of each field that goes along, and what was refused."""
    parts = _parts(names, said)
    raw = [_values(name, part, _whole(kinds[name]), k) for k, (name, part) in enumerate(zip(names, parts))]
    lengths = {len(column) for column in raw}
    title = PAIR.join(names)
    if len(lengths) > 1:
        counted = " and ".join(str(len(c)) for c in raw)
        raise ArgumentError(f"Axes `{title}` go together and must have as many values each, but have {counted}.")
    if lengths == {0}:
        raise ArgumentError(f"Axis `{title}` has no values.")
    columns, refused = [], []
    for name, column in zip(names, raw):
        kept, wrong = _converted(column, kinds[name])
        columns.append(kept)
        if wrong:
            allowed = next(f.allowed for f in fields(record) if f.name == name)
            quoted = ", ".join(f"{w!r}" for w in wrong[:SHOWN]) + (", …" if len(wrong) > SHOWN else "")
            refused.append(f"`{name}` = {quoted} (allowed: {allowed})")
    if refused:
        return tuple(map(tuple, columns)), refused
    rounded = any(isinstance(part, str) and ":" in part for part in parts)
    return _distinct(title, columns, rounded), refused


def _parts(names: tuple[str, ...], said: Any) -> Sequence[Any]:
    if isinstance(said, str):
        parts: Sequence[Any] = said.split(PAIR) if len(names) > 1 else [said]
    elif len(names) == 1:
        parts = [said]
    else:
        parts = list(said) if isinstance(said, Sequence) else []
    if len(parts) != len(names):
        title = PAIR.join(names)
        raise ArgumentError(f"Axes `{title}` go together: give the values of each, separated by {PAIR}, not {said!r}.")
    return parts


def _distinct(title: str, columns: list[list[Any]], rounded: bool) -> tuple[tuple[Any, ...], ...]:
    """The columns; a point that occurs twice is a mistake, but of whole numbers drawn or rounded it is one point."""
    rows = list(zip(*columns, strict=True))
    keys = [msgspec.json.encode(row) for row in rows]
    if len(set(keys)) == len(keys):
        return tuple(tuple(column) for column in columns)
    if rounded:
        return tuple(zip(*dict(zip(keys, rows)).values(), strict=True))
    twice = next(row for row, key in zip(rows, keys) if keys.count(key) > 1)
    value = PAIR.join(map(str, twice))
    raise ArgumentError(f"Axis `{title}` has the value {value} twice.")


def _converted(column: Sequence[Any], kind: Any) -> tuple[list[Any], list[Any]]:
    """Values as the field has them (a number stands for a list of one), and those that it refuses."""
    kept, wrong = [], []
    for value in column:
        found = _fitting(value, kind)
        if found is _NOTHING:
            wrong.append(value)
        else:
            kept.append(found)
    return kept, wrong


_NOTHING = object()


def _fitting(value: Any, kind: Any) -> Any:
    plain = value.tolist() if isinstance(value, np.generic | np.ndarray) else value
    if isinstance(plain, float) and math.isnan(plain):
        return _NOTHING
    for candidate in (plain, int(plain) if isinstance(plain, float) and plain.is_integer() else plain, [plain]):
        try:
            return msgspec.convert(candidate, kind)
        except msgspec.ValidationError:
            continue
    return _NOTHING


def takes_fractions(kind: Any) -> bool:
    """Whether a field is a number that need not be whole."""
    return any(isinstance(_fitting(x, kind), float) for x in FRACTIONS)


def _whole(kind: Any) -> bool:
    """Whether a field takes whole numbers only."""
    return not takes_fractions(kind) and any(_fitting(x, kind) is not _NOTHING for x in (1, 1000))


def _values(name: str, said: Any, whole: bool, place: int) -> list[Any]:
    """The values that a person wrote or gave."""
    if not isinstance(said, str):
        given = np.asarray(said) if isinstance(said, np.ndarray | range) else said
        if isinstance(given, np.ndarray):
            given = np.atleast_1d(given).tolist()
        return list(given) if isinstance(given, Sequence) else [given]
    words = said.split(":")
    if len(words) < 3:
        found = value_of(said.strip()) if said.strip() else []
        if isinstance(found, str) and "," in found:
            return [value_of(word.strip()) for word in found.split(",")]
        return found if isinstance(found, list) else [found]
    numbers = _spread(name, said, words, place)
    if not whole or (len(words) == 3 and words[2] != "log"):
        return [float(x) for x in numbers]
    return [round(float(x)) for x in numbers]


def _spread(name: str, said: str, words: list[str], place: int) -> np.ndarray:
    """Numbers from low to high in one of the ways of the grammar."""
    try:
        low, high = float(words[0]), float(words[1])
        how = words[2] if words[2] in ("log", "random", "halton", "sobol") else "even"
        rest = words[2:] if how == "even" else words[3:]
        counts = [_count(word) for word in rest]
        fits = len(counts) in {"even": (1,), "log": (0, 1), "random": (1, 2), "halton": (1,), "sobol": (1,)}[how]
        if not (fits and math.isfinite(low) and math.isfinite(high) and low <= high):
            raise ValueError
        if how == "log" and low <= 0:
            raise ValueError
    except ValueError:
        raise ArgumentError(f"Axis `{name}` must be {GRAMMAR} with LOW ≤ HIGH, but is {said!r}.") from None
    if how == "log" and not counts:
        return low * 2.0 ** np.arange(math.floor(math.log2(high / low) + 1e-9) + 1)
    if counts[0] < 1:
        raise ArgumentError(f"Axis `{name}` has no values.")
    if how == "even":
        return np.linspace(low, high, counts[0])
    if how == "log":
        return np.geomspace(low, high, counts[0])
    if how == "random":
        seed = counts[1] if len(counts) > 1 else 0
        return low + (high - low) * np.random.default_rng([seed, place]).random(counts[0])
    return low + (high - low) * (_halton if how == "halton" else _sobol)(counts[0], place)


def _count(word: str) -> int:
    number = float(word)
    if not number.is_integer() or not 0 <= number <= MOST:
        raise ValueError
    return int(number)


def _halton(count: int, place: int) -> np.ndarray:
    """Halton's sequence in the base of prime number ``place``, from its second point on: more points keep the first."""
    from scipy.stats.qmc import Halton

    points: np.ndarray = Halton(place + 1, scramble=False).random(count + 1)[1:, place]
    return points


def _sobol(count: int, place: int) -> np.ndarray:
    """Sobol's sequence in dimension ``place``, from its second point on: more points keep the first.

    Best where axes go together and their number is one less than a power of two.
    """
    from scipy.stats.qmc import Sobol

    require(place < Sobol.MAXDIM, "axes", f"go together at most {Sobol.MAXDIM} at a time", place + 1)
    power = max(count, 1).bit_length()  # whole powers of two are balanced; the rest is not asked for
    points: np.ndarray = Sobol(place + 1, scramble=False).random_base2(power)[1 : count + 1, place]
    return points
