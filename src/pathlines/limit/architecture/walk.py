"""The residual stream followed branch by branch: mean Gram matrix, one mode of fluctuations, what is recorded."""

from __future__ import annotations

import numpy as np

from pathlines.limit.architecture.attention import AttendedGram, DrawnGram
from pathlines.limit.architecture.branch import (
    Sensitivity,
    Stream,
    added,
    mean_cosine,
    merged,
    noise,
    width_correction,
)
from pathlines.limit.architecture.layer import Branch, LayerMap, around
from pathlines.limit.architecture.prediction import CAUSES, Prediction
from pathlines.limit.architecture.rank import directions_after, expected_rank

_HALVINGS = 8


class Walk:
    """The state of a prediction: stream, mode of fluctuations, and what was recorded."""

    def __init__(
        self,
        layer: LayerMap[AttendedGram],
        start: Stream,
        spread: bool,
        keep: np.ndarray | None = None,
        whole: bool = True,
    ) -> None:
        self.layer, self.stream, self.with_spread = layer, start, spread  # the layer that comes next
        self.whole = whole  # ranks and causes too
        self.kept = np.arange(len(start.powers)) if keep is None else np.asarray(keep)
        self.d = layer.numbers.dimension
        self.mode = np.zeros_like(start.cosines)
        inner = layer.architecture.patch_inputs or layer.architecture.embedding_width or np.inf
        self.directions = 1 / (1 / self.d + 1 / inner)
        self.drawn: DrawnGram | None = None
        if spread:
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
        rank = expected_rank(part.cosines, self.d, self.directions) if self.whole else np.nan
        self.records.append([mean_cosine(part.cosines), size, rank, rms])

    def step(self, layer: LayerMap[AttendedGram]) -> None:
        """Through one layer."""
        self.layer = layer
        attended, x = self.layer.attended, self.layer.input(self.stream)
        self.drawn = sharp = attended.sharp(x)
        self.sampled += sharp is not None
        entropy = attended.entropy(x) if sharp is None else sharp.found.entropy
        deviation = np.sqrt(attended.logit_variance(x))
        self.ahead.append([float(np.mean(v[self.kept])) for v in (deviation, entropy)])
        changes = dict.fromkeys(CAUSES, 0.0)
        for kind in self.layer.kinds:
            self._add(kind, sharp if kind != "perceptron" else None, changes)
        self.causes.append(list(changes.values()))
        self._record()

    def _add(self, kind: str, drawn: DrawnGram | None, changes: dict[str, float]) -> None:
        """One branch: mean, fluctuations, norm."""
        stream, skip = self.stream, self.layer.architecture.skip
        branch = self.layer.branch(kind, stream, drawn)
        old = skip**2 * stream.gram
        after = added(stream, branch.gram, skip)
        cosines = after.cosines + width_correction(old, branch.gram, self.d, branch.inner, branch.normed)
        after = Stream(np.clip(cosines, -1.0, 1.0), after.powers)
        if self.with_spread:
            fresh = noise(after, old, branch.gram, self.d, branch.inner, branch.normed)
            modes = [self._carried(kind, drawn), *fresh]
            self.mode = self.layer.settled_mode(after, merged(after, modes))
        self.stream = self.layer.settled(after)
        if not self.whole:
            return
        self._spread_out(kind, stream, branch)
        total = mean_cosine(after.cosines) - mean_cosine(stream.cosines)
        self._attribute(kind, stream, branch, total, changes)

    def _spread_out(self, kind: str, stream: Stream, branch: Branch) -> None:
        """The directions that tokens fill, after the branch."""
        before = self.layer.architecture.skip**2 * stream.gram
        slope = 0.0 if kind == "attention" else self.layer.perceptron_slope(stream) / float(np.mean(np.diag(before)))
        self.directions = directions_after(self.directions, before, branch.gram, slope, self.d, self._units(kind))

    def _units(self, kind: str) -> float:
        """Of the inner matrices, as far as products of what tokens do not share are concerned."""
        a, n = self.layer.architecture, len(self.stream.powers)
        if kind != "attention":
            return a.mlp_width
        return 1 / (1 / self.layer.numbers.value_size + 1 / a.attention_width + 1 / (a.heads * (n - 1)))

    def _attribute(self, kind: str, stream: Stream, branch: Branch, total: float, changes: dict[str, float]) -> None:
        """Split the change of the mean cosine by leaving a part of the branch out (in infinite width)."""
        if kind == "attention":
            changes["attention"] += total
            return
        skip = self.layer.architecture.skip
        whole = mean_cosine(added(stream, branch.gram, skip).cosines)
        unbiased = mean_cosine(added(stream, _without_bias(branch), skip).cosines)
        changes["mean bias"] += whole - unbiased
        if kind == "parallel":
            alone = added(stream, self._attention_alone(stream), skip)
            part = mean_cosine(alone.cosines) - mean_cosine(stream.cosines)
            changes["attention"] += part
            total -= part
        changes["perceptron"] += total - (whole - unbiased)

    def _attention_alone(self, stream: Stream) -> np.ndarray:
        """The part of two parallel branches that attention has."""
        return self.layer.branch("attention", stream, self.drawn).gram

    def _carried(self, kind: str, drawn: DrawnGram | None) -> np.ndarray:
        """The mode after the branch, whose own response to it counts: half the difference of both ends.

        The ends of a mode that is no small one need not be products of any tokens; then the response is that to a part.
        """
        for part in 0.5 ** np.arange(_HALVINGS):
            ends = around(self.stream, part * self.mode)
            grams = [self.layer.branch(kind, end, drawn).gram for end in ends]
            if all(np.all(np.diag(gram) >= 0) for gram in grams):
                up, down = (added(*pair, self.layer.architecture.skip) for pair in zip(ends, grams, strict=True))
                return 0.5 / part * (up.gram - down.gram)
        return self.layer.architecture.skip**2 * self.mode

    def prediction(self) -> Prediction:
        """What was recorded, by name."""
        cosine, spread, rank, rms = np.array(self.records).T
        logits, entropy = np.array(self.ahead).T
        return Prediction(
            cosine, spread, rank, rms, logits, entropy, np.array(self.causes), self.stream.cosines, self.sampled
        )


def _without_bias(branch: Branch) -> np.ndarray:
    """The branch less what all tokens share, which is never more than the shortest token has.

    (Mean and Gram matrix come from different quadratures, and a branch that is all bias differs from it by rounding.)
    """
    bias = np.broadcast_to(branch.bias, branch.gram.shape)
    own, common = np.diag(branch.gram), np.diag(bias)
    share = np.min(own[common > 0] / common[common > 0], initial=1.0)
    found: np.ndarray = branch.gram - share * bias
    return found
