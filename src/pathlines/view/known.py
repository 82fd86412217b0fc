"""What theory knows of a run: curves to be drawn dashed over its observables, and a sentence where nothing is known.

Each finder looks at the model and at the start of the run, and says which law it drew; the first that knows an
observable is taken: exact solutions first, then reductions and early phases, then where the run ends.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from pathlines.foundation.errors import ArgumentError
from pathlines.integrate.run import Run
from pathlines.limit.clustering.clusters import two_cluster_overlap
from pathlines.limit.clustering.energy_range import energy_maximum
from pathlines.limit.clustering.equiangular import overlap_at
from pathlines.limit.gaussian.moments import head, moments
from pathlines.limit.metastability.early_phase import EarlyPhase, early_phase
from pathlines.limit.metastability.linear_phase import mean_first_time, mean_maxima
from pathlines.limit.reductions import simplex

LIKE = 1e-6
"""How far apart the overlaps of an equiangular start, or the tokens of one group, may lie."""
MOST_TOKENS = 800
"""Of an early phase: it looks at all pairs of the start."""
CLOUDS = {"SoftmaxGaussian": "softmax", "L2Gaussian": "l2", "SinkhornGaussian": "sinkhorn", "LinearGaussian": "linear"}
LEVEL = 0.5
"""Length of the first mode that makes a pattern."""
RTOL = 1e-9
"""Of the moment equations: far below the width of a line."""


class Line(NamedTuple):
    """A theory's name and its values at the records of a run; NaN where it says nothing."""

    label: str
    values: np.ndarray


class Plain(NamedTuple):
    """Self-attention with Q = K = I and V = ``value`` I, unmasked, of equal tokens on the unit sphere."""

    beta: float
    value: float
    kind: str


def known_line(run: Run, name: str) -> Line | None:
    """What is known of an observable of this run."""
    if "run" in run.data[name].dims:
        finders: tuple[Any, ...] = (_simplex,)
    else:
        finders = (_equiangular, _two_groups, _cloud, _simplex, _early, _forming, _end)
    for find in finders:
        found: Line | None = find(run, name)
        if found is not None and np.isfinite(found.values).sum() > 1:
            return found
    return None


def plain_of(run: Run) -> Plain | None:
    """The model of a run, if it is the one that closed forms are about."""
    model = run.setting.get("model", {})
    if not isinstance(model.get("beta"), int | float):
        return None
    if model.get("name") == "CircleAttention":
        same = not model.get("shift") and model.get("multiplicities") is None
        return Plain(float(model["beta"]), 1.0, "usa" if model.get("unnormalised") else "sa") if same else None
    attention = model.get("attention", {"name": "SoftmaxAttention"})
    kinds = {"SoftmaxAttention": "sa", "UnnormalisedAttention": "usa"}
    kind = kinds.get(attention.get("name", "") if isinstance(attention, dict) else "")
    weights = model.get("weights") or {"name": "IdentityWeights", "value": 1.0}
    more = [model.get(k) for k in ("mask", "perceptron", "multiplicities", "heard")]
    on_sphere = model.get("space", "sphere") == "sphere" and not model.get("frozen")
    same = isinstance(weights, dict) and weights.get("name") == "IdentityWeights"
    if model.get("name") != "SelfAttention" or kind is None or any(m is not None for m in more):
        return None
    return Plain(float(model["beta"]), float(weights["value"]), kind) if same and on_sphere else None


def _start(run: Run) -> np.ndarray | None:
    """Unit tokens that a flow of layers of vanishing step starts from."""
    if "tokens" not in run.data or "layer" in run.data.coords or "run" in run.data["tokens"].dims:
        return None
    first = np.asarray(run.data["tokens"].isel(time=0).values, float)
    unit = np.isfinite(first).all() and np.abs(np.linalg.norm(first, axis=1) - 1).max() < LIKE
    return first if unit and len(first) > 1 else None


def _fraction(overlap: np.ndarray, beta: float, pairs: float) -> np.ndarray:
    """Energy over its maximum where a share ``pairs`` of all n² pairs has this overlap, and the rest is one."""
    return 1 - pairs + pairs * np.exp(-beta * (1 - overlap))


def _equiangular(run: Run, name: str) -> Line | None:
    """Tokens at equal angles stay so, with an overlap in closed form (arXiv:2312.10794)."""
    plain, start = plain_of(run), _start(run)
    if plain is None or start is None or plain.value <= 0 or name not in ("mean_overlap", "energy_fraction"):
        return None
    n = len(start)
    if np.ptp(start[1:] @ start[0]) > LIKE or np.ptp((start @ start.T)[~np.eye(n, dtype=bool)]) > LIKE:
        return None
    overlaps = start[1:] @ start[0]
    found = overlap_at(plain.value * run.time, n, plain.beta, plain.kind, float(np.mean(overlaps)))
    return Line("theory", found if name == "mean_overlap" else _fraction(found, plain.beta, 1 - 1 / n))


def _two_groups(run: Run, name: str) -> Line | None:
    """Two groups of coincident tokens stay two, with an overlap that is one quadrature (arXiv:2312.10794)."""
    plain, start = plain_of(run), _start(run)
    if plain is None or start is None or plain.kind != "sa" or plain.value <= 0:
        return None
    near = start @ start[0] > 1 - LIKE
    there = start[~near]
    if name not in ("mean_overlap", "energy_fraction") or not len(there) > 0 or (there @ there[0] < 1 - LIKE).any():
        return None
    n, here = len(start), int(near.sum())
    g = two_cluster_overlap(plain.value * run.time, here, n - here, plain.beta, float(start[0] @ there[0]))
    across = 2 * here * (n - here)
    if name == "energy_fraction":
        return Line("theory", _fraction(g, plain.beta, across / n**2))
    return Line("theory", (n * (n - 1) - across * (1 - g)) / (n * (n - 1)))


