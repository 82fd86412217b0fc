"""The predictor: every layer's Gram matrix from a configuration and token ids, without weights.

The residual stream is followed by its mean cosines K and mean squares r², branch by branch:

    K, r²  →  X = norm(h)  →  F = a E[ΠXΠᵀ]  or  a_m κ(X)  →  G' = α²G + F  →  norm

(``attention``, ``perceptron``, ``branch``). Finite width enters twice: in the mean of cosines whose lengths fluctuate,
and in the spread of the mean cosine over seeds, carried along as one mode of fluctuations that every branch turns and
enlarges. While the mean cosine c is small the spread is 2c√(τ/d), as in arXiv:2604.01978.

Weights are initial and independent in every layer; where one layer serves all depths (ALBERT) the stream meets its own
past, and ``shared`` has the law. Cost of a layer: some thirty products of n × n matrices with spread, ten without:
10 ms at n = 128.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pathlines.architecture.read import Source, architecture_of
from pathlines.architecture.record import Architecture
from pathlines.foundation.errors import finite_array, positive_integer
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.architecture.branch import mean_cosine, stream_of
from pathlines.limit.architecture.layers import layer_maps
from pathlines.limit.architecture.prediction import Prediction
from pathlines.limit.architecture.sampled import SAMPLES
from pathlines.limit.architecture.shared import SharedWalk
from pathlines.limit.architecture.start import Tokens, start_gram, usual_tokens
from pathlines.limit.architecture.walk import Walk

SOURCES = (HOMOGENIZED,)
_FEW = 16


def predict(
    architecture: Source,
    tokens: Tokens | None = None,
    *,
    gram: np.ndarray | None = None,
    layers: int | None = None,
    spread: bool = True,
    keep: np.ndarray | None = None,
) -> Prediction:
    """Mean cosine, its spread and the other observables after every layer, from a configuration alone.

    Args:
        architecture: a config.json, TOML file or folder, the fields of a configuration, six numbers, or the record.
        tokens: token ids, or how many different tokens; 64 (or the context) by default.
        gram: the Gram matrix before the first layer, instead of tokens.
        layers: how many, those of the architecture by default. The more, the further the curve goes.
        spread: whether to follow the standard deviation over seeds too, at three times the cost.
        keep: indices of the tokens that observables are taken over (causes: all); every token takes part in the layers.
    """
    architecture = architecture_of(architecture)
    depth = architecture.layers if layers is None else positive_integer("layers", layers)
    if gram is None:
        start = start_gram(architecture, usual_tokens(architecture) if tokens is None else tokens)
    else:
        start = finite_array("gram", gram, ("n", "n")).astype(np.float64)
    return _walked(architecture, start, depth, SAMPLES, spread, keep)


def cosine_curve(architecture: Architecture, tokens: Tokens, layers: int | None = None) -> np.ndarray:
    """The mean cosine alone, after 0, 1, …, L layers; cheap, for searches (sharp heads by fewer draws)."""
    depth = architecture.layers if layers is None else positive_integer("layers", layers)
    start = start_gram(architecture, tokens)
    if architecture.shared:
        return _walked(architecture, start, depth, _FEW, spread=False).mean_cosine
    stream = stream_of(start)
    found = [mean_cosine(stream.cosines)]
    for layer in layer_maps(architecture, len(start), depth, samples=_FEW):
        stream = layer.advanced(stream, layer.attended.sharp(layer.input(stream)))
        found.append(mean_cosine(stream.cosines))
    return np.array(found)


class Band(NamedTuple):
    """The mean cosine after a layer, and its standard deviation over seeds."""

    cosine: float
    spread: float


def cosine_band(architecture: Architecture, tokens: Tokens, layers: int) -> Band:
    """What is needed to know how many seeds meet a target; for searches (sharp heads by fewer draws)."""
    found = _walked(architecture, start_gram(architecture, tokens), layers, _FEW, spread=True, whole=False)
    return Band(float(found.mean_cosine[-1]), float(found.spread[-1]))


def _walked(
    architecture: Architecture,
    start: np.ndarray,
    depth: int,
    samples: int,
    spread: bool,
    keep: np.ndarray | None = None,
    whole: bool = True,
) -> Prediction:
    layers = layer_maps(architecture, len(start), depth, samples)
    walk = (SharedWalk if architecture.shared else Walk)(layers[0], stream_of(start), spread, keep, whole)
    for layer in layers:
        walk.step(layer)
    return walk.prediction()
