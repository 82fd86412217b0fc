"""B15–B19, B22, B24: gradients of GPT-2, BERT and Llama shapes, and what the first step makes of them (derived)."""

from __future__ import annotations

import math
from typing import Annotated, Any

import numpy as np

from pathlines.architecture import Architecture, from_config
from pathlines.claim.advise.gradient_stack import CONVENTION, KINDS, GradientStack, stack_of, too_rough, typical
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.fitting import too_large
from pathlines.claim.tolerance import at_least, relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.foundation.setting import at_least as least
from pathlines.limit.architecture.gradients import Gradients, predict_gradients
from pathlines.model.architecture.random_gradients import GradientSample

WHERE = "derived; gradients of configured architectures, no statement in the paper"
AXES = Axes("layer", "gradient norm of the stream", y_scale="log")


class Shape(Setting):
    """A model of a known family, by its configuration."""

    width: Annotated[int, least(8), means("width of the residual stream", "d")] = 192
    heads: of.Heads = 6
    kv_heads: of.Heads = 6
    layers: of.Depth = 6
    mlp_width: Annotated[of.Count, means("neurons of the perceptron", "w")] = 768
    std: Annotated[of.Positive, means("standard deviation of the weights", "σ")] = 0.04
    n: Annotated[int, least(2), means("tokens", "n")] = 32
    vocabulary: Annotated[int, least(2), means("words", "N_V")] = 1000
    runs: Annotated[int, least(2), means("random modules")] = 12
    seed: of.Seed = 1


def shape_of(kind: str, s: Shape) -> Architecture:
    """gpt2, bert or llama, through the reader of configurations."""
    heads = s.heads if s.width % s.heads == 0 else 1
    if kind == "gpt2":
        fields: dict[str, Any] = {
            "n_embd": s.width,
            "n_layer": s.layers,
            "n_head": heads,
            "n_inner": s.mlp_width,
            "n_positions": max(s.n, 64),
        }
    else:
        fields = {
            "hidden_size": s.width, "num_hidden_layers": s.layers, "num_attention_heads": heads,
            "intermediate_size": s.mlp_width, "max_position_embeddings": max(s.n, 64),
        }  # fmt: skip
    if kind == "llama":
        fields |= {
            "num_key_value_heads": s.kv_heads if heads % s.kv_heads == 0 else heads,
            "tie_word_embeddings": False,
        }
    return from_config(
        {"model_type": kind, "vocab_size": max(s.vocabulary, s.n + 1), "initializer_range": s.std} | fields
    ).architecture


def labelled(architecture: Architecture, s: Shape, kind: str) -> dict[str, Any]:
    """Decoders predict the next word, all of them different; encoders have independent gradients."""
    return {"loss": "iid"} if kind == "bert" else {"loss": "cross-entropy", "labels": np.arange(1, s.n + 1)}


def kinds_of(found: Any) -> list[str]:
    """Kinds of matrices in one order."""
    return [kind for kind in (*KINDS, "mlp_gate") if kind in found]


def measure_shape(kind: str, s: Shape) -> Evidence:
    """Norms of the stream's gradients, of the embedding's, and of matrices by kind (geometric means over layers)."""
    architecture = shape_of(kind, s)
    seeds = [
        GradientSample(architecture, s.n, (s.seed, run), **labelled(architecture, s, kind)) for run in range(s.runs)
    ]
    stream, error = typical([x.stream()[:-1] for x in seeds])
    found = [x.matrices() for x in seeds]
    matrices = typical([[np.exp(np.mean(np.log(f[k]))) for k in kinds_of(f)] for f in found])
    embedding = typical([x.embedding_norm() for x in seeds])
    values = {"stream": stream, "matrices": matrices[0], "embedding": float(embedding[0])}
    errors = {"stream": error, "matrices": matrices[1], "embedding": float(embedding[1])}
    return Evidence(values, errors, (Curve("random modules", np.arange(s.layers), stream, error),))


