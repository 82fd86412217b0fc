"""Small transformers whose gradients are measured seed by seed and predicted: the settings that the claims share.

Powers are set directly: a of attention, a_m of the perceptron, b the deviation of a logit, σ_w = 1 of pre-activations,
tokens that start orthogonal with mean square r₀². Norms are compared as geometric means over seeds, the typical value:
the prediction is that of a post-norm model, and e^{-Var/4} times the root mean square of the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import numpy as np

from pathlines.architecture import Architecture, Deviations
from pathlines.claim.base import Curve, Evidence
from pathlines.claim.estimate import mean_and_error
from pathlines.foundation import vocabulary as of
from pathlines.foundation.setting import Setting, at_least, means
from pathlines.limit.architecture.gradients import Gradients, predict_gradients
from pathlines.model.architecture.random_gradients import GradientSample

KINDS = ("query", "key", "value", "output", "mlp_in", "mlp_out")
CONVENTION = "initial weights that are independent of the loss's gradient; the typical seed (geometric mean)."
WIDEST_SPREAD = 0.45
NARROWEST = 64
Cases = Mapping[str, tuple[Architecture, str]]


class GradientStack(Setting):
    """A stack of random layers, tokens, and seeds."""

    width: Annotated[int, at_least(8), means("width of the residual stream", "d")] = 192
    heads: of.Heads = 6
    layers: of.Depth = 8
    n: Annotated[int, at_least(2), means("tokens", "n")] = 48
    mlp_width: Annotated[of.Whole, means("neurons of the perceptron; 0: none", "w")] = 768
    attention_power: Annotated[of.NonNegative, means("power of attention on equal tokens", "a")] = 0.99
    mlp_power: Annotated[of.NonNegative, means("power of the perceptron per unit of its kernel", "a_m")] = 2.0
    logit_scale: of.LogitScale = 0.3
    embedding: Annotated[of.Positive, means("root mean square of the tokens at the start", "r₀")] = 1.0
    runs: Annotated[int, at_least(2), means("random modules")] = 12
    seed: of.Seed = 1


def stack_of(s: Any, **changes: Any) -> Architecture:
    """The architecture of the setting, with fields changed."""
    d, gated = s.width, changes.get("gated", False)
    heads = s.heads if d % s.heads == 0 else 1
    logits, value = math.sqrt(s.logit_scale / d), s.attention_power**0.25 / math.sqrt(d)
    hidden = math.sqrt(s.mlp_power / s.mlp_width) if s.mlp_width else 0.0
    sizes = Deviations(
        embedding=s.embedding, query=logits, key=logits, value=value, output=value, mlp_in=d**-0.5,
        mlp_gate=d**-0.5 if gated else 0.0, mlp_out=hidden,
    )  # fmt: skip
    fields = {"positions": "none", "mask": "full", "activation": "relu"} | changes
    return Architecture(
        width=d, heads=heads, layers=s.layers, mlp_width=s.mlp_width, context=max(s.n, 1024), deviations=sizes, **fields
    )


def drawn_samples(
    s: Any, architecture: Architecture, loss: str = "iid", case: int = 0, **others: Any
) -> list[GradientSample]:
    """``runs`` modules, each with its weights, tokens and gradient at the top."""
    return [GradientSample(architecture, s.n, (s.seed, case, run), loss, **others) for run in range(s.runs)]


def typical(values: Any) -> tuple[np.ndarray, np.ndarray]:
    """Geometric mean over seeds and its standard error."""
    mean, error = mean_and_error(np.log(np.maximum(np.asarray(values, float), 1e-300)))
    return np.exp(mean), np.exp(mean) * error


def typical_stream(found: Gradients, architecture: Architecture) -> np.ndarray:
    """‖g_ℓ‖/‖g_L‖ of a typical seed, ℓ < L."""
    less = 0.0 if architecture.placement == "post" else found.seed_spread**2
    return (found.stream / found.stream[-1] * np.exp(-less))[:-1]


def typical_matrices(found: Gradients, architecture: Architecture) -> np.ndarray:
    """Geometric means over layers, by kind."""
    less = 0.0 if architecture.placement == "post" else float(np.mean(found.seed_spread[1:] ** 2))
    kinds = [kind for kind in KINDS if kind in found.matrices]
    return np.array([np.exp(np.mean(np.log(np.maximum(found.matrices[k], 1e-300))) - less) for k in kinds])


def measured_stacks(cases: Callable[[Any], Cases], s: Any) -> Evidence:
    """``NAME``: the stream's gradient norms over that of the top; ``NAME_matrices``: those of matrices by kind."""
    values, errors, curves = {}, {}, []
    for case, (name, (architecture, loss)) in enumerate(cases(s).items()):
        seeds = drawn_samples(s, architecture, loss, case)
        stream = np.array([seed.stream() for seed in seeds])
        values[name], errors[name] = typical(stream[:, :-1] / stream[:, -1:])
        found = [seed.matrices() for seed in seeds]
        kinds = [kind for kind in KINDS if kind in found[0]]
        logs = [[np.exp(np.mean(np.log(np.maximum(f[k], 1e-300)))) for k in kinds] for f in found]
        values[f"{name}_matrices"], errors[f"{name}_matrices"] = typical(logs)
        curves.append(Curve(f"measured, {name}", np.arange(s.layers), values[name], errors[name]))
    return Evidence(values, errors, tuple(curves))


def predicted_stacks(cases: Callable[[Any], Cases], s: Any) -> Evidence:
    """The recursion; inconclusive where seeds differ so much that the next order counts."""
    values, curves = {}, []
    advice: dict[str, str] = {}
    for name, (architecture, loss) in cases(s).items():
        found = predict_gradients(architecture, s.n, loss=loss)
        values[name] = typical_stream(found, architecture)
        values[f"{name}_matrices"] = typical_matrices(found, architecture)
        curves.append(Curve(f"predicted, {name}", np.arange(s.layers), values[name]))
        if (why := too_rough(found, architecture)) is not None:
            advice |= {name: why, f"{name}_matrices": why}
    return Evidence(values, curves=tuple(curves), undecided=advice)


def too_rough(found: Gradients, architecture: Architecture) -> str | None:
    """Where terms of second order in 1/d exceed the tolerances."""
    if architecture.width < NARROWEST:
        return f"a width of {NARROWEST} or more: terms of order 1/d² count below"
    if found.seed_spread[0] > WIDEST_SPREAD:
        return "a wider model or fewer layers: norms of single seeds differ so much that the next order counts"
    return None
