"""What the claims of the slow phase run: SA and USA with the scaled kernel, and tokens on the circle."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from pathlines.attention import SoftmaxAttention, UnnormalisedAttention
from pathlines.model import SelfAttention


def attention_model(kind: str, beta: float, multiplicities: Any = None) -> SelfAttention:
    """Q = K = V = I; USA with e^{β(<x,y>-1)}, so that both kinds contract at rates of order one."""
    attention = SoftmaxAttention() if kind == "sa" else UnnormalisedAttention(shift=jnp.asarray(float(beta)))
    return SelfAttention(beta, attention=attention, multiplicities=multiplicities)


def padded_polygon(k: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Angles of ``count`` ≥ k tokens on the corners of a regular k-gon, and multiplicities that give corners one mass.

    Polygons of one count share a compiled program.
    """
    corner = np.arange(count) % k
    return 2 * np.pi * corner / k, 1.0 / np.bincount(corner, minlength=k)[corner]


def circle_tokens(angles: Any) -> np.ndarray:
    """Rows (cos θ, sin θ)."""
    theta = np.asarray(angles, float)
    return np.stack([np.cos(theta), np.sin(theta)], axis=-1)


def angles_from(tokens: np.ndarray, base: Any) -> np.ndarray:
    """Angles of tokens relative to base angles, in (-π, π], with all digits of small differences."""
    base = np.asarray(base, float)
    along = tokens[..., 0] * np.cos(base) + tokens[..., 1] * np.sin(base)
    across = tokens[..., 1] * np.cos(base) - tokens[..., 0] * np.sin(base)
    return np.arctan2(across, along)
