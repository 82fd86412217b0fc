"""B05–B07, B09–B11, B20–B23: laws of gradients that one can say in a line (derived)."""

from __future__ import annotations

import math
from functools import partial
from typing import Annotated, Any

import msgspec
import numpy as np

from pathlines.architecture import Architecture, Deviations
from pathlines.claim.advise.gradient_stack import (
    CONVENTION,
    GradientStack,
    drawn_samples,
    stack_of,
    too_rough,
    typical,
)
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import mean_and_error
from pathlines.claim.fitting import Mistake, too_large
from pathlines.claim.tolerance import absolute, at_least, relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.foundation.setting import at_least as least
from pathlines.limit.architecture.gradient_laws import query_rate, sharp_query_gain
from pathlines.limit.architecture.gradients import predict_gradients
from pathlines.limit.architecture.perceptron import mean_degree
from pathlines.limit.architecture.predict import predict
from pathlines.model.architecture.random_gradients import GradientSample

WHERE = "derived; gradients of configured architectures, no statement in the paper"


# --- B05: equal gradients of paired matrices


def measure_pairs(s: GradientStack) -> Evidence:
    """σ‖∂W‖ of one matrix over that of its partner, geometric means over seeds and layers."""
    architecture = stack_of(s, gated=True, activation="silu", mask="causal")
    sizes, found = architecture.deviations, [seed.matrices() for seed in drawn_samples(s, architecture)]
    values, errors = {}, {}
    for name, (one, two) in PAIRS.items():
        ratios = [np.exp(np.mean(np.log(f[one] / f[two]))) * getattr(sizes, one) / getattr(sizes, two) for f in found]
        values[name], errors[name] = typical(ratios)
    return Evidence(values, errors, (Curve("measured", np.arange(3), list(values.values()), list(errors.values())),))


PAIRS = {"values": ("value", "output"), "queries": ("query", "key"), "perceptron": ("mlp_in", "mlp_out")}


def equal_pairs(s: GradientStack) -> Evidence:
    """One, whatever the architecture."""
    return Evidence(dict.fromkeys(PAIRS, 1.0), curves=(Curve("equal", np.arange(3), np.ones(3)),))


claim(
    "advise/B05",
    HOMOGENIZED,
    "paired matrices have equal gradients",
    "σ_V‖∂W_V‖ = σ_O‖∂W_O‖, σ_Q‖∂W_Q‖ = σ_K‖∂W_K‖ and, with a gate, σ_up‖∂W_up‖ = σ_down‖∂W_down‖ in every layer of "
    "any architecture at initialisation: an output matrix scaled by 1/√(2L) has √(2L) times its values' gradient.",
    where=WHERE,
    models=(),
    quick=GradientStack(width=96, heads=3, mlp_width=256, layers=4, n=24, runs=24),
    full=GradientStack(runs=48),
    within=dict.fromkeys(PAIRS, relative(0.03, "means of logarithms, terms of order 1/d", 5.0)),
    simulate=measure_pairs,
    predict=equal_pairs,
    axes=Axes("pair", "ratio of σ‖∂W‖"),
    marks=("derived",),
    convention=CONVENTION,
)


# --- B06, B07: how fast queries starve


class NearCollapse(Setting):
    """One attention layer on tokens of a common cosine."""

    width: Annotated[int, least(16), means("width of the residual stream", "d")] = 128
    heads: of.Heads = 16
    n: Annotated[int, least(3), means("tokens", "n")] = 32
    logit_scale: of.LogitScale = 0.5
    cosines: Annotated[tuple[of.Share, ...], means("common cosines of the tokens", "ρ")] = (0.97, 0.99, 0.999)
    runs: Annotated[int, least(2), means("random modules")] = 20
    seed: of.Seed = 1


def alike(s: NearCollapse, rho: float, positions: str) -> Architecture:
    """Words share a part of mean square ρ."""
    d, logits = s.width, math.sqrt(s.logit_scale / s.width)
    sizes = Deviations(
        embedding=math.sqrt(max(1 - rho, 0.0)),
        type=math.sqrt(rho),
        query=logits,
        key=logits,
        value=d**-0.5,
        output=d**-0.5,
    )
    heads = s.heads if d % s.heads == 0 else 1
    return Architecture(
        width=d, heads=heads, layers=1, mask="full", norm="rms", placement="pre", types=1, positions=positions,
        context=max(s.n, 1024), deviations=sizes,
    )  # fmt: skip


