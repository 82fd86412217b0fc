"""B01–B04, B13, B19, B26, B28: gradient norms of whole stacks, by placement of norms, variant, and remedy (derived)."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Any

import msgspec
import numpy as np

from pathlines.architecture import Architecture
from pathlines.claim.advise.gradient_stack import (
    CONVENTION,
    Cases,
    GradientStack,
    drawn_samples,
    measured_stacks,
    predicted_stacks,
    stack_of,
    too_rough,
    typical,
)
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import means
from pathlines.limit.architecture.gradients import predict_gradients

AXES = Axes("layer", "gradient norm of the stream over that of the top")
WHERE = "derived; gradients of configured architectures, no statement in the paper"
POST = (
    "norms of single post-norm seeds differ by 13 to 22 %, and the law itself is good to 5 % on average (13 % at worst)"
)
SEEDS = "seeds differ by 7 to 16 %: a hundred of them would do, for minutes"


def pre_cases(s: GradientStack) -> Cases:
    """Pre-norm, ReLU, full mask."""
    return {"stream": (stack_of(s), "iid")}


claim(
    "advise/B01",
    HOMOGENIZED,
    "gradients of a pre-norm stack",
    "With norms before the branches Γ = α²Γ' + N[B[Γ']], from the loss down: norms of the stream's gradients and of "
    "every matrix's, from the configuration alone.",
    where=WHERE,
    models=(),
    quick=GradientStack(runs=24),
    full=GradientStack(runs=64),
    within={
        "stream": relative(0.03, "terms of order 1/d: 1 % on average, 2.2 % at worst where it was derived", 5.0),
        "stream_matrices": relative(0.05, "the same; 4.1 % for queries, from the forward pass", 5.0),
    },
    blind={"stream_matrices": "queries' 4 to 5 % come from the forward pass: full size would notice 6 %"},
    simulate=partial(measured_stacks, pre_cases),
    predict=partial(predicted_stacks, pre_cases),
    axes=AXES,
    marks=("derived",),
    convention=CONVENTION,
)


def post_cases(s: GradientStack) -> Cases:
    """Post-norm: ReLU with a full mask, GELU with a causal one."""
    return {
        "full": (stack_of(s, placement="post"), "iid"),
        "causal": (stack_of(s, placement="post", activation="gelu", mask="causal"), "iid"),
    }


claim(
    "advise/B02",
    HOMOGENIZED,
    "gradients of a post-norm stack",
    "With norms after the sums Γ̃ = N[Γ'], Γ = α²Γ̃ + B[Γ̃], N without the share of the radial direction: the norm above "
    "has removed it already.",
    where=WHERE,
    models=(),
    quick=GradientStack(runs=10),
    full=GradientStack(runs=100),
    within={
        name: relative(0.08, "second-order fluctuations of lengths: 5 % on average, 13 % at worst", 5.0)
        for name in ("full", "full_matrices", "causal", "causal_matrices")
    },
    blind=dict.fromkeys(("full", "full_matrices", "causal", "causal_matrices"), POST),
    simulate=partial(measured_stacks, post_cases),
    predict=partial(predicted_stacks, post_cases),
    axes=AXES,
    marks=("derived",),
    convention=CONVENTION,
)


def other_cases(s: GradientStack) -> Cases:
    """Sandwich from a common gradient; parallel branches from the last token's."""
    sharper = msgspec.structs.replace(s, logit_scale=1.0)
    return {
        "sandwich": (stack_of(s, placement="sandwich"), "common"),
        "parallel": (stack_of(sharper, placement="parallel", activation="gelu", mask="causal"), "last"),
    }