def predict_shape(kind: str, s: Shape) -> Evidence:
    """The recursion from the configuration."""
    architecture = shape_of(kind, s)
    found = predict_gradients(architecture, s.n, **labelled(architecture, s, kind))
    less = np.zeros(s.layers + 1) if architecture.placement == "post" else found.seed_spread**2
    mean = float(np.mean(less[1:]))
    matrices = [np.exp(np.mean(np.log(found.matrices[k])) - mean) for k in kinds_of(found.matrices)]
    values = {
        "stream": (found.stream * np.exp(-less))[:-1],
        "matrices": np.array(matrices),
        "embedding": found.embedding * math.exp(-less[0]),
    }
    why = too_rough(found, architecture)
    curve = Curve("predicted", np.arange(s.layers), values["stream"])
    return Evidence(values, curves=(curve,), undecided={} if why is None else dict.fromkeys(values, why))


def register_shape(
    id: str, kind: str, label: str, quick: Shape, full: Shape, stream: float, matrices: float, blind: dict[str, str]
) -> None:
    """One family: both computations on one configuration."""
    from functools import partial

    claim(
        id,
        HOMOGENIZED,
        label,
        "Norms of the gradients of the stream, of the embedding and of every kind of matrix follow from the "
        "configuration, for the loss that the family is trained with.",
        where=WHERE,
        models=(),
        quick=quick,
        full=full,
        within={
            "stream": relative(stream, "terms of order 1/d", 5.0),
            "matrices": relative(matrices, "terms of order 1/d; largest for queries and keys", 5.0),
            "embedding": relative(matrices, "terms of order 1/d; different words", 5.0),
        },
        blind=blind,
        simulate=partial(measure_shape, kind),
        predict=partial(predict_shape, kind),
        axes=AXES,
        marks=("derived",),
        convention=CONVENTION,
    )


_SEEDS = "single seeds differ by 10 %, most at the embeddings: fifty of them would do"
_QK = "queries and keys are 4 to 10 % off where the forward pass is"
register_shape(
    "advise/B15", "gpt2", "gradients of GPT-2's shape, cross-entropy with a tied head", Shape(),
    Shape(width=768, heads=12, kv_heads=12, layers=12, mlp_width=3072, std=0.02, n=64, runs=6), 0.03, 0.06,
    {"matrices": _QK, "stream": _SEEDS, "embedding": _SEEDS},
)  # fmt: skip
register_shape(
    "advise/B16", "bert", "gradients of BERT's shape", Shape(),
    Shape(width=768, heads=12, kv_heads=12, layers=12, mlp_width=3072, std=0.02, n=64, runs=6), 0.03, 0.08,
    {"matrices": _QK, "embedding": "the law is good to 8 %", "stream": _SEEDS},
)  # fmt: skip
register_shape(
    "advise/B17", "llama", "gradients of a Llama shape: gates, grouped queries, rotary positions",
    Shape(kv_heads=2, mlp_width=512, runs=24),
    Shape(width=576, heads=9, kv_heads=3, layers=30, mlp_width=1536, std=0.02, n=64, runs=12), 0.04, 0.12,
    {"matrices": _QK, "embedding": "the first branch dwarfs the embeddings: single seeds differ by 20 %",
     "stream": "the same at the embeddings"},
)  # fmt: skip


# --- B18: products of tokens fluctuate, by D


def collapsed(s: Shape) -> Evidence:
    """Queries' gradients of BERT's shape, geometric mean over layers."""
    architecture = shape_of("bert", s)
    found = [GradientSample(architecture, s.n, (s.seed, run)).matrices()["query"] for run in range(s.runs)]
    value, error = typical([np.exp(np.mean(np.log(f))) for f in found])
    values = {"query": float(value), "undressed": float(value)}
    return Evidence(
        values, dict.fromkeys(values, float(error)), (Curve("measured", np.arange(s.layers), np.mean(found, 0)),)
    )


def predict_collapsed(s: Shape) -> Evidence:
    """With 1/D, and a lower bound that leaves it out."""
    architecture = shape_of("bert", s)
    found, bare = (predict_gradients(architecture, s.n, finite_width=f) for f in (True, False))
    values = {"query": _level(found), "undressed": 1.03 * _level(bare)}
    return Evidence(values, curves=(Curve("predicted", np.arange(s.layers), found.matrices["query"]),))