def measure_rate(positions: str, s: NearCollapse) -> Evidence:
    """σ_Q²‖∂W_Q‖²/σ_V²‖∂W_V‖², means of squares, and the slope of its logarithm between the last two cosines."""
    ratios, errors = [], []
    for case, rho in enumerate(s.cosines):
        architecture = alike(s, rho, positions)
        seeds = [GradientSample(architecture, s.n, (s.seed, case, run), dtype=np.float64) for run in range(s.runs)]
        sizes = architecture.deviations
        squares = np.array([[seed.matrices()[k][0] ** 2 for k in ("query", "value")] for seed in seeds])
        ratio = squares[:, 0] * sizes.query**2 / (squares[:, 1] * sizes.value**2)
        mean, error = typical(ratio)
        ratios.append(float(mean))
        errors.append(float(error))
    left = 1 - np.array(s.cosines)
    values: dict[str, Any] = {"ratio": np.array(ratios)}
    uncertain: dict[str, Any] = {"ratio": np.array(errors)}
    if len(ratios) > 1:
        run = math.log(left[-2] / left[-1])
        values["slope"] = math.log(ratios[-2] / ratios[-1]) / run
        uncertain["slope"] = math.hypot(errors[-1] / ratios[-1], errors[-2] / ratios[-2]) / abs(run)
    return Evidence(values, uncertain, (Curve("measured", left, ratios, errors),))


def predict_rate(s: NearCollapse) -> Evidence:
    """b²(1−ρ)²[(n−1)/n² + (n−1)²/n²D] ((1−ρ)t + ρu)/((ρ + (1−ρ)/n)u), u = t: slope 2 near collapse."""
    ratios = np.array([query_rate(s.n, rho, s.logit_scale, s.width) for rho in s.cosines])
    left = 1 - np.array(s.cosines)
    values: dict[str, Any] = {"ratio": ratios}
    if len(ratios) > 1:
        values["slope"] = math.log(ratios[-2] / ratios[-1]) / math.log(left[-2] / left[-1])
    sharp = s.logit_scale**2 * (1 - min(s.cosines)) > 0.03
    why = "cosines nearer 1 or smaller b: the closed form is the first order in b²(1−ρ)"
    return Evidence(values, curves=(Curve("closed form", left, ratios),), undecided={"ratio": why} if sharp else {})


_RATE_AXES = Axes("1 − ρ", "σ_Q²‖∂W_Q‖²/σ_V²‖∂W_V‖²", "log", "log")
claim(
    "advise/B06",
    HOMOGENIZED,
    "queries starve like 1 − ρ",
    "As tokens become alike the gradients of W_Q and W_K fall like 1 − ρ (their squares like (1−ρ)²), in closed form.",
    where=WHERE,
    models=(),
    quick=NearCollapse(cosines=(0.99, 0.999), runs=500),
    full=NearCollapse(width=256, cosines=(0.9, 0.97, 0.99, 0.999), runs=200),
    within={
        "ratio": relative(0.03, "terms of order b²(1−ρ) and 1/d", 5.0),
        "slope": absolute(0.03, "the same between two cosines", 5.0),
    },
    simulate=partial(measure_rate, "none"),
    predict=predict_rate,
    axes=_RATE_AXES,
    marks=("derived",),
    convention=CONVENTION,
)


def predict_rotary(s: NearCollapse) -> Evidence:
    """The recursion with turned scores."""
    ratios = []
    for rho in s.cosines:
        architecture = alike(s, rho, "rope")
        found, sizes = predict_gradients(architecture, s.n), architecture.deviations
        ratios.append(
            float((found.matrices["query"][0] * sizes.query / (found.matrices["value"][0] * sizes.value)) ** 2)
        )
    left = 1 - np.array(s.cosines)
    values: dict[str, Any] = {"ratio": np.array(ratios)}
    if len(ratios) > 1:
        values["slope"] = math.log(ratios[-2] / ratios[-1]) / math.log(left[-2] / left[-1])
    return Evidence(values, curves=(Curve("recursion", left, ratios),))


