"""One layer applied again and again (ALBERT): its branches add up coherently, so similarity grows faster.

f^t is the branch of step t, h^{t+1} = (αh^t + f^t)/r^t. The same matrices serve every depth, so in wide models f^t and
f^s are jointly Gaussian with the products that their inputs have (matrices that are never transposed bring no other
correlations; Yang, *Scaling Limits of Wide Neural Networks with Weight Sharing*, arXiv:1902.04760), and the stream is
not independent of the branch it meets:

    Cov(f^t, f^s) = a E[Π^t X^{ts} Π^sᵀ]  or  a_m κ(X^{ts}),           X^{ts} the products of inputs at both depths,
    Cov(f^t, h^{s+1}) = [α Cov(f^t, h^s) + Cov(f^t, f^s)]/r^s,          Cov(f^t, h^0) = 0,
    G^{t+1} = α²G^t + α[Cov(f^t, h^t) + Cov(h^t, f^t)] + Cov(f^t, f^t), then the norm.

Only the row Cov(h^t, h^s), s ≤ t, is kept. Fresh layers lack the term in brackets. Uniform attention alone gives powers
of a Gaussian matrix, E|(I + M)^ℓ x|² = Σ_k C(ℓ,k)² v^k |x|², where fresh layers have (1 + v)^ℓ (tested). Mean cosines
without their 1/d terms. Cost: O(L² n³) in all, O(L² n²) where every token attends alike.

The spread over seeds is that of the power of what tokens have in common, carried through these powers of one matrix
(``growth_deviation``): large, because no other draw of it averages the first one out.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pathlines.limit.architecture.attention import AttendedGram, DrawnGram
from pathlines.limit.architecture.branch import Sensitivity, Stream, added, mean_cosine
from pathlines.limit.architecture.layer import Branch, LayerMap
from pathlines.limit.architecture.perceptron import perceptron_products
from pathlines.limit.architecture.walk import Walk

_SMALL = 1e-3


class Step(NamedTuple):
    """A branch that was added: its input's Gram matrix, and the factors of each token.

    ``enter`` turns the stream into the input, ``leave`` the branch into what is added (sandwich, output), ``settle``
    the sum into the stream (post). ``sharp``: its attention was drawn, not expanded.
    """

    kind: str
    x: np.ndarray
    enter: np.ndarray
    leave: np.ndarray
    settle: np.ndarray
    sharp: bool


class SharedWalk(Walk):
    """A walk that remembers what its one layer has done."""

    def __init__(
        self,
        layer: LayerMap[AttendedGram],
        start: Stream,
        spread: bool,
        keep: np.ndarray | None = None,
        whole: bool = True,
    ) -> None:
        self.steps: list[Step] = []
        self.row = [start.gram]
        self._attention = start.gram
        super().__init__(layer, start, spread, keep, whole)
        sensitivity = Sensitivity(start)
        common = sensitivity.of(self._common())
        self._first = sensitivity.of(self.mode) / common if common else 0.0  # a window of one hears nothing else
        self._powers = np.ones(1)
        self._linear = {"attention": layer.numbers.attention, "perceptron": linear_power(layer)}

    def _add(self, kind: str, drawn: DrawnGram | None, changes: dict[str, float]) -> None:
        stream, skip = self.stream, self.layer.architecture.skip
        fresh = self.layer.branch(kind, stream, drawn)
        step = self._step(kind, stream, fresh, drawn is not None)
        pulls = np.zeros((len(self.row), *stream.cosines.shape))
        for part in ("attention", "perceptron") if kind == "parallel" else (kind,):
            pulls += self._pulls(part, step)
            if kind == "parallel" and part == "attention":
                own = self.layer.branch(part, stream, drawn).gram
                self._attention = own + skip * (pulls[-1] + pulls[-1].T)
        bias = self._bias_pull(kind, fresh.bias)
        pull = skip * (pulls[-1] + pulls[-1].T)
        branch = Branch(fresh.gram + pull, fresh.inner, fresh.bias + skip * (bias[:, None] + bias))
        after = added(stream, branch.gram, skip)
        self._spread_out(kind, stream, branch)
        self.stream = self.layer.settled(after)
        settle = np.sqrt(self.stream.powers / after.powers)
        self.row = [settle[:, None] * (skip * old + new) for old, new in zip(self.row, pulls, strict=True)]
        self.row.append(self.stream.gram)
        self.steps.append(step._replace(settle=settle))
        total = mean_cosine(after.cosines) - mean_cosine(stream.cosines)
        self._attribute(kind, stream, branch, total, changes)

    def _step(self, kind: str, stream: Stream, fresh: Branch, sharp: bool) -> Step:
        x, ones = self.layer.input(stream), np.ones(len(stream.powers))
        step = Step(kind, x, np.sqrt(np.diag(x) / stream.powers), ones, ones, sharp)
        if self.layer.architecture.placement in ("sandwich", "output"):
            bare = np.diag(self._products(kind, step, step, x))
            step = step._replace(leave=np.sqrt(np.diag(fresh.gram) / np.where(bare > 0, bare, 1.0)))
        return step

    def _pulls(self, part: str, step: Step) -> np.ndarray:
        """Cov(f^t, h^s) for s = 0, …, t."""
        skip = self.layer.architecture.skip
        found = [np.zeros_like(step.x)]
        for old, products in zip(self.steps, self.row[:-1], strict=True):
            pull = skip * found[-1]
            if old.kind in (part, "parallel"):
                cross = step.enter[:, None] * products * old.enter
                pull = pull + step.leave[:, None] * self._products(part, step, old, cross) * old.leave
            found.append(pull * old.settle)
        return np.array(found)

    def _products(self, part: str, step: Step, old: Step, cross: np.ndarray) -> np.ndarray:
        """Cov(f^t, f^s) before any norm of its own."""
        numbers, attended = self.layer.numbers, self.layer.attended
        if part == "perceptron":
            found = perceptron_products(self.layer.architecture, cross, np.diag(step.x), np.diag(old.x)).gram
            return numbers.perceptron * found
        drawn = attended.sharp_between if step.sharp or old.sharp else attended.between
        return numbers.attention * drawn(cross, step.x, old.x)

    def _bias_pull(self, kind: str, bias: float | np.ndarray) -> np.ndarray:
        """Cov(f^t, h^t) by the perceptron's mean, which is the same vector at every depth."""
        found, skip = np.zeros(len(self.stream.powers)), self.layer.architecture.skip
        for old in self.steps:
            found = (skip * found + (bias if old.kind == kind else 0.0)) * old.settle
        return found

    def _record(self) -> None:
        if self.with_spread and self.steps:
            self._powers = self._raised()
            size = growth_deviation(self._powers, 1.0, self._directions())
            self.mode = np.hypot(self._first, size) * self._common()
        super()._record()

    def _common(self) -> np.ndarray:
        """What tokens have in common: the Gram matrix of what uniform attention makes of them."""
        weights = self.layer.attended.weights
        found = np.mean([w @ self.stream.gram @ w.T for w in weights], axis=0)
        return np.broadcast_to(found, self.stream.cosines.shape)

    def _raised(self) -> np.ndarray:
        """The polynomial of the layers so far times that of the last, per unit power of the branches' linear parts."""
        kinds, skip = self.layer.kinds, self.layer.architecture.skip
        total = 0.0
        for step in self.steps[-len(kinds) :]:
            parts = self._linear if step.kind == "parallel" else (step.kind,)
            total += sum(self._linear[part] for part in parts) * float(np.mean(step.enter * step.leave)) ** 2
        grown = np.append(self._powers, 0.0)
        grown[1:] += np.sqrt(total) / skip * self._powers
        return grown / grown.max()

    def _directions(self) -> float:
        """The width, less what the inner matrices of both branches take away."""
        first, second = self._linear.values()
        inner = first**2 / self.layer.numbers.value_size + second**2 / self.layer.hidden_units
        return 1 / (1 / self.d + inner / max((first + second) ** 2, 1e-300))

    def _attention_alone(self, stream: Stream) -> np.ndarray:
        return self._attention