def _level(found: Gradients) -> float:
    return float(np.exp(np.mean(np.log(found.matrices["query"]))))


claim(
    "advise/B18",
    HOMOGENIZED,
    "fluctuating products of tokens feed queries and keys",
    "Gradients of W_Q and W_K are quadratic in products of tokens, which fluctuate by 1/D: left out, they would be "
    "more than 3 % too small.",
    where=WHERE,
    models=(),
    quick=Shape(std=0.06, width=128, heads=4, mlp_width=512, runs=16),
    full=Shape(std=0.0693, width=256, heads=4, mlp_width=1024, layers=12, n=64, runs=16),
    within={
        "query": relative(0.1, "directions of a collapsing stream are known to 10 %", 5.0),
        "undressed": at_least("prediction in infinite width, and 3 %", errors=4.0),
    },
    blind={"query": "the law is good to 5 to 15 % on collapsing streams"},
    mistakes=(too_large("predict", "an undressed law {:.0%} too large"),),
    simulate=collapsed,
    predict=predict_collapsed,
    axes=Axes("layer", "‖∂W_Q‖"),
    marks=("derived",),
    convention=CONVENTION,
)


# --- B19: no bracket along a post-norm stream


def narrow_post(s: GradientStack) -> Architecture:
    """Weak branches, so that seeds agree."""
    return stack_of(s, placement="post", activation="gelu")


def measure_bracket(s: GradientStack) -> Evidence:
    """‖g_0‖/‖g_L‖, held against the law and against the one that removes a direction at every norm."""
    seeds = [GradientSample(narrow_post(s), s.n, (s.seed, run)).stream() for run in range(s.runs)]
    value, error = typical([f[0] / f[-1] for f in seeds])
    values = {"ratio": float(value), "bracket": float(value)}
    return Evidence(values, dict.fromkeys(values, float(error)), (Curve("measured", np.arange(1), [value], [error]),))


def predict_bracket(s: GradientStack) -> Evidence:
    """The recursion; and a bound, a direction fewer at each of 2L norms."""
    found = predict_gradients(narrow_post(s), s.n)
    ratio = float(found.stream[0] / found.stream[-1])
    return Evidence({"ratio": ratio, "bracket": ratio * (1 - 1 / s.width) ** (2 * s.layers)})


claim(
    "advise/B19",
    HOMOGENIZED,
    "along a post-norm stream norms remove nothing more",
    "The gradient behind a norm is orthogonal to the stream already: a factor (1 − 2/d) of the square at each norm, "
    "right for gradients without preferred direction, would make ‖g_0‖ too small.",
    where=WHERE,
    models=(),
    quick=GradientStack(
        width=64, heads=2, mlp_width=256, n=16, layers=16, attention_power=0.02, mlp_power=0.04, runs=48
    ),
    full=GradientStack(
        width=64, heads=2, mlp_width=256, n=16, layers=24, attention_power=0.02, mlp_power=0.04, runs=200
    ),
    within={
        "ratio": relative(0.04, "terms of order 1/d that are left out", 5.0),
        "bracket": at_least("the law with the bracket", errors=4.0),
    },
    mistakes=(too_large("predict", "a law {:.0%} too large"),),
    simulate=measure_bracket,
    predict=predict_bracket,
    axes=Axes("", "‖g_0‖/‖g_L‖"),
    marks=("derived",),
    convention=CONVENTION,
)


# --- B22: the first step


class FirstSteps(GradientStack):
    """One step of training."""

    rate: Annotated[of.Positive, means("learning rate of Adam", "η")] = 1e-3