claim(
    "advise/B07",
    HOMOGENIZED,
    "rotary positions halve the exponent",
    "With rotary positions keys of equal tokens still differ: squares of the gradients of W_Q and W_K fall like 1 − ρ.",
    where=WHERE,
    models=(),
    quick=NearCollapse(cosines=(0.99, 0.999), runs=40),
    full=NearCollapse(width=256, cosines=(0.97, 0.99, 0.999), runs=100),
    within={
        "ratio": relative(0.2, "attention is not uniform: moved keys differ by b² though tokens do not", 5.0),
        "slope": absolute(0.05, "the same at both cosines", 5.0),
    },
    blind={
        "ratio": "heads are not drawn so near collapse, where the expansion is 15 % high in the square at b = 0.5",
        "slope": "five standard errors of few modules are a fifth of it: ten times as many would do, for half a minute",
    },
    simulate=partial(measure_rate, "rope"),
    predict=predict_rotary,
    axes=_RATE_AXES,
    marks=("derived",),
    convention=CONVENTION,
)


# --- B09: the dual law


def dual_stack(s: GradientStack) -> Architecture:
    """Attention alone, post-norm, nearly uniform."""
    return stack_of(msgspec.structs.replace(s, mlp_power=0.0, mlp_width=0), placement="post")


def measure_dual(s: GradientStack) -> Evidence:
    """Private gradients first/last and private tokens last/first, ratios of mean squares."""
    found = []
    for seed in drawn_samples(s, dual_stack(s)):
        own = [_private(seed.gradients[k]) for k in (0, -1)], [_private(seed.states[k]) for k in (0, -1)]
        found.append((own[0][0] / own[0][1], own[1][1] / own[1][0]))
    mean, error = typical(found)
    values = {"gradients": mean[0], "tokens": mean[1]}
    return Evidence(
        values, {"gradients": error[0], "tokens": error[1]}, (Curve("measured", np.arange(2), mean, error),)
    )


def _private(rows: np.ndarray) -> float:
    return float(np.sum((rows - rows.mean(axis=0)).astype(float) ** 2))


def predict_dual(s: GradientStack) -> Evidence:
    """Π(1 + am_ℓ)⁻¹ for both: uniform attention, orthogonal tokens, in infinite width."""
    kept, mean = 1.0, 1 / s.n
    for _ in range(s.layers):
        power = 1 + s.attention_power * mean
        kept, mean = kept / power, mean * (1 + s.attention_power) / power
    both = {"gradients": kept, "tokens": kept}
    far = s.attention_power * s.layers > 12
    why = "fewer or weaker layers: what is private is a small difference that fluctuates"
    return Evidence(
        both,
        curves=(Curve("Π 1/(1 + am)", np.arange(2), [kept, kept]),),
        undecided=dict.fromkeys(both, why) if far else {},
    )


claim(
    "advise/B09",
    HOMOGENIZED,
    "private gradients fade as private tokens do",
    "With uniform attention alone, post-norm: the private part of gradients, first over last layer, is that of tokens, "
    "last over first: both Π(1 + am_ℓ)⁻¹, m the mean cosine.",
    where=WHERE,
    models=(),
    quick=GradientStack(width=192, heads=4, n=32, layers=8, attention_power=0.2, logit_scale=0.05, runs=32),
    full=GradientStack(width=256, heads=4, n=32, layers=10, attention_power=0.2, logit_scale=0.05, runs=64),
    within=dict.fromkeys(("gradients", "tokens"), relative(0.04, "logits of order b², fluctuations of order 1/d", 5.0)),
    simulate=measure_dual,
    predict=predict_dual,
    axes=Axes("gradients, tokens", "private part that is left"),
    marks=("derived",),
    convention=CONVENTION,
)


# --- B10: exponents of perceptrons

ACTIVATIONS = {"relu": ("relu", False), "gelu": ("gelu", False), "tanh": ("tanh", False), "swiglu": ("silu", True)}


def perceptron_stack(s: GradientStack, name: str) -> Architecture:
    """Perceptrons alone; attention has no power."""
    activation, gated = ACTIVATIONS[name]
    plain = stack_of(msgspec.structs.replace(s, attention_power=0.0), activation=activation, gated=gated)
    return plain.changed(deviations={"mlp_in": 2 / math.sqrt(s.width)}) if name == "tanh" else plain


def measure_degrees(s: GradientStack) -> Evidence:
    """ln(‖g_0‖²/‖g_L‖²)/ln(r_L²/r_0²), mean over seeds."""
    values, errors = {}, {}
    for case, name in enumerate(ACTIVATIONS):
        found = []
        for seed in drawn_samples(s, perceptron_stack(s, name), case=case):
            stream = seed.stream()
            grown = [float(np.mean(h.astype(float) ** 2)) for h in (seed.states[0], seed.states[-1])]
            found.append(2 * math.log(stream[0] / stream[-1]) / math.log(grown[1] / grown[0]))
        values[name], errors[name] = mean_and_error(found)
    return Evidence(values, errors, (Curve("measured", np.arange(4), list(values.values()), list(errors.values())),))


