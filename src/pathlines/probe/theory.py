"""The prediction of ``limit.architecture`` for what a probe measures: the same observables over the same tokens."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from pathlines.architecture import Architecture
from pathlines.limit.architecture.attention import AttendedGram
from pathlines.limit.architecture.branch import Sensitivity, Stream, mean_cosine, stream_of
from pathlines.limit.architecture.layer import LayerMap
from pathlines.limit.architecture.predict import Walk, effective_rank
from pathlines.limit.architecture.shared import iterated
from pathlines.limit.architecture.start import start_gram
from pathlines.probe.curves import Curve, Curves


def predicted_curves(
    architecture: Architecture, ids: Sequence[np.ndarray], keep: Sequence[np.ndarray | None] | None = None
) -> Curves:
    """Mean over inputs; the mean cosine with its predicted standard deviation over seeds, which inputs share."""
    pairs = zip(ids, keep or [None] * len(ids), strict=True)
    found = [predicted(architecture, one, kept) for one, kept in pairs]
    means = {name: np.mean([one[name] for one in found], axis=0).tolist() for name in found[0]}
    spread = means.pop("spread")
    zeros = {name: [0.0] * len(values) for name, values in means.items()}
    return {name: Curve(values, spread if name == "mean_cosine" else zeros[name]) for name, values in means.items()}


def predicted(architecture: Architecture, ids: np.ndarray, keep: np.ndarray | None = None) -> dict[str, np.ndarray]:
    """Each observable at every depth, over the tokens of ``keep``; all tokens take part in the dynamics."""
    kept = np.arange(len(ids)) if keep is None else keep
    layer = LayerMap(architecture, AttendedGram(architecture, len(ids)))
    rows, entropies = [], []
    for stream, mode in _streams(layer, start_gram(architecture, ids)):
        rows.append(_row(stream, mode, kept, layer.numbers.dimension))
        entropies.append(np.mean(layer.attended.entropy(layer.input(stream))[kept]))
    cosine, spread, rank, rms = np.array(rows).T
    return {
        "mean_cosine": cosine,
        "effective_rank": rank,
        "residual_rms": rms,
        "attention_entropy": np.array(entropies[:-1]),
        "spread": spread,
    }


def _streams(layer: LayerMap, start: np.ndarray) -> Iterator[tuple[Stream, np.ndarray]]:
    """The stream and its mode of fluctuations after 0, 1, …, L layers; for a shared layer without fluctuations."""
    architecture = layer.architecture
    if architecture.shared:
        for depth in range(architecture.layers + 1):
            yield iterated(architecture, start, depth), np.zeros_like(start)
        return
    walk = Walk(layer, stream_of(start), True)
    yield walk.stream, walk.mode
    for _ in range(architecture.layers):
        walk.step()
        yield walk.stream, walk.mode


def _row(stream: Stream, mode: np.ndarray, kept: np.ndarray, d: int) -> list[float]:
    """Mean cosine, its spread, effective rank and RMS of some tokens of the stream."""
    block = np.ix_(kept, kept)
    part = Stream(stream.cosines[block], stream.powers[kept])
    spread = abs(Sensitivity(part).of(mode[block]))
    return [mean_cosine(part.cosines), spread, effective_rank(part.cosines, d), float(np.sqrt(np.mean(part.powers)))]
