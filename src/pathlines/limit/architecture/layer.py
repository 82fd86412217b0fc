"""One layer of an architecture as a map of Gram matrices: norms, branches, residual multipliers."""

from __future__ import annotations

from typing import Generic, NamedTuple, TypeVar

import numpy as np

from pathlines.architecture.record import Architecture
from pathlines.limit.architecture.attention import Attended
from pathlines.limit.architecture.branch import Stream, added, stream_of, width_correction
from pathlines.limit.architecture.numbers import Numbers
from pathlines.limit.architecture.perceptron import kurtosis, perceptron_gram
from pathlines.limit.architecture.start import normalised

_SMALL = 1e-3
A = TypeVar("A", bound=Attended)


class Branch(NamedTuple):
    """Gram matrix of a branch, the units of its inner matrix, and its common part (the square of a mean).

    ``normed``: a norm of its own fixes its lengths (sandwich, output).
    """

    gram: np.ndarray
    inner: float
    bias: float | np.ndarray = 0.0
    normed: bool = False


class LayerMap(Generic[A]):
    """The branches of one architecture on n tokens, and what its norms make of the stream.

    ``attended`` maps the Gram matrix of a branch's input to E[ΠXΠᵀ]; it is the only place where tokens meet.
    """

    def __init__(self, architecture: Architecture, attended: A) -> None:
        self.architecture, self.attended = architecture, attended
        self.numbers = Numbers.of(architecture)
        excess = max(kurtosis(architecture) - 1, 1e-12)
        self.hidden_units = 2 * max(architecture.mlp_width, 1) / excess

    @property
    def kinds(self) -> tuple[str, ...]:
        """The branches that are added one after the other."""
        if not self.architecture.mlp_width:
            return ("attention",)
        return ("parallel",) if self.architecture.placement == "parallel" else ("attention", "perceptron")

    def input(self, stream: Stream) -> np.ndarray:
        """X, the Gram matrix that a branch sees."""
        a = self.architecture
        bare = a.placement in ("post", "output")
        return stream.gram if bare else normalised(stream.gram, a.norm_gain, a.norm_epsilon)

    def branch(self, kind: str, stream: Stream, attended: Attended | None = None) -> Branch:
        """F of the branch at a stream; ``attended`` replaces the expansion of E[ΠXΠᵀ]."""
        x = self.input(stream)
        parts = []
        if kind != "perceptron":
            products = self.numbers.attention * (attended or self.attended)(x)
            parts.append(self._shaped(products, self.numbers.value_size, self.architecture.attention_residual))
        if kind != "attention":
            found = perceptron_gram(self.architecture, x)
            shaped = self._shaped(
                self.numbers.perceptron * found.gram, self.hidden_units, self.architecture.mlp_residual
            )
            ratio = shaped.gram[0, 0] / found.gram[0, 0] if found.gram[0, 0] > 0 else 0.0
            parts.append(shaped._replace(bias=ratio * found.bias))
        return parts[0] if len(parts) == 1 else _together(*parts)

    def bare(self, kind: str, x: np.ndarray, attended: Attended | None = None) -> np.ndarray:
        """F of one branch at its input X, before any norm of its own."""
        if kind == "attention":
            return self.numbers.attention * (attended or self.attended)(x)
        return self.numbers.perceptron * perceptron_gram(self.architecture, x).gram

    def perceptron_slope(self, stream: Stream) -> float:
        """How much the perceptron's products rise with the cosines of its tokens."""
        away = _SMALL * (1 - stream.cosines)
        moved, now = (
            self.branch("perceptron", Stream(cosines, stream.powers)).gram
            for cosines in (stream.cosines + away, stream.cosines)
        )
        return float(np.sum(moved - now) / max(np.sum(away), 1e-300))

    def _shaped(self, gram: np.ndarray, inner: float, residual: float) -> Branch:
        """Behind its own norm, where the placement is sandwich or output, only the directions of a branch count."""
        a = self.architecture
        normed = a.placement in ("sandwich", "output")
        if normed and np.all(np.diag(gram) > 0):
            unscaled = gram / residual**2 if residual else gram
            gram = residual**2 * normalised(unscaled, a.norm_gain, a.norm_epsilon)
        return Branch(gram, inner, normed=normed)

    def advanced(self, stream: Stream, attended: Attended | None = None, finite_width: bool = True) -> Stream:
        """The mean stream after one layer."""
        skip = self.architecture.skip
        for kind in self.kinds:
            branch = self.branch(kind, stream, attended)
            after = added(stream, branch.gram, skip)
            if finite_width:
                old = skip**2 * stream.gram
                change = width_correction(old, branch.gram, self.numbers.dimension, branch.inner, branch.normed)
                after = Stream(np.clip(after.cosines + change, -1.0, 1.0), after.powers)
            stream = self.settled(after)
        return stream

    def settled(self, stream: Stream) -> Stream:
        """The stream after the norm of post-normalisation; the same otherwise."""
        a = self.architecture
        if a.placement != "post":
            return stream
        return Stream(stream.cosines, a.norm_gain**2 * stream.powers / (stream.powers + a.norm_epsilon))

    def settled_mode(self, stream: Stream, mode: np.ndarray) -> np.ndarray:
        """A small change of the Gram matrix, after that norm."""
        if self.architecture.placement != "post":
            return mode
        root = np.sqrt(stream.powers)
        change = mode / (root[:, None] * root)
        own = np.diag(change)
        return self.architecture.norm_gain**2 * (change - 0.5 * stream.cosines * (own[:, None] + own))


def _together(first: Branch, second: Branch) -> Branch:
    """Two independent branches added at once; the fluctuations of the sum by their powers."""
    one, two = (np.trace(b.gram) for b in (first, second))
    total = (one / max(one + two, 1e-300)) ** 2 / first.inner + (two / max(one + two, 1e-300)) ** 2 / second.inner
    return Branch(first.gram + second.gram, 1 / max(total, 1e-300), second.bias)


def around(stream: Stream, mode: np.ndarray) -> tuple[Stream, Stream]:
    """The streams one standard deviation up and down."""
    gram = stream.gram
    floor = 0.1 * stream.powers
    found = []
    for sign in (1.0, -1.0):
        moved = gram + sign * mode
        np.fill_diagonal(moved, np.maximum(np.diag(moved), floor))
        found.append(stream_of(moved))
    return found[0], found[1]