def predict_degrees(s: GradientStack) -> Evidence:
    """Π (1 + B/r²) over Π (1 + F/r²): the mean Hermite degree where branches are small, plus one with a gate."""
    values, advice = {}, {}
    for name, (activation, gated) in ACTIVATIONS.items():
        architecture = perceptron_stack(s, name)
        found, sigma = predict_gradients(architecture, s.n), 2.0 if name == "tanh" else 1.0
        grown = 2 * math.log(found.relative[-1] * found.stream[0] / (found.relative[0] * found.stream[-1]))
        less = (found.seed_spread[0] ** 2) * 2
        values[name] = (2 * math.log(found.stream[0] / found.stream[-1]) - less) / grown
        if abs(values[name] - mean_degree(activation, sigma) - gated) > 0.4:
            advice[name] = "more layers or weaker branches: the exponent is not that of small branches"
    return Evidence(values, curves=(Curve("recursion", np.arange(4), list(values.values())),), undecided=advice)


claim(
    "advise/B10",
    HOMOGENIZED,
    "‖g‖² grows as a power of the stream's length: the mean Hermite degree",
    "In pre-norm stacks of perceptrons ‖g_0‖²/‖g_L‖² = (r_L²/r_0²)^⟨k⟩, ⟨k⟩ the mean Hermite degree of the activation: "
    "1 for ReLU (so ‖g‖r is conserved), 1.07 for GELU, 1.6 for tanh at σ = 2, 2.07 with a SiLU gate.",
    where=WHERE,
    models=(),
    quick=GradientStack(width=128, heads=2, mlp_width=512, n=32, layers=8, mlp_power=0.5, runs=24),
    full=GradientStack(width=256, heads=2, mlp_width=1024, n=32, layers=8, mlp_power=0.5, runs=32),
    within=dict.fromkeys(ACTIVATIONS, relative(0.05, "terms of order 1/d: 3 to 4 % at a width of 128", 5.0)),
    blind=dict.fromkeys(ACTIVATIONS, "the law is good to 5 %, and seeds add as much"),
    simulate=measure_degrees,
    predict=predict_degrees,
    axes=Axes("activation", "exponent"),
    marks=("derived",),
    convention=CONVENTION,
)


# --- B11: sharp heads


class SharpHeads(Setting):
    """Heads on orthogonal tokens."""

    n: Annotated[int, least(2), means("tokens", "n")] = 64
    head_dim: Annotated[of.Count, means("width of a head", "p")] = 64
    scales: Annotated[tuple[of.NonNegative, ...], means("standard deviations of a logit", "b")] = (8.0, 16.0)
    heads: Annotated[int, least(8), means("heads that are drawn")] = 800
    seed: of.Seed = 1


def measure_sharp(s: SharpHeads) -> Evidence:
    """|∂/∂q|² of one head by the chain rule: b²/p |Σ_k π_k g·(v_k − z) k_k|² per unit of values and gradients."""
    rng, values, errors = np.random.default_rng(s.seed), [], []
    for b in s.scales:
        found = []
        for _ in range(s.heads):
            query, key = rng.standard_normal((2, s.n, s.head_dim))
            z = b / math.sqrt(s.head_dim) * query @ key.T
            pi = np.exp(z - z.max(axis=1, keepdims=True))
            pi /= pi.sum(axis=1, keepdims=True)
            value, gradient = rng.standard_normal((2, s.n, 128))
            paid = gradient @ value.T
            paid = pi * (paid - np.sum(pi * paid, axis=1, keepdims=True))
            found.append(b**2 * np.mean(np.sum((paid @ key) ** 2, axis=1)) / (s.head_dim * 128))
        mean, error = mean_and_error(found)
        values.append(float(mean))
        errors.append(float(error))
    return Evidence(
        {"query": np.array(values)}, {"query": np.array(errors)}, (Curve("measured", s.scales, values, errors),)
    )


