"""The fast summary: the layer map on the simplex, where all tokens are equally far apart and nothing is masked.

Two tokens stand for all pairs: their attended products are P = γ+(1-γ)f and S = γ+(1-γ)g of n keys
(``simplex_table``), and every other step of a layer is that of the full Gram map. Any context length costs the same,
which is where it serves: n × n matrices beyond a few hundred tokens are slow. A causal model is not a simplex; its
first tokens see few keys and are less alike than this says.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pathlines.architecture.record import Architecture
from pathlines.foundation.errors import ArgumentError, positive_integer
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.architecture.attention import Attended
from pathlines.limit.architecture.branch import stream_of
from pathlines.limit.architecture.layer import LayerMap
from pathlines.limit.architecture.numbers import Numbers
from pathlines.limit.architecture.start import start_gram
from pathlines.limit.homogenized.simplex import SimplexTable, simplex_table

SOURCES = (HOMOGENIZED,)
NARROW = 1.0
"""The logit scale from which the width of a head matters, and tables take seconds."""


class SimplexCurve(NamedTuple):
    """Cosine of any two tokens and mean square of the stream after 0, 1, … layers."""

    cosine: np.ndarray
    power: np.ndarray


class SimplexAttended(Attended):
    """[[q, r], [r, q]] ↦ its attended products among n keys, all of them at the same overlap r/q."""

    def __init__(self, architecture: Architecture, n: int) -> None:
        numbers = Numbers.of(architecture)
        self.n, self.b, self.scaled = n, numbers.b, not architecture.qk_norm
        self.p = float(numbers.p) if numbers.b >= NARROW else math.inf
        self._tables: dict[float, SimplexTable] = {}

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """From the table of the logit scale b q."""
        own, pair = x[0, 0], x[0, 1]
        b = float(f"{self.b * (own if self.scaled else 1.0):.4g}")
        if b not in self._tables:
            self._tables[b] = simplex_table(self.n, b, self.p)
        same, other = self._tables[b].attended(min(pair / own, 1.0))
        return own * np.array([[same, other], [other, same]])


def simplex_summary(
    architecture: Architecture, n: int | None = None, *, layers: int | None = None, finite_width: bool = True
) -> SimplexCurve:
    """From n different tokens (default: the whole context); ``finite_width=False`` lets d → ∞."""
    if architecture.by_layer:
        raise ArgumentError("Argument `architecture` must have equal layers: the simplex map has one.")
    keys = positive_integer("n", architecture.context if n is None else n, least=2)
    depth = architecture.layers if layers is None else positive_integer("layers", layers)
    gram = start_gram(architecture, 3)[1:, 1:]  # without the class token, which is one of many
    layer = LayerMap(architecture, SimplexAttended(architecture, keys))
    stream, found = stream_of(gram), []
    for _ in range(depth):
        found.append((stream.cosines[0, 1], stream.powers[0]))
        stream = layer.advanced(stream, finite_width=finite_width)
    found.append((stream.cosines[0, 1], stream.powers[0]))
    return SimplexCurve(*np.array(found).T)
