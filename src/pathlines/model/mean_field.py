"""From tokens to their law: the mean-field limit of a model, a model again."""

from __future__ import annotations

from typing import Any

from pathlines.attention import SoftmaxAttention, UnnormalisedAttention
from pathlines.foundation.errors import ArgumentError, positive_integer
from pathlines.foundation.module import exactly
from pathlines.foundation.schedule import varies
from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.model.homogenized.transported_measure import TransportedMeasure
from pathlines.model.metastability.circle_density import CircleDensity
from pathlines.model.metastability.zonal import ZonalMeasure
from pathlines.model.self_attention import SelfAttention
from pathlines.weights import IdentityWeights


def mean_field(model: Any, d: int = 2, **options: Any) -> CircleDensity | ZonalMeasure | TransportedMeasure:
    """The equation of the law of infinitely many tokens.

    Args:
        model: plain self-attention on the sphere (Q = K = V = I; softmax or unnormalised), or a random transformer.
        d: where plain tokens live: 2, densities on the circle by their Fourier moments; d ≥ 3, laws about an axis. A
            random transformer knows its own. The larger, the fewer clusters form.
        options: how finely it is resolved: ``degree``, ``nodes`` of the density or measure.

    Emergence of meta-stable clustering in mean-field transformer models, arXiv:2410.23228; Homogenized Transformers,
    arXiv:2604.01978.
    """
    if isinstance(model, RandomTransformer):
        return TransportedMeasure(model)
    if not isinstance(model, SelfAttention) or not _is_plain(model):
        raise ArgumentError(
            "Argument `model` must be SelfAttention with Q = K = V = I on the sphere or a RandomTransformer, "
            f"but is {type(model).__name__} with other parts: its mean field needs particles."
        )
    kind = model.attention
    shift = float(kind.shift) if isinstance(kind, UnnormalisedAttention) else 0.0
    chosen = {"unnormalised": isinstance(kind, UnnormalisedAttention), "shift": shift, **options}
    if positive_integer("d", d, 2) == 2:
        return CircleDensity(float(model.beta), **chosen)
    return ZonalMeasure(d, float(model.beta), **chosen)


def _is_plain(model: SelfAttention) -> bool:
    known = exactly(model.attention, SoftmaxAttention) or exactly(model.attention, UnnormalisedAttention)
    if not known or varies(model) or not exactly(model.weights, IdentityWeights):
        return False
    alone = model.perceptron is None and model.mask is None and not model.frozen
    return float(model.weights.value) == 1 and alone and model.on_sphere