def predict_sharp(s: SharpHeads) -> Evidence:
    """b² E Σ_kl π_kπ_l (e_k−π)·(e_l−π) k_k·k_l/p of drawn heads, values averaged exactly."""
    found = [sharp_query_gain(s.n, b, s.head_dim, draws=24) for b in s.scales]
    values = np.array([f[0] for f in found])
    return Evidence({"query": values}, {"query": np.array([f[1] for f in found])}, (Curve("law", s.scales, values),))


claim(
    "advise/B11",
    HOMOGENIZED,
    "gradients of sharp attention grow like b, not b²",
    "Per unit of a, the gradient through queries of orthogonal tokens is 4.70 at b = 8 and 11.1 at b = 16 (n = p = "
    "64): only near ties, of probability 1/b, contribute b².",
    where=WHERE,
    models=(),
    quick=SharpHeads(),
    full=SharpHeads(heads=4000),
    within={"query": relative(0.02, "sampling of the prediction", 5.0)},
    simulate=measure_sharp,
    predict=predict_sharp,
    axes=Axes("b", "gain through queries"),
    marks=("derived",),
    convention=CONVENTION,
)


# --- B20: where independence fails

LOSSES = {"iid": "iid", "length": "length", "distance": "distance", "normed": "normed distance"}


def measure_independence(s: GradientStack) -> Evidence:
    """‖g_0‖/‖g_L‖ by loss, pre-norm; that of ½‖h‖² behind a norm, which is zero."""
    values: dict[str, Any] = {}
    errors: dict[str, Any] = {}
    for case, (name, loss) in enumerate(LOSSES.items()):
        found = [x.stream() for x in drawn_samples(s, stack_of(s), loss, case)]
        values[name], errors[name] = typical([f[0] / f[-1] for f in found])
    few = msgspec.structs.replace(s, runs=2)
    post = [x.stream() for x in drawn_samples(few, stack_of(s, placement="post"), "length", dtype=np.float64)]
    values["post"] = float(np.mean([f[0] / f[-1] for f in post]))
    curves = (Curve("measured", np.arange(4), [values[k] for k in LOSSES], [errors[k] for k in LOSSES]),)
    del values["distance"], errors["distance"]
    return Evidence(values, errors, curves)


def predict_independence(s: GradientStack) -> Evidence:
    """The recursion where it applies; nothing behind a norm; for ½‖h‖² a bound above the recursion."""
    architecture = stack_of(s)
    found = predict_gradients(architecture, s.n)
    own = predict_gradients(architecture, s.n, loss=predict(architecture, s.n, spread=False).cosines)
    ratio, blind = (float(f.stream[0] / f.stream[-1]) * math.exp(-(f.seed_spread[0] ** 2)) for f in (found, own))
    values = {"iid": ratio, "normed": ratio, "length": 1.03 * blind, "post": 0.0}
    why = too_rough(found, architecture)
    return Evidence(values, undecided={} if why is None else dict.fromkeys(("iid", "normed"), why))


def _keeping(right: Any, size: float) -> Any:
    """A norm whose way back keeps a share of the radial part."""

    def changed(h: np.ndarray, *rest: Any) -> Any:
        x, pull = right(h, *rest)
        return x, lambda g: pull(g) + size * g

    return changed


# --- B21: spread over seeds


def spread_cases(s: GradientStack) -> dict[str, tuple[Architecture, str]]:
    """Pre-norm, and weak post-norm, from common gradients."""
    weak = msgspec.structs.replace(s, attention_power=0.3, mlp_power=0.6)
    return {
        "pre": (stack_of(s), "common"),
        "post": (stack_of(weak, placement="post"), "common"),
    }


def measure_spread(s: GradientStack) -> Evidence:
    """Standard deviation of ln(‖g_0‖²/‖g_L‖²) over seeds."""
    values, errors = {}, {}
    for case, (name, (architecture, loss)) in enumerate(spread_cases(s).items()):
        logs = [2 * np.log(x.stream()) for x in drawn_samples(s, architecture, loss, case)]
        values[name] = float(np.std([f[0] - f[-1] for f in logs], ddof=1))
        errors[name] = values[name] / math.sqrt(2 * (s.runs - 1))
    return Evidence(values, errors, (Curve("measured", np.arange(2), list(values.values()), list(errors.values())),))


def predict_spread(s: GradientStack) -> Evidence:
    """Fluctuations of branches and of lengths, added up."""
    values = {}
    for name, (architecture, loss) in spread_cases(s).items():
        values[name] = 2 * float(predict_gradients(architecture, s.n, loss=loss).seed_spread[0])
    return Evidence(values, curves=(Curve("predicted", np.arange(2), list(values.values())),))


