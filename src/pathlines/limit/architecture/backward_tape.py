"""What gradients need of the forward pass: the stream in front of every branch, and how attention was computed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pathlines.architecture.record import Architecture
from pathlines.limit.architecture.attention import AttendedGram, DrawnGram
from pathlines.limit.architecture.backward_attention import DRAWN
from pathlines.limit.architecture.branch import Stream, added, stream_of, width_correction
from pathlines.limit.architecture.layer import Branch, LayerMap
from pathlines.limit.architecture.layers import layer_maps
from pathlines.limit.architecture.rank import directions_after


class Sublayer(NamedTuple):
    """One branch: the stream before it, its input X, the Gram matrix F that it adds, and the sum before any norm.

    ``directions``: D of the tokens in front of it. ``drawn``: heads of the forward pass, where it has drawn them;
    ``seed``: of those that gradients draw (None: expansion). ``maps``: the layer that it belongs to.
    """

    layer: int
    kind: str
    stream: Stream
    x: np.ndarray
    branch: np.ndarray
    after: Stream
    directions: float
    drawn: DrawnGram | None
    seed: int | None
    maps: LayerMap[AttendedGram]


class Tape(NamedTuple):
    """The first layer's map, all branches, the last stream, mean entropies of attention per layer over log of keys."""

    maps: LayerMap[AttendedGram]
    sublayers: list[Sublayer]
    last: Stream
    entropy: np.ndarray


def recorded(
    architecture: Architecture, start: np.ndarray, layers: int, samples: int, *, finite: bool, draw: bool
) -> Tape:
    """The forward pass. ``finite=False`` lets d → ∞; ``draw=False`` keeps to the expansion."""
    several = layer_maps(architecture, len(start), layers, samples)
    stream, found, entropy = stream_of(start), [], []
    d = float(several[0].numbers.dimension) if finite else np.inf
    inner = architecture.patch_inputs or architecture.embedding_width or np.inf
    directions = 1 / (1 / d + 1 / inner) if finite else np.inf
    for layer, maps in enumerate(several):
        attended = maps.attended
        log = np.log(np.maximum(attended.keys, 1.0))
        x = maps.input(stream)
        sharp = attended.sharp(x) if draw else None
        nats = attended.entropy(x) if sharp is None else sharp.found.entropy
        entropy.append(float(np.mean(nats) / max(np.mean(log), 1e-300)))
        variance = float(np.max(attended.logit_variance(x)))
        seed = None if sharp is None else attended.seed
        if draw and sharp is None and (variance > DRAWN or architecture.logit_cap):
            seed = layer + 1
        for kind in maps.kinds:
            branch = maps.branch(kind, stream, sharp if kind != "perceptron" else None)
            after = _summed(maps, stream, branch, finite)
            found.append(
                Sublayer(layer, kind, stream, maps.input(stream), branch.gram, after, directions, sharp, seed, maps)
            )
            if finite:
                directions = _directions(maps, kind, stream, branch, directions)
            stream = maps.settled(after)
    return Tape(several[0], found, stream, np.array(entropy))


def _summed(maps: LayerMap[AttendedGram], stream: Stream, branch: Branch, finite: bool) -> Stream:
    skip = maps.architecture.skip
    after = added(stream, branch.gram, skip)
    if not finite:
        return after
    old = skip**2 * stream.gram
    change = width_correction(old, branch.gram, maps.numbers.dimension, branch.inner, branch.normed)
    return Stream(np.clip(after.cosines + change, -1.0, 1.0), after.powers)


def _directions(maps: LayerMap[AttendedGram], kind: str, stream: Stream, branch: Branch, directions: float) -> float:
    """As the forward walk has them."""
    a, n = maps.architecture, len(stream.powers)
    before = a.skip**2 * stream.gram
    if kind == "attention":
        slope, units = 0.0, 1 / (1 / maps.numbers.value_size + 1 / a.attention_width + 1 / (a.heads * max(n - 1, 1)))
    else:
        slope, units = maps.perceptron_slope(stream) / float(np.mean(np.diag(before))), float(a.mlp_width)
    return directions_after(directions, before, branch.gram, slope, maps.numbers.dimension, units)
