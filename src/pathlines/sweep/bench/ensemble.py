"""A thousand small systems at once: explicit Euler on the sphere, x ← N(x + h P_x A), Q = K = V = I."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from pathlines.domain import Sphere
from pathlines.integrate import ensemble
from pathlines.model import SelfAttention
from pathlines.sweep.bench.case import NATIVE, Case, Contender, add
from pathlines.sweep.bench.drift import STEP, STEPS, euler, in_jax, in_numpy, in_torch
from pathlines.sweep.bench.fields import Tokens, numpy_field

CHECKED = 4


@dataclass(frozen=True)
class Start:
    """Uniform tokens in one precision."""

    n: int
    d: int
    dtype: str

    def __call__(self, key: PRNGKeyArray) -> jax.Array:
        """The start of one run."""
        return Sphere(self.d).uniform(key, self.n).astype(self.dtype)


def starts(runs: int, n: int, d: int, dtype: str) -> Tokens:
    """What ``ensemble`` starts from: run r has the key folded with r."""
    one = lambda r: Start(n, d, dtype)(jax.random.fold_in(jax.random.key(0), r))  # noqa: E731
    return Tokens(np.array(jax.vmap(one)(jnp.arange(runs))), 4.0, None)


def in_ensemble(p: Tokens) -> Any:
    """``pathlines.ensemble``, everything included: starts, records, certificates."""
    runs, n, d = p.x.shape
    law, model = Start(n, d, p.x.dtype.name), SelfAttention(p.beta)
    settings: Any = {"times": [STEP * STEPS], "method": "euler", "step": STEP, "progress": False}
    return lambda: ensemble(model, law, runs=runs, key=jax.random.key(0), **settings)


def final_tokens(p: Tokens, run: Any) -> np.ndarray:
    """The tokens at the end of an ensemble."""
    return run["tokens"].transpose("run", "time", ...).values[:, -1]


def ensemble_error(p: Tokens, answer: np.ndarray) -> float:
    """Against the same steps of a few runs in float64."""
    some = Tokens(p.x[:CHECKED].astype(float), p.beta, None)
    return float(np.abs(answer[:CHECKED] - euler(numpy_field(some), some.x)).max())


CONTENDERS = (
    Contender("NumPy", partial(in_numpy, numpy_field, True), steady=True),
    Contender("PyTorch bmm", partial(in_torch, False, True), needs="torch"),
    Contender("PyTorch SDPA", partial(in_torch, True, True), needs="torch"),
    Contender("native", partial(in_jax, "native", True), ours=True, needs=NATIVE),
    Contender("portable", partial(in_jax, "portable", True), ours=True),
    Contender("automatic", in_ensemble, ours=True, read=final_tokens),
)

for runs, quick in ((1000, False), (100, True)):
    for dtype in ("float32", "float64"):
        name = f"ensemble/runs={runs}/{dtype}"
        build = partial(starts, runs, 32, 3, dtype)
        what = f"{runs} runs of n = 32, d = 3, {STEPS} steps of explicit Euler"
        add(Case(name, 32, 3, dtype, what, build, CONTENDERS, ensemble_error, quick and dtype == "float64"))