def linear_power(layer: LayerMap[AttendedGram]) -> float:
    """a_m κ'(0): the power of the perceptron's linear part at inputs of mean square one."""
    if not layer.architecture.mlp_width:
        return 0.0
    one = np.ones(1)
    up, down = (
        perceptron_products(layer.architecture, np.array([[x]]), one, one).gram[0, 0] for x in (_SMALL, -_SMALL)
    )
    return layer.numbers.perceptron * float(up - down) / (2 * _SMALL)


def growth_deviation(coefficients: np.ndarray, v: float, d: float) -> float:
    """The standard deviation of ln|p(M)x|², p(z) = Σ c_k z^k, M a Gaussian d × d matrix of entries of variance v/d.

    The vectors y_k = M^k x have products y_j·y_k = v^{(j+k)/2} o_jk; o_jk is a walk along its diagonal, of steps of
    variance 1/d (2/d where j = k), because M maps each pair afresh (derived to first order in 1/d).
    """
    terms = coefficients * v ** (0.5 * np.arange(len(coefficients)))
    variance = 0.0
    for offset in range(len(terms)):
        tails = np.cumsum((terms[: len(terms) - offset] * terms[offset:])[::-1])[::-1]
        variance += 2 * np.sum(tails[1:] ** 2) if offset == 0 else 4 * np.sum(tails**2)
    return float(np.sqrt(variance / d) / np.sum(terms**2))
