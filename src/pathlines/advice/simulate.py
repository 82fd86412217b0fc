"""The prediction put to the test: the random model itself, every matrix formed, over some seeds."""

from __future__ import annotations

import jax
import msgspec
import numpy as np

from pathlines.architecture import Architecture
from pathlines.foundation.errors import positive_integer
from pathlines.integrate.chain import chain
from pathlines.limit.architecture.start import Tokens
from pathlines.model.architecture.random_architecture import RandomArchitecture
from pathlines.model.architecture.token_embedding import TokenEmbedding

OWN = "our own chain"


class Simulated(msgspec.Struct, frozen=True):
    """Mean cosine after 0, 1, …, L layers, mean and standard deviation over seeds; ``model`` says what was built."""

    mean: list[float]
    spread: list[float]
    seeds: int
    model: str

    def errors(self, predicted: np.ndarray) -> tuple[float, float]:
        """(largest, mean) absolute difference from a predicted curve."""
        difference = np.abs(np.asarray(self.mean) - predicted[: len(self.mean)])
        return float(difference.max()), float(difference.mean())


def simulate(
    architecture: Architecture, tokens: Tokens, *, layers: int | None = None, seeds: int = 8, seed: int = 0
) -> Simulated:
    """Run the chain of random layers from the embeddings of the tokens."""
    model = RandomArchitecture(architecture)
    ids = np.arange(tokens) if isinstance(tokens, (int, np.integer)) else np.asarray(tokens)
    depth = architecture.layers if layers is None else positive_integer("layers", layers)
    run = chain(
        model, TokenEmbedding(model, ids), depth=depth, key=jax.random.key(seed),
        runs=positive_integer("seeds", seeds, least=2), record="mean_overlap",
    )  # fmt: skip
    values = run["mean_overlap"].transpose("run", ...).values
    return Simulated(values.mean(axis=0).tolist(), values.std(axis=0, ddof=1).tolist(), seeds, OWN)
