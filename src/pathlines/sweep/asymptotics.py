"""asymptotics: where a study goes as one of its numbers grows, and from which size on theory is near enough."""

from __future__ import annotations

import math
from importlib import import_module
from typing import Any, NamedTuple

import msgspec
import numpy as np
import xarray as xr

from pathlines.foundation.errors import ArgumentError, finite_number, positive_integer, require
from pathlines.sweep.study import Study

FEWEST = 3
"""Sizes that a limit with an unknown rate needs; with as many, nothing is left to judge it by."""
DRAWS = 400
"""Refits to data drawn anew, from which bands are read."""
CONFIDENCE = 0.95
RATES = (0.05, 6.0)
"""Powers of the size at which a deviation may fall."""
RATE_POINTS = 200
SURE = 2.0
"""Standard errors by which a measurement must lie within the tolerance."""


class Fitted(msgspec.Struct, frozen=True):
    """A number with its band of 95 %."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}]"


class Asymptotics(msgspec.Struct, frozen=True):
    """What one variable does along sizes.

    ``limit`` is L in y = L + C n^{-p}, ``power`` is p; with a theory, ``power`` is that of the deviation |y - theory|.
    ``size`` is the smallest measured one from which on all are within the tolerance (None: not in this range), and
    ``predicted_size`` where the fitted deviation falls below it.
    """

    variable: str
    along: str
    sizes: np.ndarray
    values: np.ndarray
    errors: np.ndarray
    theory: np.ndarray | None
    tolerance: float
    limit: Fitted | None
    power: Fitted | None
    size: float | None
    predicted_size: float | None
    fit: np.ndarray | None

    def plot(self) -> Any:
        """A figure: points with error bars, the fit, theory dashed over them."""
        return import_module("pathlines").draw.asymptotics_figure(self)  # pictures are made in a room below this one

    def __str__(self) -> str:
        last = f"{self.along} = {self.sizes[-1]:g}"
        words = [f"{self.variable}: {self.values[-1]:.6g} at {last}"]
        if self.limit is not None and self.theory is None:
            words.append(f"limit {self.limit}")
        if self.power is not None:
            what = "distance from theory" if self.theory is not None else "distance from it"
            words.append(f"the {what} falls like {self.along}^-p, p = {self.power}")
        if self.theory is not None:
            share = f"{100 * self.tolerance:g} % of theory"
            found = f"from {self.along} = {self.size:g} on" if self.size is not None else "not in this range"
            later = f" (by the fit from {self.predicted_size:.3g} on)" if self.predicted_size is not None else ""
            words.append(f"within {share} {found}{later}")
        return "; ".join(words)


def asymptotics(
    study: Study | xr.Dataset,
    along: str,
    *,
    variable: str | None = None,
    theory: Any = None,
    tolerance: float = 0.05,
    seed: int = 0,
) -> Asymptotics:
    """Fit where a study goes along one axis, and say from which size on theory is within a tolerance.

    Args:
        study: a study (what is not stored is computed) or the Dataset of one.
        along: the axis of sizes, three or more positive numbers: "n".
        variable: what to look at; by default the first one. Of a claim it is compared with what the claim predicts, the
            entry that is furthest from it at each size.
        theory: of models and functions, the limit: a number, or a function of the sizes.
        tolerance: relative to theory (absolute where that is 0), 0.05 by default. The larger, the smaller the size that
            suffices.
        seed: of the draws from which bands are read.

    y = L + C n^{-p} is fitted by least squares with the standard errors of repetitions or claims as weights; bands of
    95 % come from 400 refits to data drawn anew. With a theory, p is that of |y - theory|.
    """
    data = study.run() if isinstance(study, Study) else study
    require(isinstance(data, xr.Dataset), "study", "be a study or its Dataset", data)
    tolerance = finite_number("tolerance", tolerance, 0.0, open_low=True)
    row = _row(data, along, variable, theory)
    random = np.random.default_rng(positive_integer("seed", seed, 0))
    if row.theory is None:
        fitted = _limit_fit(row, random)
        return _told(row, along, tolerance, fitted.limit, fitted.power, None, None, fitted.curve)
    allowed = tolerance * np.where(row.theory == 0, 1.0, np.abs(row.theory))
    gap = np.abs(row.values - row.theory)
    size = _suffices(row.sizes, gap + SURE * row.errors <= allowed)
    power, predicted = _fall(row, gap, allowed, random)
    return _told(row, along, tolerance, None, power, size, predicted, None)


class _Row(NamedTuple):
    """One variable over sizes in ascending order."""

    name: str
    sizes: np.ndarray
    values: np.ndarray
    errors: np.ndarray
    theory: np.ndarray | None


class _LimitFit(NamedTuple):
    limit: Fitted | None
    power: Fitted | None
    curve: np.ndarray | None


def _told(
    row: _Row, along: str, tolerance: float, limit: Any, power: Any, size: Any, later: Any, fit: Any
) -> Asymptotics:
    return Asymptotics(
        row.name, along, row.sizes, row.values, row.errors, row.theory, tolerance, limit, power, size, later, fit
    )


def _row(data: xr.Dataset, along: str, variable: str | None, theory: Any) -> _Row:
    """Means and standard errors over repetitions, and what theory says; settings that failed are left out."""
    names = [
        n for n in map(str, data.data_vars) if n not in ("status", "verdict") and not n.endswith(("_theory", "_error"))
    ]
    require(along in data.dims, "along", f"be an axis ({', '.join(map(str, data.dims))})", along)
    name = variable if variable is not None else (names or [""])[0]
    if name not in data:
        raise ArgumentError(f"Argument `variable` must be one of {', '.join(names)}, but is {name!r}.")
    sizes = data[along].values
    require(sizes.dtype.kind in "iuf" and bool((sizes > 0).all()), "along", "have positive numbers", along)
    own = f"{name}_theory"
    y = data[name]
    target = data.get(own)
    said = data[f"{name}_error"] if f"{name}_error" in data else xr.zeros_like(y)
    if "repeat" in y.dims:
        count = y.notnull().sum("repeat")
        said = (y.std("repeat", ddof=1) / np.sqrt(count.where(count > 1))).fillna(0.0)
        y, target = y.mean("repeat"), None if target is None else target.mean("repeat")
    if target is None and theory is not None:
        found = np.broadcast_to(np.asarray(theory(sizes) if callable(theory) else theory, float), sizes.shape)
        target = xr.zeros_like(y) + xr.DataArray(found, dims=along, coords={along: sizes})
    rest = [d for d in y.dims if d != along and y.sizes[d] > 1]
    if rest and target is None:
        raise ArgumentError(f"`{name}` has other dimensions ({', '.join(map(str, rest))}): choose from them first.")
    columns = [a.transpose(along, ...).values.reshape(len(sizes), -1) for a in (y, said.fillna(0.0))]
    whole = None if target is None else target.transpose(along, ...).values.reshape(len(sizes), -1)
    values, errors, aim = _worst(columns[0], columns[1], whole)
    order = np.argsort(sizes)
    keep = order[np.isfinite(values[order]) & (True if aim is None else np.isfinite(aim[order]))]
    if len(keep) < FEWEST:
        raise ArgumentError(f"`{name}` is known at {len(keep)} sizes along {along}; it takes {FEWEST}.")
    return _Row(name, sizes[keep].astype(float), values[keep], errors[keep], None if aim is None else aim[keep])


def _worst(y: np.ndarray, error: np.ndarray, theory: np.ndarray | None) -> tuple[np.ndarray, np.ndarray, Any]:
    """At each size the entry that is furthest from theory."""
    if theory is None:
        return y[:, 0], error[:, 0], None
    gap = np.abs(y - theory) / np.where(theory == 0, 1.0, np.abs(theory))
    at = np.argmax(np.where(np.isfinite(gap), gap, -1.0), axis=1)
    rows = np.arange(len(y))
    return y[rows, at], error[rows, at], theory[rows, at]


def _suffices(sizes: np.ndarray, fine: np.ndarray) -> float | None:
    """The smallest size from which on all are fine."""
    bad = np.flatnonzero(~fine)
    first = 0 if not len(bad) else int(bad[-1]) + 1
    return None if first == len(sizes) else float(sizes[first])


def _weights(errors: np.ndarray) -> np.ndarray:
    positive = errors[errors > 0]
    floor = 1e-3 * positive.max() if len(positive) else 1.0
    return 1.0 / np.maximum(errors, floor) if len(positive) else np.ones_like(errors)


def _best(sizes: np.ndarray, rows: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """p, L and C with the least sum of squares, for each row of values: by one projection for each of many p, then by
    the parabola through the best of them and its neighbours.
    """
    rates = np.geomspace(*RATES, RATE_POINTS)
    logs, scaled = np.log(rates), rows * w
    left = np.stack([_squares(_basis(p, sizes, w), scaled) for p in rates], axis=1)
    at = np.clip(np.argmin(left, axis=1), 1, RATE_POINTS - 2)
    k = np.arange(len(rows))
    before, here, after = left[k, at - 1], left[k, at], left[k, at + 1]
    bend = before - 2 * here + after
    shift = np.where(bend > 0, (before - after) / np.where(bend > 0, 2 * bend, 1.0), 0.0)
    p = np.exp(logs[at] + np.clip(shift, -1, 1) * (logs[1] - logs[0]))
    found = np.array([np.linalg.lstsq(_basis(q, sizes, w), y, rcond=None)[0] for q, y in zip(p, scaled, strict=True)])
    return p, found[:, 0], found[:, 1]


def _basis(p: float, sizes: np.ndarray, w: np.ndarray) -> np.ndarray:
    return np.stack([w, w * (sizes / sizes[0]) ** -p], axis=1)


def _squares(basis: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """What the columns of a basis leave of each row."""
    q, _ = np.linalg.qr(basis)
    return np.sum((rows - (rows @ q) @ q.T) ** 2, axis=1)


def _limit_fit(row: _Row, random: np.random.Generator) -> _LimitFit:
    """L and p with bands, and the curve."""
    w = _weights(row.errors)
    (p,), (limit,), (slope,) = _best(row.sizes, row.values[None], w)
    curve = limit + slope * (row.sizes / row.sizes[0]) ** -p
    spread = _spread(row, row.values - curve, 3)
    drawn = curve + spread * random.normal(size=(DRAWS, len(curve)))
    powers, limits, _ = _best(row.sizes, drawn, w)
    return _LimitFit(_banded(limit, limits), _banded(p, powers), curve)


def _spread(row: _Row, residual: np.ndarray, parameters: int) -> np.ndarray:
    """Errors to draw from: those that are known, else what the fit leaves."""
    if (row.errors > 0).any():
        return row.errors
    free = max(len(residual) - parameters, 1)
    return np.full(len(residual), math.sqrt(float(np.sum(residual**2)) / free))


def _banded(value: float, draws: np.ndarray) -> Fitted:
    low, high = np.quantile(draws, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Fitted(float(value), float(min(low, value)), float(max(high, value)))


def _fall(
    row: _Row, gap: np.ndarray, allowed: np.ndarray, random: np.random.Generator
) -> tuple[Fitted | None, float | None]:
    """The power at which the distance from theory falls, and where it falls below what is allowed.

    Sizes at which the distance is not told from noise are left out.
    """
    seen = (gap > SURE * row.errors) & (gap > 0)
    if seen.sum() < FEWEST:
        return None, None
    x, y, error = np.log(row.sizes[seen]), np.log(gap[seen]), row.errors[seen] / gap[seen]
    w = _weights(error)
    slope, height = np.polyfit(x, y, 1, w=w)
    left = y - (height + slope * x)
    spread = error if (error > 0).any() else np.full(len(x), left.std(ddof=min(2, len(x) - 1)))
    line = height + slope * x
    draws = np.array([np.polyfit(x, line + spread * random.normal(size=len(x)), 1, w=w)[0] for _ in range(DRAWS)])
    if slope >= 0:
        return _banded(-float(slope), -draws), None
    target = math.log(float(allowed[-1]))
    return _banded(-float(slope), -draws), float(np.exp((target - height) / slope))
