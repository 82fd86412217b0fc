"""Rotary positions in a configuration: the base and the rotated fraction, in their older and newer places."""

from __future__ import annotations

from pathlines.architecture.config import Config
from pathlines.foundation.errors import ArgumentError, finite_number

STRETCHED = ("linear", "dynamic", "yarn", "llama3")
"""Kinds of `rope_scaling` that are nothing without a factor."""


def rope_of(
    config: Config, base_name: str = "rope_theta", fraction_name: str = "partial_rotary_factor", fraction: float = 1.0
) -> tuple[float, float]:
    """(base, rotated fraction); newer files keep both in `rope_parameters`. Stretched contexts change nothing here.

    Where layers with a window turn at another rate (`full_attention` and `sliding_attention`), those without count.
    """
    scaling = config.section("rope_scaling")
    kind = scaling.get("rope_type", scaling.get("type", "default"))
    if not isinstance(kind, str):
        raise ArgumentError(f"{scaling.source}: `rope_type` must be a word, but is {kind!r}.")
    if kind in STRETCHED and scaling.get("factor", None) is None:
        raise ArgumentError(f"{scaling.source}: `factor` must be a number for {kind} scaling, but is missing.")
    finite_number(f"rope_scaling.factor of {config.source}", scaling.number("factor", 1.0), 0.0, open_low=True)
    inside = config.section("rope_parameters")
    inside = inside.section("full_attention") if inside.get("full_attention") is not None else inside
    base = config.number(base_name, inside.number("rope_theta", 10_000.0))
    return base, config.number(fraction_name, inside.number("partial_rotary_factor", fraction))
