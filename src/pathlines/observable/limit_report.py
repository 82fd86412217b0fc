"""What the last state of a run looks like, and what the theory says of its limit."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import msgspec
import numpy as np

from pathlines.foundation.errors import ArgumentError
from pathlines.integrate.run import Run
from pathlines.limit.clustering.euclidean import classify_value
from pathlines.model.base import Snapshot
from pathlines.model.clustering.hardmax_phase import HardmaxPhase
from pathlines.model.clustering.rescaled import RescaledAttention
from pathlines.observable.attention import attention_rank, booleanness
from pathlines.observable.clusters import cluster_labels

THRESHOLDS = (1e-2, 1e-3, 1e-4)


class LimitReport(msgspec.Struct, frozen=True):
    """``clusters`` is None ("not converged") unless the counts at three thresholds agree; a plateau of metastable
    clusters passes that test too, since its escape rate can be as small as e^{-2β}.

    For the rescaled system in R^d: what the theory says for this V, leaders, vertices, values of the leading
    coordinate, rank of the attention matrix, how far it is from 0/1, and the time up to which softmax was meaningful.
    """

    time: float
    clusters: int | None
    centres: list[list[float]]
    statement: str = ""
    leaders: list[int] = []
    hyperplanes: list[float] = []
    attention_rank: int | None = None
    booleanness: float | None = None
    horizon: float | None = None


def limit_report(run: Run) -> LimitReport:
    """Classify the last state of a run that was made in this process (saved runs keep data only)."""
    if run.final is None:
        raise ArgumentError("Argument `run` must be a live run of flow() or layers(), not an ensemble or a saved file.")
    model, state, t, start = run.final
    snapshot = Snapshot(model, state, jnp.asarray(t, float), state)
    counts = {len(np.unique(cluster_labels.at(delta=delta)(snapshot))) for delta in THRESHOLDS}
    labels = np.asarray(cluster_labels(snapshot))
    centres = (
        [np.asarray(snapshot.tokens)[labels == c].mean(0).tolist() for c in np.unique(labels)]
        if model.has_tokens
        else []
    )
    clusters = counts.pop() if len(counts) == 1 else None
    report = LimitReport(float(t), clusters, centres)
    if not isinstance(run.model, RescaledAttention):
        return report
    limit, _ = run.model.horizon(np.asarray(start))
    return _euclidean(run.model, model, snapshot, report, limit)


def _euclidean(
    asked: RescaledAttention, model: Any, snapshot: Snapshot, report: LimitReport, limit: float
) -> LimitReport:
    d = asked.value.shape[0]
    query, key = (np.eye(d) if m is None else np.asarray(m) for m in (asked.query, asked.key))
    kind = classify_value(np.asarray(asked.value), query.T @ key)
    weights = np.asarray(snapshot.attention)
    leading = np.asarray(snapshot.tokens) @ kind.left if kind.left is not None else np.zeros(0)
    values = [float(leading.min()), float(leading.max())] if leading.size else []
    return msgspec.structs.replace(
        report,
        statement=kind.statement,
        leaders=np.nonzero(np.diagonal(weights) > 0.5)[0].tolist(),
        hyperplanes=values,
        attention_rank=int(attention_rank(snapshot)),
        booleanness=float(booleanness(snapshot)) if not isinstance(model, HardmaxPhase) else 0.0,
        horizon=limit if np.isfinite(limit) else None,
    )