claim(
    "advise/B03",
    HOMOGENIZED,
    "gradients with norms on both sides, and with parallel branches",
    "Norms on both sides: Γ = α²Γ' + N[B[s²N_f[Γ']]]; branches side by side: Γ = α²Γ' + N[A[Γ'] + M[Γ']].",
    where=WHERE,
    models=(),
    quick=GradientStack(runs=10),
    full=GradientStack(runs=100),
    within={
        "sandwich": relative(0.05, "terms of order 1/d: 2.1 % on average, 7.5 % at worst", 5.0),
        "sandwich_matrices": relative(0.06, "the same", 5.0),
        "parallel": relative(0.06, "the same: 4.7 % on average", 5.0),
        "parallel_matrices": relative(0.1, "the same: up to 10 % where one token has the loss", 5.0),
    },
    blind=dict.fromkeys(("sandwich", "sandwich_matrices", "parallel", "parallel_matrices"), SEEDS),
    simulate=partial(measured_stacks, other_cases),
    predict=partial(predicted_stacks, other_cases),
    axes=AXES,
    marks=("derived",),
    convention=CONVENTION,
)


def variant_cases(s: GradientStack) -> Cases:
    """Gated perceptrons, grouped queries, rotary positions, norms of queries and keys."""
    root = s.logit_scale / math.sqrt(s.width / s.heads)
    groups = max(g for g in range(1, s.heads + 1) if s.heads % g == 0 and (g < s.heads or s.heads == 1))
    return {
        "gated": (stack_of(s, gated=True, activation="silu", mask="causal"), "iid"),
        "grouped": (stack_of(s, kv_heads=groups), "iid"),
        "rotary": (stack_of(s, positions="rope"), "iid"),
        "normed": (stack_of(s, qk_norm=True, logit_multiplier=root), "iid"),
    }


VARIANTS = ("gated", "grouped", "rotary", "normed")

claim(
    "advise/B04",
    HOMOGENIZED,
    "gated perceptrons, grouped queries, rotary positions, normed queries and keys",
    "The recursion serves them all: gates add σ_w²κ_g to what perceptrons pass, groups change nothing, rotations enter "
    "the scores, norms of queries and keys make scores of cosines.",
    where=WHERE,
    models=(),
    quick=GradientStack(width=128, heads=4, mlp_width=512, layers=4, n=32, logit_scale=1.0, runs=14),
    full=GradientStack(logit_scale=1.0, runs=32),
    within={name: relative(0.035, "terms of order 1/d", 5.0) for name in VARIANTS}
    | {
        f"{name}_matrices": relative(0.07, "terms of order 1/d, largest for queries and keys", 5.0) for name in VARIANTS
    },
    blind={f"{name}_matrices": "queries and keys come 5 % off from the forward pass" for name in VARIANTS}
    | {"gated": "the law is good to 3.5 %, and seeds differ by 5 %"},
    simulate=partial(measured_stacks, variant_cases),
    predict=partial(predicted_stacks, variant_cases),
    axes=AXES,
    marks=("derived",),
    convention=CONVENTION,
)


# --- B13: what is private


def private_cases(s: GradientStack) -> Cases:
    """Weak and strong branches, started from gradients that tokens do not share."""
    weak, strong = (msgspec.structs.replace(s, attention_power=a, mlp_power=2 * a) for a in (0.3, s.attention_power))
    return {
        "weak": (stack_of(weak, placement="post"), "private"),
        "strong": (stack_of(strong, placement="post"), "private"),
    }


claim(
    "advise/B13",
    HOMOGENIZED,
    "private gradients fade in post-norm stacks",
    "A gradient that tokens do not share reaches the embeddings as Ψ = ‖g_0‖/‖g_L‖ of it: it fades where tokens merge.",
    where=WHERE,
    models=(),
    quick=GradientStack(layers=10, attention_power=1.0, runs=10),
    full=GradientStack(layers=10, attention_power=1.0, runs=64),
    within={
        "weak": relative(0.05, "terms of order 1/d", 5.0),
        "strong": relative(0.08, "second-order fluctuations of lengths", 5.0),
    },
    blind=dict.fromkeys(("weak", "strong"), POST),
    simulate=partial(measured_stacks, private_cases),
    predict=partial(predicted_stacks, private_cases),
    axes=AXES,
    marks=("derived",),
    convention=CONVENTION,
)


# --- B12: entropy collapse


def sharp_cases(s: GradientStack) -> Cases:
    """Very sharp attention."""
    return {"stream": (stack_of(s, activation="gelu"), "iid")}


