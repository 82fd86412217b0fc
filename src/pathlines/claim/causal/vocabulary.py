"""Fields of the settings of causal claims."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from pathlines.foundation import vocabulary as of
from pathlines.foundation.setting import means

Slope = Annotated[float, means("ALiBi slope, in units of 1/N", "λ")]
Slopes = Annotated[tuple[float, ...], means("ALiBi slopes, in units of 1/N", "λ")]
Codewords = Annotated[int, Meta(ge=2), means("codewords of the vocabulary", "M")]
Mode = Annotated[of.Count, means("Fourier mode", "n")]
Decay = Annotated[of.Positive, means("rate of a mode", "a")]
Positions = Annotated[tuple[Annotated[float, Meta(gt=0, le=1)], ...], means("relative positions", "σ₀")]
Prompts = Annotated[int, Meta(ge=2), means("independent uniform prompts")]
Length = Annotated[int, Meta(ge=2), means("tokens of a prompt", "N")]
Deep = Annotated[of.Positive, means("depth", "T", unit="depth-time")]
