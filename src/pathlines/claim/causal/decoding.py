"""What claims about simulated retrieval share: uniform prompts through the decoder, and the remainder of linear theory.

Kinetic theory for Transformers and the lost-in-the-middle phenomenon, arXiv:2605.09213. Linear theory leaves out third
cumulants, of relative order e^{2x}/N with x = T sup aₙ; where a claim extrapolates in N, numbers at N and 2N are
combined as 2r(2N) − r(N), which leaves its square.
"""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from pathlines.claim.base import Axes, Curve
from pathlines.claim.causal.vocabulary import Codewords, Deep, Length, Positions, Prompts, Slope
from pathlines.foundation import vocabulary as of
from pathlines.foundation.setting import Setting
from pathlines.integrate.retrieval import retrieval
from pathlines.limit.causal.profile import Profile, retrieval_profile
from pathlines.model.causal.decoder import CausalDecoder

ERRORS = 5.0
MEANINGFUL = 0.1
"""e^{2x}/N beyond which linear theory decides nothing: its remainder is as large as what it predicts."""
POSITION = Axes("source position σ₀ = i/N", "retrieval profile S")


class Decoder(Setting):
    """Uniform prompts through the decoder."""

    beta: of.Beta = 1.0
    slope: Slope = 2.0
    vocabulary: Codewords = 8
    depth: Deep = 1.0
    n: Length = 64
    prompts: Prompts = 20_000
    sources: Positions = (0.25, 0.5, 0.75)
    seed: of.Seed = 3


def profile_of(s: Decoder, softmax: bool = False) -> Profile:
    """The closed form at the setting."""
    return retrieval_profile(s.beta, s.slope, s.vocabulary, s.depth, softmax=softmax)


def remainder(s: Decoder, n: int, softmax: bool = False) -> float:
    """e^{2x}/N, the relative size of what linear theory leaves out."""
    return float(np.exp(2 * s.depth * max(profile_of(s, softmax).rates)) / n)


def undecided(s: Decoder, n: int, *quantities: str, softmax: bool = False) -> dict[str, str]:
    """Those quantities where linear theory says nothing, with what to change."""
    size = remainder(s, n, softmax)
    return dict.fromkeys(quantities, f"e^(2x)/N = {size:.2g}: a smaller depth or larger n") if size > MEANINGFUL else {}


def measured(s: Decoder, n: int, seed: int, **options: Any) -> tuple[np.ndarray, np.ndarray, Curve]:
    """Profile, standard errors, and both as a curve."""
    found = retrieval(
        CausalDecoder(s.beta, s.slope), n, s.depth, key=jax.random.key(seed), prompts=s.prompts,
        vocabulary=s.vocabulary, progress=False, **options,
    )  # fmt: skip
    values, errors = found["profile"].values, found["error"].values
    return values, errors, Curve(f"{s.prompts} prompts, N = {n}", np.arange(1, n) / n, values, errors)


def nearest(s: Decoder, fine: int = 1) -> np.ndarray:
    """Indices, among ``fine`` N tokens, of the relative positions of N tokens that are nearest to ``sources``."""
    return fine * np.clip(np.round(np.asarray(s.sources) * s.n).astype(int), 1, s.n - 1) - 1


def source_positions(s: Decoder) -> np.ndarray:
    """Their relative positions."""
    return (nearest(s) + 1) / s.n


def closed_curve(s: Decoder) -> Curve:
    """S_t over all positions."""
    grid = np.linspace(0.01, 1, 200)
    return Curve("closed form, N = ∞", grid, profile_of(s)(grid))
