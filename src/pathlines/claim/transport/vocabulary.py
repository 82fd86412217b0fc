"""Fields that settings of the Euclidean claims share."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from pathlines.foundation import vocabulary as of
from pathlines.foundation.setting import means

Pieces = Annotated[of.Count, means("pieces of the schedule", "P")]
Points = Annotated[of.Count, means("points that are moved")]
Knots = Annotated[tuple[Annotated[int, Meta(ge=8)], ...], means("knots of the interpolation", "K")]
Weights = Annotated[tuple[of.Positive, ...], means("weights of the Gaussians of the target", "p")]
Means = Annotated[of.Vector, means("their means", "m")]
Deviations = Annotated[tuple[of.Positive, ...], means("their standard deviations", "σ")]
Grids = Annotated[tuple[Annotated[int, Meta(ge=2, le=45)], ...], means("cells along a side", "m")]
Draws = Annotated[Annotated[int, Meta(ge=1000)], means("exact draws of the target")]