def _cloud(run: Run, name: str) -> Line | None:
    """Mean and covariance of a Gaussian cloud have equations of their own (arXiv:2501.18322), solved by SciPy."""
    model = run.setting.get("model", {})
    kind = CLOUDS.get(str(model.get("name")))
    if kind is None or name not in ("covariance_trace", "anisotropy") or "layer" in run.data.coords:
        return None
    kind = "affine" if kind == "linear" and model.get("offset") else kind
    if "covariance" not in run.data or model.get("offset", 0.0) not in (0.0, 1.0):
        return None
    mean = np.asarray(run.data["cloud_mean"].values, float)[0] if "cloud_mean" in run.data else np.zeros(2)
    heads = [head(v, query=q, key=k) for v, q, k in zip(model["value"], model["query"], model["key"])]
    more: dict[str, Any] = {k: float(model[k]) for k in ("eps", "prefactor") if isinstance(model.get(k), int | float)}
    start, late = np.asarray(run.data["covariance"].values, float)[0], np.asarray(run.time, float)
    late = late[np.isfinite(np.asarray(run.data[name].values, float))]
    try:
        sigma = moments(kind, heads, mean, start, late, rtol=RTOL, **more).covariance
    except (ArgumentError, ValueError, np.linalg.LinAlgError):
        return None
    trace = np.trace(sigma, axis1=1, axis2=2)
    values = trace if name == "covariance_trace" else np.linalg.eigvalsh(sigma)[:, -1] / trace
    return Line("moment equations", _as_long(values, len(run.time)))


def _as_long(values: np.ndarray, count: int) -> np.ndarray:
    return np.concatenate([values, np.full(count - len(values), np.nan)])


def _simplex(run: Run, name: str) -> Line | None:
    """Random heads move nearly orthogonal tokens as they move equiangular ones (arXiv:2604.01978)."""
    if name != "mean_overlap" or "tau" not in run.data or run.model is None:
        return None
    n = run.data.sizes.get("token")
    first = float(np.mean(np.asarray(run.data[name].isel(time=0).values, float)))
    net = getattr(run.model, "chain", run.model)
    try:
        reduction = simplex(net, n=n or 0, overlap=max(first, 0.0))
        return Line("equiangular limit", np.asarray(reduction.curve(run.data), float))
    except (ArgumentError, AttributeError):
        return None


def _early(run: Run, name: str) -> Line | None:
    """Nearly uniform tokens: every harmonic moves on its own until one of them is large (arXiv:2410.23228)."""
    plain, start = plain_of(run), _start(run)
    if plain is None or start is None or name not in ("mean_overlap", "energy_fraction"):
        return None
    if len(start) > MOST_TOKENS and start.shape[1] > 2:
        return None
    found = _phase(start.tobytes(), start.shape, np.asarray(run.time, float).tobytes(), plain)
    values = found.overlap if name == "mean_overlap" else found.energy_fraction
    label = "linear growth" if plain.value > 0 else "linear decay"
    return Line(label, values) if np.isfinite(values).sum() > 2 else None


@lru_cache(maxsize=4)
def _phase(start: bytes, shape: tuple[int, int], times: bytes, plain: Plain) -> EarlyPhase:
    """Overlap and energy are of one computation."""
    tokens = np.frombuffer(start).reshape(shape)
    return early_phase(tokens, np.frombuffer(times), plain.beta, plain.value, plain.kind)


def _forming(run: Run, name: str) -> Line | None:
    """On the circle: as many clusters as the potential has maxima when a pattern forms (arXiv:2410.23228)."""
    plain, start = plain_of(run), _start(run)
    if name != "cluster_count" or plain is None or start is None or start.shape[1] != 2 or plain.value <= 0:
        return None
    if plain.beta <= 1 or np.isnan(early_phase(start, 0.0, plain.beta).overlap):
        return None
    try:
        begun = mean_first_time(plain.beta, len(start), LEVEL, plain.kind)
        count = float(mean_maxima(plain.beta, begun, plain.kind))
    except (ArgumentError, ValueError, FloatingPointError):
        return None
    pace = plain.value * (np.exp(plain.beta) if plain.kind == "usa" else 1.0)
    return Line(f"{count:.1f} form", np.where(pace * np.asarray(run.time) >= begun, count, np.nan))


def _end(run: Run, name: str) -> Line | None:
    """All tokens of the sphere meet in one point: almost surely for d ≥ 3, and for β ≤ 1 on the circle."""
    plain, start = plain_of(run), _start(run)
    ends = {"cluster_count": 1.0, "mean_overlap": 1.0, "energy_fraction": 1.0}
    if plain is None or start is None or plain.value <= 0:
        return None
    if name == "energy":
        return Line("one cluster", np.full(len(run.time), float(energy_maximum(plain.beta))))
    if name not in ends or (start.shape[1] == 2 and plain.beta > 1):
        return None
    return Line("in the end", np.full(len(run.time), ends[name]))


def said_of(curves: list[dict[str, Any]]) -> str:
    """In words: which observables no theory is known for here; empty where all have one."""
    without = [str(c["label"]) for c in curves if "theory" not in c]
    if not without or not curves:
        return ""
    if len(without) == len(curves):
        return "No limit is known for this model and start, so no line is dashed."
    return f"Dashed: theory. No limit is known here for {_listed(without)}."


def _listed(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
