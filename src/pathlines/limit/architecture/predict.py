"""The predictor: every layer's Gram matrix from a configuration and token ids, without weights.

The residual stream is followed by its mean cosines K and mean squares r², branch by branch:

    K, r²  →  X = norm(h)  →  F = a E[ΠXΠᵀ]  or  a_m κ(X)  →  G' = α²G + F  →  norm

(``attention``, ``perceptron``, ``branch``). Finite width enters twice: in the mean of cosines whose lengths fluctuate,
and in the spread of the mean cosine over seeds, carried along as one mode of fluctuations that every branch turns and
enlarges. While the mean cosine c is small the spread is 2c√(τ/d), as in arXiv:2604.01978.

Assumptions: initial weights, independent in every layer (a model that shares its layer is not of this kind). Cost of a
layer: some thirty products of n × n matrices with spread, ten without: 10 ms at n = 128.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pathlines.architecture.record import Architecture
from pathlines.foundation.errors import finite_array, positive_integer
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.architecture.attention import AttendedGram
from pathlines.limit.architecture.branch import (
    Sensitivity,
    Stream,
    added,
    mean_cosine,
    merged,
    noise,
    stream_of,
    width_correction,
)
from pathlines.limit.architecture.layer import Branch, LayerMap, around
from pathlines.limit.architecture.start import Tokens, start_gram, usual_tokens

SOURCES = (HOMOGENIZED,)
_FEW = 16
CAUSES = ("embedding", "attention", "perceptron", "mean bias")
BY_LAYER = ("mean_cosine", "spread", "effective_rank", "residual_rms", "logit_std", "attention_entropy")


@dataclass(frozen=True)
class Prediction:
    """Observables after 0, 1, …, L layers, and what changed the mean cosine.

    ``spread``: standard deviation of the mean cosine over seeds. ``logit_std`` (within a row) and ``attention_entropy``
    (nats, mean over tokens) are those of the layer that follows, so they have one entry less. ``causes`` holds for each
    layer the change by attention, by the perceptron and by the perceptron's mean; its row 0 is the embedding's cosine.
    ``sampled`` counts the layers whose attention was too sharp for the expansion.
    """

    mean_cosine: np.ndarray
    spread: np.ndarray
    effective_rank: np.ndarray
    residual_rms: np.ndarray
    logit_std: np.ndarray
    attention_entropy: np.ndarray
    causes: np.ndarray
    cosines: np.ndarray
    sampled: int

    @property
    def shares(self) -> dict[str, float]:
        """The mean cosine after the last layer as a sum over causes."""
        return dict(zip(CAUSES, np.sum(self.causes, axis=0).tolist(), strict=True))

    def as_dict(self) -> dict[str, Any]:
        """Lists by name, for JSON."""
        document: dict[str, Any] = {name: getattr(self, name).tolist() for name in BY_LAYER}
        return document | {"causes": {c: self.causes[:, k].tolist() for k, c in enumerate(CAUSES)}}


def predict(
    architecture: Architecture,
    tokens: Tokens | None = None,
    *,
    gram: np.ndarray | None = None,
    layers: int | None = None,
    spread: bool = True,
    keep: np.ndarray | None = None,
) -> Prediction:
    """From token ids, so many different tokens (default: 64), or the Gram matrix before the first layer.

    ``keep``: indices of the tokens that observables are taken over (causes: all); every token takes part in the layers.
    """
    depth = architecture.layers if layers is None else positive_integer("layers", layers)
    if gram is None:
        start = start_gram(architecture, usual_tokens(architecture) if tokens is None else tokens)
    else:
        start = finite_array("gram", gram, ("n", "n")).astype(np.float64)
    layer = LayerMap(architecture, AttendedGram(architecture, len(start)))
    walk = Walk(layer, stream_of(start), spread, keep)
    for _ in range(depth):
        walk.step()
    return walk.prediction()


def cosine_curve(architecture: Architecture, tokens: Tokens, layers: int | None = None) -> np.ndarray:
    """The mean cosine alone, after 0, 1, …, L layers; cheap, for searches (sharp heads by fewer draws)."""
    stream = stream_of(start_gram(architecture, tokens))
    layer = LayerMap(architecture, AttendedGram(architecture, len(stream.powers), samples=_FEW))
    found = [mean_cosine(stream.cosines)]
    for _ in range(architecture.layers if layers is None else positive_integer("layers", layers)):
        x = layer.input(stream)
        sharp = layer.attended.sharp(x)
        stream = layer.advanced(stream, None if sharp is None else sharp.gram - layer.attended(x))
        found.append(mean_cosine(stream.cosines))
    return np.array(found)


class Walk:
    """The state of a prediction: stream, mode of fluctuations, and what was recorded."""

    def __init__(
        self, layer: LayerMap[AttendedGram], start: Stream, spread: bool, keep: np.ndarray | None = None
    ) -> None:
        self.layer, self.stream, self.with_spread = layer, start, spread
        self.kept = np.arange(len(start.powers)) if keep is None else np.asarray(keep)
        self.d = layer.numbers.dimension
        self.mode = np.zeros_like(start.cosines)
        if spread:
            inner = layer.architecture.patch_inputs or np.inf
            self.mode = merged(start, noise(start, np.zeros_like(start.cosines), start.gram, self.d, inner))
        self.sampled = 0
        self.records: list[list[float]] = []
        self.ahead: list[list[float]] = []
        self.causes = [[mean_cosine(start.cosines), 0.0, 0.0, 0.0]]
        self._record()

    def _record(self) -> None:
        block = np.ix_(self.kept, self.kept)
        part = Stream(self.stream.cosines[block], self.stream.powers[self.kept])
        size = abs(Sensitivity(part).of(self.mode[block])) if self.with_spread else 0.0
        rms = float(np.sqrt(np.mean(part.powers)))
        self.records.append([mean_cosine(part.cosines), size, effective_rank(part.cosines, self.d), rms])

    def step(self) -> None:
        """One layer."""
        attended, x = self.layer.attended, self.layer.input(self.stream)
        sharp = attended.sharp(x)
        self.sampled += sharp is not None
        entropy = attended.entropy(x) if sharp is None else sharp.entropy
        deviation = np.sqrt(attended.logit_variance(x))
        self.ahead.append([float(np.mean(v[self.kept])) for v in (deviation, entropy)])
        correction = None if sharp is None else sharp.gram - attended(x)
        changes = dict.fromkeys(CAUSES, 0.0)
        for kind in self.layer.kinds:
            self._add(kind, correction if kind != "perceptron" else None, changes)
        self.causes.append(list(changes.values()))
        self._record()

    def _add(self, kind: str, correction: np.ndarray | None, changes: dict[str, float]) -> None:
        """One branch: mean, fluctuations, norm."""
        stream, skip = self.stream, self.layer.architecture.skip
        branch = self.layer.branch(kind, stream, correction)
        old = skip**2 * stream.gram
        after = added(stream, branch.gram, skip)
        cosines = after.cosines + width_correction(old, branch.gram, self.d, branch.inner)
        after = Stream(np.clip(cosines, -1.0, 1.0), after.powers)
        if self.with_spread:
            modes = [self._carried(kind, correction), *noise(after, old, branch.gram, self.d, branch.inner)]
            self.mode = self.layer.settled_mode(after, merged(after, modes))
        self.stream = self.layer.settled(after)
        total = mean_cosine(after.cosines) - mean_cosine(stream.cosines)
        self._attribute(kind, stream, branch, total, changes)

    def _attribute(self, kind: str, stream: Stream, branch: Branch, total: float, changes: dict[str, float]) -> None:
        """Split the change of the mean cosine by leaving a part of the branch out (in infinite width)."""
        if kind == "attention":
            changes["attention"] += total
            return
        skip = self.layer.architecture.skip
        whole = mean_cosine(added(stream, branch.gram, skip).cosines)
        unbiased = mean_cosine(added(stream, branch.gram - branch.bias, skip).cosines)
        changes["mean bias"] += whole - unbiased
        if kind == "parallel":
            alone = added(stream, self.layer.branch("attention", stream).gram, skip)
            part = mean_cosine(alone.cosines) - mean_cosine(stream.cosines)
            changes["attention"] += part
            total -= part
        changes["perceptron"] += total - (whole - unbiased)

    def _carried(self, kind: str, correction: np.ndarray | None) -> np.ndarray:
        """The mode after the branch, whose own response to it counts: half the difference of both ends."""
        up, down = (
            added(end, self.layer.branch(kind, end, correction).gram, self.layer.architecture.skip)
            for end in around(self.stream, self.mode)
        )
        return 0.5 * (up.gram - down.gram)

    def prediction(self) -> Prediction:
        """What was recorded, by name."""
        cosine, spread, rank, rms = np.array(self.records).T
        logits, entropy = np.array(self.ahead).T
        return Prediction(
            cosine, spread, rank, rms, logits, entropy, np.array(self.causes), self.stream.cosines, self.sampled
        )


def effective_rank(cosines: np.ndarray, d: float) -> float:
    """exp of the entropy of the eigenvalues p_a of K/n, less the entropy that d coordinates cost.

    Tokens of d coordinates have a Gram matrix that fluctuates about K, which lowers the entropy by
    (1/2d) Σ_ab p_a p_b (log p_a - log p_b)/(p_a - p_b), n/2d for orthogonal tokens (Page's formula; derived).
    """
    p = np.maximum(np.linalg.eigvalsh(cosines) / len(cosines), 1e-14)
    log = np.log(p)
    gap, log_gap = p[:, None] - p, log[:, None] - log
    close = np.abs(gap) < 1e-9 * p[:, None]
    mean_inverse = np.where(close, 1 / p[:, None], log_gap / np.where(close, 1.0, gap))
    cost = 0.5 / d * float(p @ mean_inverse @ p)
    return float(np.exp(max(-float(p @ log) - cost, 0.0)))
