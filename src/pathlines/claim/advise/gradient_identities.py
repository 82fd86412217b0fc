"""B08, B25, B27: what holds exactly for the backward recursion (derived)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import numpy as np

from pathlines.claim.advise.gradient_stack import CONVENTION, GradientStack, stack_of
from pathlines.claim.base import Axes, Evidence, claim
from pathlines.claim.fitting import Mistake
from pathlines.claim.tolerance import absolute
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, at_least, means
from pathlines.limit.architecture.attention import AttendedGram
from pathlines.limit.architecture.backward import descended
from pathlines.limit.architecture.backward_attention import attention_back
from pathlines.limit.architecture.backward_tape import recorded
from pathlines.limit.architecture.gradients import predict_gradients

WHERE = "derived; exact for the recursion, no statement in the paper"
ROUNDING = "rounding"


class Exchangeable(Setting):
    """Tokens of one cosine and gradients of one cosine."""

    n: Annotated[int, at_least(2), means("tokens", "n")] = 32
    cosine: Annotated[of.Share, means("cosine of the tokens", "γ")] = 0.3
    alignment: Annotated[of.Share, means("cosine of the gradients")] = 0.2
    logit_scale: of.LogitScale = 1.5
    seed: Annotated[int, at_least(1), means("seed of the drawn heads")] = 1


def measure_sums(s: Exchangeable) -> Evidence:
    """tr V − [tf + (u − t)g], ΣV − u and ΣK of drawn heads, f and g the participations of the same heads."""
    stack = GradientStack(width=64, heads=1, mlp_width=64, logit_scale=s.logit_scale)
    attended = AttendedGram(stack_of(stack), s.n, samples=32)
    eye, ones = np.eye(s.n), np.ones((s.n, s.n))
    x, top = ((1 - c) * eye + c * ones for c in (s.cosine, s.alignment))
    found = attention_back(attended, x, np.array([top, eye, ones]), np.inf, s.seed)
    t, u = float(np.trace(top)), float(np.sum(top))
    f = float(np.trace(found.value[1])) / s.n
    g = (float(np.trace(found.value[2])) / s.n - f) / max(s.n - 1, 1)
    values = {
        "trace": float(np.trace(found.value[0])) / t - (f + (u / t - 1) * g),
        "sum": float(np.sum(found.value[0])) / u - 1,
        "keys": float(np.sum(found.key[0])) / max(float(np.trace(found.key[0])), 1e-300),
    }
    return Evidence(values)


def nothing(names: tuple[str, ...], s: Any) -> Evidence:
    """Zero."""
    return Evidence(dict.fromkeys(names, 0.0))


def zeros(*names: str) -> Callable[[Any], Evidence]:
    """A prediction of zeros."""
    from functools import partial

    return partial(nothing, names)


def _leaking(right: Callable[..., Any], size: float) -> Callable[..., Any]:
    """Paths that lose a share of what all tokens share, in proportion to the square of Γ'."""

    def changed(attended: Any, x: Any, gradients: np.ndarray, *rest: Any) -> Any:
        found = right(attended, x, gradients, *rest)
        bent = 1 + size * np.abs(gradients) / np.abs(gradients).max() * np.arange(1, len(x) + 1) / len(x)
        return found._replace(value=found.value * bent, key=found.key * bent)

    return changed


def _losing(right: Callable[..., Any], size: float) -> Callable[..., Any]:
    """Values that pass too much of the first loss alone."""

    def changed(*given: Any) -> Any:
        found = right(*given)
        more = np.ones((len(found.value), 1, 1))
        more[0] += size
        return found._replace(value=found.value * more)

    return changed


PATH = "pathlines.limit.architecture.backward.attention_back"
BENT = Mistake(PATH, "paths bent by {:.0%}", _leaking, (1e-6, 0.01, 0.1))
BENT_HERE = Mistake("attention_back", "paths bent by {:.0%}", _leaking, (1e-6, 0.01, 0.1))

claim(
    "advise/B08",
    HOMOGENIZED,
    "what attention keeps of exchangeable gradients",
    "tr V = tf + (u − t)g with the participations f and g of the heads, ΣV = u and ΣK = 0, at any sharpness.",
    where=WHERE,
    models=(),
    quick=Exchangeable(),
    within=dict.fromkeys(("trace", "sum", "keys"), absolute(1e-12, ROUNDING)),
    simulate=measure_sums,
    predict=zeros("trace", "sum", "keys"),
    mistakes=(BENT_HERE, Mistake("attention_back", "values {:.0%} too large", _losing, (1e-6, 0.01))),
    axes=Axes(),
    marks=("derived",),
    convention=CONVENTION,
)


def measure_linearity(s: GradientStack) -> Evidence:
    """|Γ_0[A + B] − Γ_0[A] − Γ_0[B]| over |Γ_0[A + B]|."""
    rng = np.random.default_rng(s.seed)
    tape = recorded(stack_of(s, placement="post", mask="causal"), np.eye(s.n), s.layers, 32, finite=True, draw=True)
    rows = rng.standard_normal((2, s.n, s.n + 4))
    one, two = rows @ np.swapaxes(rows, 1, 2)
    down = descended(tape, np.array([one, two, one + two])).grams[0]
    return Evidence({"linear": float(np.abs(down[2] - down[0] - down[1]).max() / np.abs(down[2]).max())})


claim(
    "advise/B25",
    HOMOGENIZED,
    "the backward recursion is linear",
    "Gradients of a sum of uncorrelated losses are the sum: Γ_0[Γ_a + Γ_b] = Γ_0[Γ_a] + Γ_0[Γ_b].",
    where=WHERE,
    models=(),
    quick=GradientStack(width=64, heads=2, mlp_width=256, layers=3, n=12, logit_scale=1.5),
    within={"linear": absolute(1e-12, ROUNDING)},
    simulate=measure_linearity,
    predict=zeros("linear"),
    mistakes=(BENT,),
    axes=Axes(),
    marks=("derived",),
    convention=CONVENTION,
)


def measure_names(s: GradientStack) -> Evidence:
    """Γ of renamed tokens against renamed Γ, over its largest entry."""
    rng, architecture = np.random.default_rng(s.seed), stack_of(s)
    rows = rng.standard_normal((2, s.n, s.n + 8))
    start, top = rows @ np.swapaxes(rows, 1, 2) / (s.n + 8)
    order = rng.permutation(s.n)
    there = predict_gradients(architecture, gram=start, loss=top, draw=False).grams[0][order][:, order]
    back = predict_gradients(architecture, gram=start[order][:, order], loss=top[order][:, order], draw=False).grams[0]
    return Evidence({"names": float(np.abs(there - back).max() / np.abs(there).max())})


claim(
    "advise/B27",
    HOMOGENIZED,
    "gradients do not see the names of tokens",
    "Without a mask and positions, renaming tokens renames their gradients.",
    where=WHERE,
    models=(),
    quick=GradientStack(width=64, heads=2, mlp_width=256, layers=3, n=12),
    within={"names": absolute(1e-10, ROUNDING)},
    simulate=measure_names,
    predict=zeros("names"),
    mistakes=(BENT,),
    axes=Axes(),
    marks=("derived",),
    convention=CONVENTION,
)
