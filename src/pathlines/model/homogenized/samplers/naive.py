"""Full matrices: any law of heads, and the reference for all other samplers."""

from __future__ import annotations

import math

from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.model.homogenized.samplers.choice import ENTRY, MULTIPLY, NORMAL, SAMPLERS, Sampler
from pathlines.weights.gaussian import GaussianHeads


def _cost(model: RandomTransformer, n: int) -> float:
    """O(H(n²d + nd²)) and 3Hd² normals (none for a mixture)."""
    d, law = model.d, model.law
    inner = min(law.qk_dim, d) if isinstance(law, GaussianHeads) and math.isfinite(law.qk_dim) else d
    normals = d * d + 2 * d * inner if isinstance(law, GaussianHeads) else 0
    products = n * d * (d + 2 * inner) + n * n * (d + inner)
    return model.heads * (NORMAL * normals + MULTIPLY * products + ENTRY * n * n)


SAMPLERS.register(
    "naive",
    Sampler(lambda model, n: model, lambda model, n, ambient: None, _cost, "full matrices from the law of the heads"),
)
