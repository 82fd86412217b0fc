"""Reductions of a model that is there: its parameters are read off it, nobody types them again.

A reduction knows the observable that it predicts and gives its curve at the records of a run (``curve``), so that
``pl.compare`` puts the two side by side. Models are looked at through ``net.parameters`` alone: theory imports no
engine.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any, ClassVar

import msgspec
import numpy as np

from pathlines.foundation.errors import ArgumentError, finite_array, positive_integer, require
from pathlines.limit.homogenized.attended import sampled_attention, uniform_attended
from pathlines.limit.homogenized.gram import check_start, gram_flow, gram_layers
from pathlines.limit.homogenized.overlap_curve import layer_map_curve, overlap_curve
from pathlines.limit.homogenized.participation import check_overlap


class Simplex(msgspec.Struct, frozen=True):
    """Tokens that stay equiangular, with their common overlap γ: a map of layers, and an ODE in τ = vℓ.

    Homogenized Transformers, arXiv:2604.01978. ``width`` is d, ``head_width`` p, ``logit_scale`` b, ``layer_time`` v.
    """

    observable: ClassVar[str] = "mean_overlap"
    label: ClassVar[str] = "simplex"

    n: int
    logit_scale: float
    layer_time: float
    width: float
    head_width: float
    overlap: float

    def layers(self, depth: int) -> np.ndarray:
        """γ after 0, 1, …, ``depth`` layers."""
        found = layer_map_curve(
            depth, self.n, self.logit_scale, self.layer_time, d=self.width, p=self.head_width, gamma0=self.overlap
        )
        return found.overlap

    def flow(self, tau: Any) -> np.ndarray:
        """γ(τ) of the limit v → 0."""
        return overlap_curve(tau, self.n, self.logit_scale, d=self.width, p=self.head_width, gamma0=self.overlap)

    def curve(self, data: Mapping[Any, Any]) -> np.ndarray:
        """At the records of a run: by layers where they are those of the network, else by their diffusive time τ."""
        if _counts_layers(data, self.layer_time):
            layers = np.asarray(data["layer"])
            return self.layers(int(layers.max()))[layers]
        return self.flow(np.asarray(data["tau"]))


class GramReduction(msgspec.Struct, frozen=True):
    """The mean Gram matrix K of tokens, by layers or in τ; E[ΠKΠᵀ] by draws of the logits.

    Homogenized Transformers, arXiv:2604.01978: for centred Gaussian heads the Gram matrix moves by itself, and for
    large d it does so without noise.
    """

    observable: ClassVar[str] = "mean_overlap"
    label: ClassVar[str] = "Gram matrix"

    start: np.ndarray
    logit_scale: float
    layer_time: float
    width: float
    head_width: float
    samples: int
    seed: int

    @property
    def attended(self) -> Any:
        """K → S(K)."""
        if self.logit_scale == 0:
            return uniform_attended
        draw = partial(sampled_attention, b=self.logit_scale, p=self.head_width, samples=self.samples, seed=self.seed)
        return lambda gram: draw(gram).mean

    def layers(self, depth: int) -> np.ndarray:
        """K after 0, 1, …, ``depth`` layers."""
        return gram_layers(self.start, self.attended, depth, self.layer_time, d=self.width)

    def flow(self, tau: Any) -> np.ndarray:
        """K(τ) of the limit v → 0."""
        return gram_flow(self.start, self.attended, tau, d=self.width)

    def curve(self, data: Mapping[Any, Any]) -> np.ndarray:
        """The mean overlap at the records of a run."""
        if _counts_layers(data, self.layer_time):
            layers = np.asarray(data["layer"])
            grams = self.layers(max(int(layers.max()), 1))[layers]
        else:
            grams = self.flow(np.asarray(data["tau"]))
        n = len(self.start)
        return (grams.sum(axis=(1, 2)) - n) / (n * (n - 1))


def simplex(net: Any, n: int, overlap: float = 0.0) -> Simplex:
    """The overlap of n equiangular tokens under a random transformer.

    Args:
        net: a ``RandomTransformer`` with centred Gaussian heads.
        n: tokens n ≥ 2. The more, the later they collapse.
        overlap: γ at the start, 0 (orthogonal tokens) by default. The larger, the sooner they are one point.
    """
    b, v, d, p = _numbers(net)
    count = positive_integer("n", n, 2)
    return Simplex(count, b, v, d, p, check_overlap("overlap", overlap, count, collapsed=False))


def gram(net: Any, start: Any, *, samples: int = 1024, seed: int = 0) -> GramReduction:
    """The Gram matrix of any tokens under a random transformer.

    Args:
        net: a ``RandomTransformer`` with centred Gaussian heads.
        start: unit tokens (n, d), or their Gram matrix (n, n) with unit diagonal.
        samples: draws of the logits for each average. The more, the smaller its error (like their
            number or faster), and the slower.
        seed: of those draws.
    """
    b, v, d, p = _numbers(net)
    rows = finite_array("start", start, ("n", "m")).astype(float)
    square = rows.shape[0] == rows.shape[1]
    # Unit rows of unit diagonal are the identity, for which both readings agree.
    is_gram = square and np.allclose(np.diagonal(rows), 1, atol=1e-9) and np.allclose(rows, rows.T, atol=1e-9)
    given = check_start(rows if is_gram else rows @ rows.T)
    return GramReduction(given, b, v, d, p, positive_integer("samples", samples), positive_integer("seed", seed, 0))


def _numbers(net: Any) -> tuple[float, float, float, float]:
    """(b, v, d, p) of a random transformer."""
    found: Any = getattr(net, "parameters", None)
    law: Any = getattr(net, "law", None)
    require(found is not None and law is not None, "net", "be a RandomTransformer", net)
    if found.logit_scale is None or found.layer_time is None or not law.centred:
        raise ArgumentError("Argument `net` must have centred Gaussian heads: other laws have no reduction here.")
    return float(found.logit_scale), float(found.layer_time), float(found.d), float(found.qk_dim)


def _counts_layers(data: Mapping[Any, Any], layer_time: float) -> bool:
    """Whether the records of a run are layers of the network itself, and not steps of one of its limits."""
    if "tau" not in data:
        raise ArgumentError("Argument `data` must be records over layers of a random transformer or of its limits.")
    layers, tau = np.asarray(data["layer"]), np.asarray(data["tau"])
    return bool(math.isfinite(layer_time) and np.allclose(layer_time * layers, tau, rtol=1e-6, atol=1e-12))
