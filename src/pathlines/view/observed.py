"""Observables of a run as curves, and theory beside them where a limit is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from pathlines.claim.estimate import mean_and_error
from pathlines.foundation.errors import ArgumentError
from pathlines.integrate.run import Run
from pathlines.limit.clustering.energy_range import energy_maximum
from pathlines.limit.clustering.equiangular import overlap_at
from pathlines.limit.reductions import simplex

HIDDEN = ("tokens", "dissipation_residual", "cluster_labels")
MOST = 4
"""Curves that find room beside the scene."""
STEEP = 1e3
"""Ratio of the largest to the least value from which an axis is logarithmic."""
LIKE = 1e-6
"""How far apart the overlaps of an equiangular start may lie."""


def curves_of(run: Run, names: list[str] | None, theory: Any, last: float) -> list[dict[str, Any]]:
    """Recorded numbers over time up to ``last``, of an ensemble the mean ± two standard errors, with theory."""
    known = [str(name) for name in run.data.data_vars]
    for name in names or ():
        if name not in run.data:
            raise ArgumentError(f"The run has no record `{name}`; it has {', '.join(known)}.")
    drawn = [name for name in known if name not in HIDDEN and set(run.data[name].dims) <= {"run", "time"}]
    return [_curve(run, name, theory, last) for name in (names or drawn[:MOST])]


def _curve(run: Run, name: str, theory: Any, last: float) -> dict[str, Any]:
    data = run.data[name]
    if not set(data.dims) <= {"run", "time"}:
        raise ArgumentError(f"The record `{name}` is not one number at a time, which a curve would need.")
    kept = run.time <= last
    values, error = _averaged(data)
    curve = {
        "name": name,
        "symbol": str(data.attrs.get("symbol", "")),
        "label": str(data.attrs.get("long_name", name)),
        "times": run.time[kept].tolist(),
        "values": numbers(values[kept]),
        "scale": _scale(values[kept]),
    }
    if error is not None:
        curve |= {"lower": numbers((values - 2 * error)[kept]), "upper": numbers((values + 2 * error)[kept])}
    beside = _theory(run, name, theory)
    if beside is not None:
        curve["theory"] = {"times": run.time[kept].tolist(), "values": numbers(beside[1][kept]), "label": beside[0]}
    return curve


def _averaged(data: xr.DataArray) -> tuple[np.ndarray, np.ndarray | None]:
    if "run" not in data.dims:
        return np.asarray(data.values, float), None
    every = np.asarray(data.transpose("run", "time").values, float)
    if len(every) == 1:
        return every[0], None
    return mean_and_error(every)


def numbers(values: Any) -> list[float | None]:
    """Numbers for JSON: those that are not finite are missing."""
    return [float(f"{v:.8g}") if np.isfinite(v) else None for v in np.asarray(values, float)]


def _scale(values: np.ndarray) -> str:
    known = values[np.isfinite(values)]
    return "log" if known.size and known.min() > 0 and known.max() > STEEP * known.min() else "linear"


def _theory(run: Run, name: str, given: Any) -> tuple[str, np.ndarray] | None:
    """Its name and its values at the records: what was given, else what is known of this model and start."""
    if given is not None:
        fits = given.observable == name
        return (str(given.label), np.asarray(given.curve(run.data), float)) if fits else None
    for known in (_simplex, _equiangular, _ceiling):
        found = known(run, name)
        if found is not None:
            return found
    return None


def _simplex(run: Run, name: str) -> tuple[str, np.ndarray] | None:
    """Random heads move nearly orthogonal tokens as they move equiangular ones (arXiv:2604.01978)."""
    if name != "mean_overlap" or "tau" not in run.data or run.model is None:
        return None
    n = run.data.sizes.get("token")
    first = float(np.mean(np.asarray(run.data[name].isel(time=0).values, float)))
    try:
        reduction = simplex(run.model, n=n or 0, overlap=max(first, 0.0))
        return "equiangular limit", np.asarray(reduction.curve(run.data), float)
    except (ArgumentError, AttributeError):
        return None


def _equiangular(run: Run, name: str) -> tuple[str, np.ndarray] | None:
    """Tokens at equal angles stay so, with an overlap in closed form (arXiv:2312.10794)."""
    model = run.setting.get("model", {})
    kind = {"SelfAttention": "sa", "UnnormalisedAttention": "usa"}.get(str(model.get("name")))
    if name != "mean_overlap" or kind is None or "tokens" not in run.data or "run" in run.data[name].dims:
        return None
    if not _is_plain(model):
        return None
    start = np.asarray(run.data["tokens"].isel(time=0).values, float)
    overlaps = (start @ start.T)[~np.eye(len(start), dtype=bool)]
    if len(start) < 2 or np.ptp(overlaps) > LIKE:
        return None
    return "theory", overlap_at(run.time, len(start), float(model["beta"]), kind, float(np.mean(overlaps)))


def _ceiling(run: Run, name: str) -> tuple[str, np.ndarray] | None:
    """The energy climbs to that of one point (arXiv:2312.10794)."""
    model = run.setting.get("model", {})
    if name != "energy" or model.get("name") != "SelfAttention" or not _is_plain(model):
        return None
    return "one cluster", np.full(len(run.time), float(energy_maximum(float(model["beta"]))))


def _is_plain(model: dict[str, Any]) -> bool:
    """Whether Q, K and V are the identity, as the setting tells it."""
    weights = model.get("weights")
    return isinstance(model.get("beta"), int | float) and (weights is None or "dentity" in str(weights))
