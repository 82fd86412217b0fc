"""From a random transformer to its homogenized limit, a model again."""

from __future__ import annotations

from typing import Any

from pathlines.foundation.errors import of_kind
from pathlines.model.homogenized.drift import HomogenizedODE
from pathlines.model.homogenized.random_transformer import RandomTransformer
from pathlines.model.homogenized.sde import HomogenizedSDE


def homogenize(
    net: RandomTransformer, *, noise: bool = True, corrector: str = "full", time_step: float | None = None
) -> HomogenizedSDE | HomogenizedODE:
    """The SDE with common noise of a random transformer (Homogenized Transformers, arXiv:2604.01978), or its ODE.

    Args:
        net: the chain; its law, β, step η, heads H, update and masses are those of the limit.
        noise: whether the common noise is kept; without it the limit is the ODE of many heads, αηL → 0.
        corrector: how much of the drift is kept: "full", "paper" (as printed) or "none".
        time_step: δ > 0, of the integrator of the SDE; η by default. The smaller, the more exact and the slower.
    """
    of_kind("net", net, RandomTransformer, "a RandomTransformer")
    shared: dict[str, Any] = {
        "law": net.law, "beta": net.beta, "step": net.step, "heads": net.heads, "update": net.update,
        "multiplicities": net.multiplicities, "corrector": corrector,
    }  # fmt: skip
    return HomogenizedSDE(time_step=time_step, **shared) if noise else HomogenizedODE(**shared)
