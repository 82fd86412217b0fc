"""What-ifs on a decoder of the Llama kind: predicted mean cosine against the random model (arXiv:2604.01978; derived).

Embeddings of std 0.02 are drowned by the first layers, so that tokens are alike after few of them; depth-wise smaller
output projections (1/√(2L)) change little, embeddings of unit size change much, both together nearly everything.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np

from pathlines.architecture import Architecture, Deviations
from pathlines.claim.base import Axes, Curve, Evidence, claim
from pathlines.claim.tolerance import absolute
from pathlines.foundation.papers import HOMOGENIZED
from pathlines.integrate.chain import chain
from pathlines.limit.architecture.predict import predict
from pathlines.model.random_architecture import RandomArchitecture
from pathlines.model.token_embedding import TokenEmbedding
from pathlines.observable.analysis import mean_and_error

CASES = ("as configured", "projections × 1/√(2L)", "embedding std 1", "both")


def decoder(s: Any, case: str) -> Architecture:
    """The architecture of one case; its 1/√(2L) counts all ``depth`` layers, of which the first ``layers`` are run."""
    projection = s.std / math.sqrt(2 * s.depth) if case in CASES[1::2] else s.std
    embedding = 1.0 if case in CASES[2:] else s.std
    return Architecture(
        family="llama", width=s.width, heads=s.heads, kv_heads=s.kv_heads, layers=s.layers, mlp_width=s.mlp_width,
        activation="silu", gated=True, norm="rms", norm_epsilon=1e-5, placement="pre", mask="causal", positions="rope",
        deviations=Deviations.equal(s.std, embedding=embedding, output=projection, mlp_out=projection),
    )  # fmt: skip


def token_ids(s: Any) -> np.ndarray:
    """n tokens of which ``distinct`` differ, so that some words come twice."""
    return np.arange(s.n) % s.distinct


def simulate(s: Any) -> Evidence:
    """Every matrix drawn and multiplied; the four cases share one compiled program."""
    values, errors, curves, runs = [], [], [], []
    for case in CASES:
        model = RandomArchitecture(decoder(s, case))
        start = TokenEmbedding(model, token_ids(s))
        run = chain(model, start, depth=s.layers, key=jax.random.key(s.seed), runs=s.runs, record="mean_overlap")
        mean, error = mean_and_error(run["mean_overlap"])
        curves.append(Curve(case, run.data["layer"], mean, error))
        values.append(mean[-1])
        errors.append(error[-1])
        runs.append(run)
    return Evidence({"cosine": np.array(values)}, {"cosine": np.array(errors)}, tuple(curves), tuple(runs))


def predicted(s: Any) -> Evidence:
    """The Gram map of each case."""
    found = [predict(decoder(s, case), token_ids(s), spread=False).mean_cosine for case in CASES]
    curves = tuple(Curve(f"predicted, {case}", np.arange(len(f)), f) for case, f in zip(CASES, found, strict=True))
    return Evidence({"cosine": np.array([f[-1] for f in found])}, curves=curves)


claim(
    "advise/what-if",
    HOMOGENIZED,
    "what-ifs on a 30-layer decoder (derived)",
    "The mean cosine of the residual stream of a randomly initialised decoder (RMS norms, grouped keys, gated "
    "perceptron, rotary positions) is predicted from its configuration and token ids within 0.03, as configured, with "
    "output projections × 1/√(2L), with embeddings of std 1, and with both.",
    models=("random-architecture",),
    quick={"width": 96, "heads": 6, "kv_heads": 2, "mlp_width": 256, "std": 0.05, "depth": 30, "layers": 5, "n": 16,
           "distinct": 14, "runs": 48, "seed": 7},
    full={"width": 576, "heads": 9, "kv_heads": 3, "mlp_width": 1536, "std": 0.02, "layers": 29, "n": 64,
          "distinct": 48, "runs": 8},
    within={"cosine": absolute(0.03, "0.02 for the map at this width, and two standard errors over seeds")},
    simulate=simulate,
    predict=predicted,
    axes=Axes("layer", "mean cosine"),
)  # fmt: skip
