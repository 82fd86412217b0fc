"""What a page reads off the tokens of a run after it, instead of having it recorded within.

The page needs the clusters of every frame in any case, and the mean overlap of unit tokens is |Σx|² (O(n) where the
recorded one looks at all pairs): at n = 500 a fifth of the time of an answer. Runs of fewer tokens than ``MANY`` record
everything and have the very bits of the lines that repeat them; beyond, the overlap agrees to rounding.
"""

from __future__ import annotations

import msgspec
import numpy as np

from pathlines.integrate.observe import OBSERVABLES
from pathlines.integrate.run import Run
from pathlines.model.capability import HasRandomLayers
from pathlines.view.clusters import labels_of_frames

DERIVED = ("cluster_count", "mean_overlap")
MANY = 200
"""Tokens from which on a derived record pays."""


def leaner(records: tuple[str, ...]) -> tuple[str, ...]:
    """The records without those that are derived, which a run of its own still gives."""
    return tuple(name for name in records if name not in DERIVED) if "tokens" in records else records


def completed(run: Run, records: tuple[str, ...]) -> Run:
    """The run with what was left out, in the order that was asked for, and the clusters of the tokens."""
    tokens = np.asarray(run.data["tokens"].values, float)
    good = np.isfinite(tokens).all(axis=(1, 2))
    last = len(good) if good.all() else int(np.argmin(good))
    data = run.data
    if "cluster_count" in records and last:
        delta = float(dict(OBSERVABLES["cluster_count"].parameters)["delta"])
        labels = np.zeros(tokens.shape[:2], np.int64)
        labels[:last] = labels_of_frames(tokens[:last], delta)
        count = np.full(len(tokens), np.nan)
        count[:last] = [len(np.unique(row)) for row in labels[:last]]
        data = data.assign(
            cluster_count=("time", count, OBSERVABLES["cluster_count"].attributes),
            cluster_labels=(("time", "token"), labels, OBSERVABLES["cluster_labels"].attributes),
        )
    if "mean_overlap" in records:
        data = data.assign(mean_overlap=("time", _overlap(tokens), OBSERVABLES["mean_overlap"].attributes))
    named = [name for name in records if name in data]
    others = [str(name) for name in data.data_vars if name not in named]
    return msgspec.structs.replace(run, data=data[[*named, *others]])


def _overlap(tokens: np.ndarray) -> np.ndarray:
    """(|Σ_i x_i|² - Σ_i |x_i|²)/(n(n - 1)) of each frame."""
    n = tokens.shape[1]
    total: np.ndarray = (tokens.sum(axis=1) ** 2).sum(axis=-1) - (tokens**2).sum(axis=(1, 2))
    return total / (n * (n - 1))


def can_derive(model: object, n: int) -> bool:
    """Whether the tokens of a model are many and unit ones that layers drawn at random do not move."""
    return n >= MANY and bool(getattr(model, "on_sphere", False)) and not isinstance(model, HasRandomLayers)