claim(
    "advise/B12",
    HOMOGENIZED,
    "sharp attention makes gradients explode",
    "Where logits are far beyond √(2 log n) each layer multiplies the gradient by about (r² + a(F + 1.3b))/(r² + aF): "
    "thousands over 24 layers.",
    where=WHERE,
    models=(),
    quick=GradientStack(
        width=128, heads=2, mlp_width=256, n=32, layers=8, attention_power=1.0, logit_scale=12.0, runs=24
    ),
    full=GradientStack(
        width=256, heads=4, mlp_width=1024, n=64, layers=24, attention_power=1.0, logit_scale=12.0, runs=8
    ),
    within={
        "stream": relative(0.15, "drawn heads of the prediction, and second-order fluctuations", 5.0),
        "stream_matrices": relative(0.15, "the same", 5.0),
    },
    blind=dict.fromkeys(("stream", "stream_matrices"), "the law is good to 15 % here, where norms grow a thousandfold"),
    simulate=partial(measured_stacks, sharp_cases),
    predict=partial(predicted_stacks, sharp_cases),
    axes=AXES,
    marks=("derived",),
    convention=CONVENTION,
)


# --- B26: remedies


class RemedyStack(GradientStack):
    """Remedies of the literature on one stack."""

    small: Annotated[of.Positive, means("root mean square of small embeddings", "r₀")] = 0.02


def remedies(s: RemedyStack) -> dict[str, Architecture]:
    """Post-norm with branches × 1/√(2L), DeepNorm, pre-norm with small embeddings, sandwich with s = 1/√(2L)."""
    scale, gain = 1 / math.sqrt(2 * s.layers), (8 * s.layers) ** -0.25
    scaled = {"attention_residual": scale, "mlp_residual": scale}
    post = stack_of(s, placement="post", activation="gelu")
    sizes = post.deviations
    deep = {name: gain * getattr(sizes, name) for name in ("value", "output", "mlp_in", "mlp_out")}
    return {
        "scaled": post.changed(**scaled),
        "deepnorm": post.changed(skip=(2 * s.layers) ** 0.25, deviations=deep),
        "small": stack_of(msgspec.structs.replace(s, embedding=s.small), activation="gelu"),
        "sandwich": stack_of(s, placement="sandwich", activation="gelu", **scaled),
    }


def measure_remedies(s: RemedyStack) -> Evidence:
    """‖g_0‖/‖g_L‖ and ‖∂W_Q‖/‖∂W_V‖ of the first and the last layer."""
    values, errors = {}, {}
    for case, (name, architecture) in enumerate(remedies(s).items()):
        seeds = drawn_samples(s, architecture, case=case)
        stream, found = np.array([x.stream() for x in seeds]), [x.matrices() for x in seeds]
        values[name], errors[name] = typical(stream[:, 0] / stream[:, -1])
        ratios = [f["query"][[0, -1]] / f["value"][[0, -1]] for f in found]
        values[f"{name}_queries"], errors[f"{name}_queries"] = typical(ratios)
    curves = (Curve("measured", np.arange(4), [values[k] for k in remedies(s)]),)
    return Evidence(values, errors, curves)


def predict_remedies(s: RemedyStack) -> Evidence:
    """The recursion."""
    values: dict[str, Any] = {}
    advice: dict[str, str] = {}
    for name, architecture in remedies(s).items():
        found = predict_gradients(architecture, s.n)
        less = 0.0 if architecture.placement == "post" else found.seed_spread[0] ** 2
        values[name] = found.stream[0] / found.stream[-1] * math.exp(-less)
        values[f"{name}_queries"] = found.matrices["query"][[0, -1]] / found.matrices["value"][[0, -1]]
        if (why := too_rough(found, architecture)) is not None:
            advice |= {name: why, f"{name}_queries": why}
    return Evidence(
        values, curves=(Curve("predicted", np.arange(4), [values[k] for k in remedies(s)]),), undecided=advice
    )