# --- B23: pooled losses through a norm of the branch


def pooled(s: GradientStack) -> Architecture:
    """One attention layer with a norm of its own."""
    one = msgspec.structs.replace(s, layers=1, mlp_power=0.0, mlp_width=0)
    return stack_of(one, placement="sandwich")


def measure_pooled(s: GradientStack) -> Evidence:
    """‖g_0‖²/‖g_1‖² for a common gradient."""
    found = [x.stream() for x in drawn_samples(s, pooled(s), "common")]
    value, error = typical([(f[0] / f[-1]) ** 2 for f in found])
    return Evidence({"gain": value}, {"gain": error})


def predict_pooled(s: GradientStack) -> Evidence:
    """1 + s²/(r²m), m = 1/n for orthogonal tokens, with the finite width of both norms by the recursion."""
    architecture = pooled(s)
    found = predict_gradients(architecture, s.n, loss="common")
    less = 2 * found.seed_spread[0] ** 2
    return Evidence({"gain": (found.stream[0] / found.stream[-1]) ** 2 * math.exp(-less)})


SINGLE = "single seeds differ by 20 %: a hundred of them would do"

claim(
    "advise/B21",
    HOMOGENIZED,
    "how much gradients of single seeds differ",
    "Var ln‖g‖² over seeds adds up over branches: (2/d)(2⟨Γ_s,Γ_b⟩ + (1 + d/e)⟨Γ_b,Γ_b⟩)/(trΓ)², and with post-norm "
    "the fluctuations of lengths.",
    where=WHERE,
    models=(),
    quick=GradientStack(width=96, heads=3, mlp_width=384, layers=4, n=24, runs=48),
    full=GradientStack(runs=96),
    within=dict.fromkeys(("pre", "post"), relative(0.2, "carried fluctuations are left out", 5.0)),
    blind=dict.fromkeys(("pre", "post"), "the law is good to 20 %"),
    simulate=measure_spread,
    predict=predict_spread,
    axes=Axes("stack", "s.d. of ln ‖g_0‖²"),
    marks=("derived",),
    convention=CONVENTION,
)

claim(
    "advise/B23",
    HOMOGENIZED,
    "a pooled loss is amplified by norms on both sides",
    "The norm of an attention branch divides by its own power, 1/n on orthogonal tokens: a common gradient gains "
    "1 + s²n/r² in one layer.",
    where=WHERE,
    models=(),
    quick=GradientStack(n=32, runs=48, layers=1),
    full=GradientStack(n=32, runs=400, layers=1),
    within={"gain": relative(0.08, "terms of order n/d: products of tokens add to 1/n", 5.0)},
    blind={"gain": SINGLE},
    simulate=measure_pooled,
    predict=predict_pooled,
    axes=Axes("", "‖g_0‖²/‖g_1‖²"),
    marks=("derived",),
    convention=CONVENTION,
)

claim(
    "advise/B20",
    HOMOGENIZED,
    "a loss of the stream's own length is not covered",
    "The gradient at the top must not know the stack's weights: ½‖norm h − y‖² is predicted, ½‖h‖² gains more than the "
    "recursion says, and behind a norm it has no gradient at all.",
    where=WHERE,
    models=(),
    quick=GradientStack(width=96, heads=3, mlp_width=384, layers=6, n=32, runs=24),
    full=GradientStack(n=32, runs=32),
    within={
        "iid": relative(0.03, "terms of order 1/d", 5.0),
        "normed": relative(0.04, "terms of order 1/d, and the target's part that the norm removes", 5.0),
        "length": at_least("the recursion, were it right, and 3 %", errors=4.0),
        "post": absolute(1e-6, "rounding: the last norm removes the radial direction"),
    },
    blind=dict.fromkeys(("iid", "normed"), "single seeds differ by 6 % at a width of 96, the law is good to 4 %"),
    simulate=measure_independence,
    predict=predict_independence,
    mistakes=(
        too_large("predict", "a bound {:.0%} too large"),
        Mistake(
            "pathlines.model.architecture.random_gradients._normed", "a norm that keeps {:.0%}", _keeping, (1e-3, 0.1)
        ),
    ),
    axes=Axes("loss", "‖g_0‖/‖g_L‖"),
    marks=("derived",),
    convention=CONVENTION,
)
