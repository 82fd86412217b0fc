"""B14: gradients where one layer serves every depth (derived)."""

from __future__ import annotations

import numpy as np

from pathlines.architecture import Architecture
from pathlines.claim.advise.gradient_stack import CONVENTION, GradientStack, drawn_samples, stack_of, typical
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import relative
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.limit.architecture.backward_shared import shared_gradients

KINDS = ("query", "key", "value", "output", "mlp_in", "mlp_out")


def one_layer(s: GradientStack) -> Architecture:
    """Post-norm, GELU, one set of weights."""
    return stack_of(s, placement="post", activation="gelu", shared=True)


def measure_shared(s: GradientStack) -> Evidence:
    """‖g_ℓ‖ over that of the top, and ‖∂W‖ summed over depth by the chain rule."""
    seeds = drawn_samples(s, one_layer(s))
    stream, error = typical([seed.stream()[:-1] / seed.stream()[-1] for seed in seeds])
    matrices = typical([[seed.matrices()[k][0] for k in KINDS] for seed in seeds])
    curve = Curve("measured", np.arange(s.layers), stream, error)
    return Evidence({"stream": stream, "matrices": matrices[0]}, {"stream": error, "matrices": matrices[1]}, (curve,))


def predict_shared(s: GradientStack) -> Evidence:
    """Products of all pairs of depths."""
    found = shared_gradients(one_layer(s), s.n)
    stream = found.stream[:-1] / found.stream[-1]
    values = {"stream": stream, "matrices": np.array([found.matrices[k] for k in KINDS])}
    why = "weaker branches or a wider model: the law is that of large width, and powers of one matrix differ by seed"
    strong = s.layers * max(s.attention_power, s.mlp_power) > 6 or s.width < 96
    return Evidence(
        values,
        curves=(Curve("predicted", np.arange(s.layers), stream),),
        undecided=dict.fromkeys(values, why) if strong else {},
    )


claim(
    "advise/B14",
    HOMOGENIZED,
    "one layer for every depth: gradients dip, and add up in its matrices",
    "Where one layer serves every depth, gradients meet branches that know them: norms dip in the middle of the stack, "
    "and gradients of its matrices are coherent sums over depth.",
    where="derived; gradients of configured architectures, no statement in the paper",
    models=(),
    quick=GradientStack(
        width=128, heads=4, mlp_width=512, n=24, layers=6, attention_power=0.15, mlp_power=0.15, runs=24
    ),
    full=GradientStack(
        width=256, heads=4, mlp_width=1024, n=32, layers=10, attention_power=0.09, mlp_power=0.09, runs=24
    ),
    within={
        "stream": relative(0.03, "terms of order 1/d", 5.0),
        "matrices": relative(0.1, "terms of order 1/d of coherent sums: 6 to 9 % at a width of 256", 5.0),
    },
    blind={"matrices": "the law is good to 10 %"},
    simulate=measure_shared,
    predict=predict_shared,
    axes=Axes("layer", "gradient norm of the stream over that of the top"),
    marks=("derived",),
    convention=CONVENTION,
)