_MILD = "mild branches: fluctuations are small"
claim(
    "advise/B26",
    HOMOGENIZED,
    "what the remedies of the literature do to gradients",
    "Post-norm with branches × 1/√(2L), DeepNorm, and norms on both sides with s = 1/√(2L) keep ‖g_0‖/‖g_L‖ and the "
    "share of queries nearly constant over depth; small embeddings raise ‖g_0‖ by r_L/r_0.",
    where=WHERE,
    models=(),
    quick=RemedyStack(
        width=128, heads=4, mlp_width=512, layers=6, n=32, attention_power=1.0, mlp_power=2.0, logit_scale=1.0, runs=10
    ),
    full=RemedyStack(
        width=256, heads=4, mlp_width=1024, layers=12, n=64, attention_power=1.0, mlp_power=2.0, logit_scale=1.0, runs=8
    ),
    within={
        "scaled": relative(0.03, _MILD, 5.0),
        "deepnorm": relative(0.03, _MILD, 5.0),
        "sandwich": relative(0.03, _MILD, 5.0),
        "small": relative(0.08, "the first branch dwarfs the embeddings: single seeds differ by 20 %", 5.0),
        "scaled_queries": relative(0.06, _MILD, 5.0),
        "deepnorm_queries": relative(0.06, _MILD, 5.0),
        "sandwich_queries": relative(0.07, "the forward pass", 5.0),
        "small_queries": relative(0.15, "the last layer's is that of nearly equal tokens", 5.0),
    },
    blind={"small": "single seeds differ by 20 %", "small_queries": "the law is good to 15 % there"}
    | dict.fromkeys(
        ("scaled_queries", "deepnorm_queries", "sandwich_queries"), "the law is good to 6 %; more seeds would do"
    )
    | dict.fromkeys(("scaled", "deepnorm", "sandwich"), "eight modules at full size"),
    simulate=measure_remedies,
    predict=predict_remedies,
    axes=Axes("remedy", "‖g_0‖/‖g_L‖", y_scale="log"),
    marks=("derived",),
    convention=CONVENTION,
)


# --- B28: more tokens than directions


class Crowded(GradientStack):
    """More tokens than the stream has directions."""


def measure_crowded(s: Crowded) -> Evidence:
    """Norms of W_Q's and W_K's gradients, geometric means over layers."""
    found = [seed.matrices() for seed in drawn_samples(s, stack_of(s))]
    values, errors = {}, {}
    for name in ("query", "key"):
        values[name], errors[name] = typical([np.exp(np.mean(np.log(f[name]))) for f in found])
    return Evidence(
        values, errors, (Curve("measured", np.arange(s.layers), np.mean([f["query"] for f in found], axis=0)),)
    )


def predict_crowded(s: Crowded) -> Evidence:
    """With products of tokens that fluctuate by 1/D."""
    found = predict_gradients(stack_of(s), s.n)
    values: dict[str, Any] = {name: np.exp(np.mean(np.log(found.matrices[name]))) for name in ("query", "key")}
    return Evidence(values, curves=(Curve("predicted", np.arange(s.layers), found.matrices["query"]),))


claim(
    "advise/B28",
    HOMOGENIZED,
    "queries of long contexts: not 1/n but 1/D",
    "Gradients of W_Q and W_K do not fall like 1/n in their square where there are more tokens than directions: "
    "products of tokens fluctuate, and 1/n becomes 1/n + 1/D.",
    where=WHERE,
    models=(),
    quick=Crowded(width=128, heads=4, mlp_width=512, layers=2, n=256, attention_power=1.0, mlp_power=2.0, runs=6),
    full=Crowded(width=128, heads=4, mlp_width=512, layers=4, n=256, attention_power=1.0, mlp_power=2.0, runs=16),
    within={name: relative(0.06, "terms of higher order in n/d and 1/d", 5.0) for name in ("query", "key")},
    blind=dict.fromkeys(("query", "key"), "the law is good to 6 %"),
    simulate=measure_crowded,
    predict=predict_crowded,
    axes=Axes("layer", "‖∂W_Q‖"),
    marks=("derived",),
    convention=CONVENTION,
)
