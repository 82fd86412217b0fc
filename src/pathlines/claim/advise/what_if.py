"""What-ifs on a decoder of the Llama kind: predicted mean cosine against the random model (arXiv:2604.01978; derived).

Embeddings of std 0.02 are drowned by the first layers, so that tokens are alike after few of them; depth-wise smaller
output projections (1/√(2L)) change little, embeddings of unit size change much, both together nearly everything.
"""

from __future__ import annotations

import math
from typing import Annotated

import jax
import numpy as np

from pathlines.architecture import Architecture, Deviations
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.estimate import controlled_mean, mean_and_error
from pathlines.claim.tolerance import relative
from pathlines.foundation import vocabulary as of
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.foundation.setting import Setting, means
from pathlines.integrate.chain import chain
from pathlines.limit.architecture.predict import predict
from pathlines.model.architecture.random_architecture import RandomArchitecture
from pathlines.model.architecture.token_embedding import TokenEmbedding

NAMES = ("as_configured", "projections", "embedding", "both")
CASES = ("as configured", "projections × 1/√(2L)", "embedding std 1", "both")


class Decoder(Setting):
    """A decoder of the Llama kind at initialisation."""

    width: Annotated[of.Count, means("width of the residual stream", "d")] = 96
    heads: Annotated[of.Count, means("query heads", "H")] = 6
    kv_heads: Annotated[of.Count, means("key-value heads")] = 2
    mlp_width: Annotated[of.Count, means("width of the gated perceptron")] = 256
    std: Annotated[of.Positive, means("standard deviation of the weights", "σ")] = 0.05
    depth: Annotated[of.Count, means("layers that output projections are scaled for, 1/√(2L)", "L")] = 30
    layers: Annotated[of.Count, means("layers that are run")] = 5
    n: of.Tokens = 16
    distinct: Annotated[of.Count, means("different tokens in the text")] = 14
    runs: of.Runs = 64
    seed: of.Seed = 7


def decoder(s: Decoder, case: str) -> Architecture:
    """The architecture of one case; its 1/√(2L) counts all ``depth`` layers, of which the first ``layers`` are run."""
    projection = s.std / math.sqrt(2 * s.depth) if case in CASES[1::2] else s.std
    embedding = 1.0 if case in CASES[2:] else s.std
    return Architecture(
        family="llama", width=s.width, heads=s.heads, kv_heads=s.kv_heads, layers=s.layers, mlp_width=s.mlp_width,
        activation="silu", gated=True, norm="rms", norm_epsilon=1e-5, placement="pre", mask="causal", positions="rope",
        deviations=Deviations.equal(s.std, embedding=embedding, output=projection, mlp_out=projection),
    )  # fmt: skip


def token_ids(s: Decoder) -> np.ndarray:
    """n tokens of which ``distinct`` differ, so that some words come twice."""
    return np.arange(s.n) % s.distinct


def simulate(s: Decoder) -> Evidence:
    """Every matrix drawn and multiplied; the four cases share one compiled program.

    The cosine of the embeddings, whose expectation is the share of equal pairs, is a control variate: what little a
    layer adds to it is then not lost in it.
    """
    values, errors, curves, runs = {}, {}, [], []
    for name, case in zip(NAMES, CASES, strict=True):
        model = RandomArchitecture(decoder(s, case))
        start = TokenEmbedding(model, token_ids(s))
        run = chain(model, start, depth=s.layers, key=jax.random.key(s.seed), runs=s.runs, record="mean_overlap")
        seen = run["mean_overlap"].transpose("run", ...).values
        mean, error = mean_and_error(seen)
        curves.append(Curve(case, run.data["layer"], mean, error))
        values[name], errors[name] = controlled_mean(seen[:, -1], seen[:, :1] - _equal_pairs(token_ids(s)))
        runs.append(run)
    return Evidence(values, errors, tuple(curves), tuple(runs))


def _equal_pairs(ids: np.ndarray) -> float:
    """Share of pairs i ≠ j of one word: E cos of embeddings with independent symmetric entries."""
    _, counts = np.unique(ids, return_counts=True)
    return float(np.sum(counts * (counts - 1)) / (len(ids) * (len(ids) - 1)))


def predicted(s: Decoder) -> Evidence:
    """The Gram map of each case."""
    found = [predict(decoder(s, case), token_ids(s), spread=False).mean_cosine for case in CASES]
    curves = tuple(Curve(f"predicted, {case}", np.arange(len(f)), f) for case, f in zip(CASES, found, strict=True))
    return Evidence({name: f[-1] for name, f in zip(NAMES, found, strict=True)}, curves=curves)


_FEW = "models differ from one another by 6 to 30 % of the mean cosine: 500 runs would do, for minutes"

claim(
    "advise/what-if",
    HOMOGENIZED,
    "what-ifs on a 30-layer decoder (derived)",
    "The mean cosine of the residual stream of a randomly initialised decoder (RMS norms, grouped keys, gated "
    "perceptron, rotary positions) is predicted from its configuration and token ids within 3 %, as configured, with "
    "output projections × 1/√(2L), with embeddings of std 1, and with both.",
    where="derived; the layer map carried to configured architectures, no statement in the paper",
    models=("random-architecture",),
    quick=Decoder(),
    full=Decoder(width=576, heads=9, kv_heads=3, mlp_width=1536, std=0.02, layers=29, n=64, distinct=48, runs=8),
    within=dict.fromkeys(NAMES, relative(0.03, "next order of the map in 1/width; runs are independent", 5.0)),
    blind=dict.fromkeys(NAMES[:3], _FEW) | {"both": "eight models at full size"},
    simulate=simulate,
    predict=predicted,
    axes=Axes("layer", "mean cosine"),
)  # fmt: skip