def measure_step(s: FirstSteps) -> Evidence:
    """Relative change of each matrix's output in the middle layer: Adam (signs), SGD per unit of η."""
    architecture, found = stack_of(s, activation="gelu"), []
    for run in range(s.runs):
        layer = GradientSample(architecture, s.n, (s.seed, run)).module.layers[s.layers // 2]
        steps = [
            [layer[k].moved(s.rate * np.sign(layer[k].gradient)), layer[k].moved(np.asarray(layer[k].gradient))]
            for k in KINDS
        ]
        found.append(steps)
    mean, error = typical(found)
    curves = (Curve("measured", np.arange(len(KINDS)), mean[:, 0], error[:, 0]),)
    return Evidence({"adam": mean[:, 0], "sgd": mean[:, 1]}, {"adam": error[:, 0], "sgd": error[:, 1]}, curves)


def predict_step(s: FirstSteps) -> Evidence:
    """Coherence of inputs and gradients."""
    values = {}
    for name, rate in (("adam", s.rate), ("sgd", 1.0)):
        found = predict_gradients(stack_of(s, activation="gelu"), s.n, rate=rate, optimiser=name)
        values[name] = np.array([found.steps[kind][s.layers // 2].output for kind in KINDS])
    return Evidence(values, curves=(Curve("predicted", np.arange(len(KINDS)), values["adam"]),))


claim(
    "advise/B22",
    HOMOGENIZED,
    "how far one step moves what a matrix makes",
    "Adam: (η/σ)√(cNχ + 1 − c), whatever the size of the gradient; SGD: η‖∂W‖√χ/(σ√N'); χ the coherence of inputs and "
    "output gradients.",
    where=WHERE,
    models=(),
    quick=FirstSteps(runs=6),
    full=FirstSteps(runs=32),
    within={
        "adam": relative(0.28, "entries of ∂W_1 and ∂W_Q are not Gaussian: up to 25 % too large", 5.0),
        "sgd": relative(0.18, "coherence without its fluctuations: up to 14 %", 5.0),
    },
    blind={"adam": "the law is good to 25 %", "sgd": "the law is good to 15 %"},
    simulate=measure_step,
    predict=predict_step,
    axes=Axes("matrix (Q, K, V, O, W_1, W_2)", "relative change of its output"),
    marks=("derived",),
    convention=CONVENTION,
)


# --- B24: queries below Adam's ε


def measure_entries(s: GradientStack) -> Evidence:
    """Root mean square entry of ∂W_Q in the last layer, post-norm."""
    architecture, found = stack_of(s, placement="post", activation="gelu"), []
    for run in range(s.runs):
        sample = GradientSample(architecture, s.n, (s.seed, run), dtype=np.float64)
        found.append(sample.matrices()["query"][-1] / s.width)
    value, error = typical(found)
    return Evidence({"entry": float(value)}, {"entry": float(error)})


def predict_entries(s: GradientStack) -> Evidence:
    """The recursion; seeds of collapsed stacks differ by factors."""
    architecture = stack_of(s, placement="post", activation="gelu")
    found = predict_gradients(architecture, s.n)
    private = 1 - found.cosine[-1]
    why = "fewer layers or weaker branches: what tokens do not share is below what the recursion resolves"
    return Evidence(
        {"entry": float(found.matrices["query"][-1] / s.width)}, undecided={"entry": why} if private < 1e-4 else {}
    )


claim(
    "advise/B24",
    HOMOGENIZED,
    "queries of deep post-norm stacks fall below Adam's ε",
    "Root mean square entries of ∂W_Q in the last layer fall with depth as tokens merge: 9.9e-5, 2.0e-6, 7.8e-10 at 6, "
    "12 and 24 layers of width 768; below ε = 1e-8 Adam does not move them.",
    where=WHERE,
    models=(),
    quick=GradientStack(
        width=128, heads=2, mlp_width=256, n=16, layers=4, attention_power=1.0, mlp_power=1.0, logit_scale=0.5, runs=32
    ),
    full=GradientStack(
        width=256, heads=4, mlp_width=1024, n=32, layers=8, attention_power=1.0, mlp_power=1.0, logit_scale=0.5, runs=64
    ),
    within={"entry": relative(0.15, "what is private fluctuates in second order: 10 % after four layers", 5.0)},
    blind={"entry": "private parts of single seeds differ by a third"},
    simulate=measure_entries,
    predict=predict_entries,
    axes=Axes("", "rms entry of ∂W_Q"),
    marks=("derived",),
    convention=CONVENTION,
)
