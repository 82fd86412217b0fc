"""What is asked about retrieval: one record, its cost, its forecast and its measurement; for the program and pages."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import xarray as xr
from msgspec import Meta

from pathlines.attention.masks import AlibiMask, PositionMask, read_mask
from pathlines.foundation.bounds import within
from pathlines.foundation.setting import Setting, means
from pathlines.limit.causal.forecast import RetrievalForecast, retrieval_forecast

MOST_WORK = 2e10
"""Tokens × modes × stages × prompts, or squares of tokens: about a minute."""
STAGES = 4
"""Drifts of a step."""


class Recall(Setting):
    """How well the last token of a prompt remembers every earlier one."""

    beta: Annotated[float, Meta(ge=0, le=1e4), means("inverse temperature", "β")] = 1.0
    slope: Annotated[float, Meta(ge=-1e4, le=1e4), means("ALiBi slope in units of 1/N; 0 for none", "λ")] = 2.0
    depth: Annotated[float, Meta(gt=0, le=1e4), means("depth: layers times their step", "t")] = 1.0
    vocabulary: Annotated[int, Meta(ge=2, le=10_000), means("codewords that are told apart", "M")] = 8
    n: Annotated[int, Meta(ge=2, le=10**8), means("tokens of a prompt", "N")] = 256
    mask: Annotated[str, Meta(max_length=80), means("causal, alibi:λ, window:WIDTH, sink:COUNT:WIDTH, …")] = "causal"
    softmax: Annotated[bool, means("softmax attention instead of the paper's kernel")] = False
    layers: Annotated[int, Meta(ge=1, le=10**6), means("residual layers of step t/L", "L")] | None = None
    prompts: Annotated[int, Meta(ge=2, le=10**8), means("random prompts of a simulation")] = 2000
    seed: Annotated[int, means("seed of the prompts")] = 0

    @property
    def listeners(self) -> PositionMask:
        """Who is heard."""
        return read_mask(self.mask, slope=self.slope)

    @property
    def dense(self) -> bool:
        """Whether hops are products with a matrix, and not running sums."""
        mask = self.listeners
        return not (isinstance(mask, AlibiMask) and mask.strict)

    def work(self, *, simulate: bool) -> float:
        """Operations, roughly."""
        n = float(self.n)
        theory = 100.0 * n * n if self.dense else 0.0
        steps = max(5.0, 10.0 * self.depth)
        return theory + 200.0 * n + simulate * float(self.prompts) * n * (n if self.dense else 20.0) * STAGES * steps

    def check(self, *, simulate: bool, most: float = MOST_WORK, force: bool = False) -> None:
        """Refuse what takes too long, before any of it."""
        within(f"Retrieval from {self.n} tokens", self.work(simulate=simulate), most, "operations", force=force)
        self.listeners.check(self.n)

    def forecast(self) -> RetrievalForecast:
        """What theory says."""
        how: dict[str, Any] = {"softmax": self.softmax, "layers": self.layers}
        mask = self.listeners
        if isinstance(mask, AlibiMask) and mask.strict:
            return retrieval_forecast(self.beta, float(mask.slope), self.vocabulary, self.depth, self.n, **how)
        rows = np.asarray(mask.rows(self.n))
        return retrieval_forecast(self.beta, self.slope, self.vocabulary, self.depth, self.n, mask=rows, **how)

    def measured(self) -> xr.Dataset:
        """What random prompts say, with errors."""
        import jax

        from pathlines.integrate.retrieval import retrieval
        from pathlines.model.causal.decoder import CausalDecoder

        model = CausalDecoder(self.beta, self.listeners, softmax=self.softmax)
        return retrieval(
            model, self.n, self.depth, key=jax.random.key(self.seed), prompts=self.prompts,
            vocabulary=self.vocabulary, layers=self.layers, progress=None,
        )  # fmt: skip
