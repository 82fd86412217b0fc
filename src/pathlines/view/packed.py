"""Numbers as text for a page: 16-bit integers with a scale and an offset, or 32-bit floats, in base64."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

LEVELS = 65534
"""Steps of the 16-bit grid between the least and the largest value."""
FINEST = 200.0
"""How many times a frame may be smaller than all of them before 16 bits would show: a step is then 1/327 of it."""


def packed_positions(places: np.ndarray, unit: bool) -> dict[str, Any]:
    """Places (frame, token, component) as text, with what it takes to read them.

    Stored q stands for offset + scale·q and is at most scale/2 = (largest - least)/131068 off. Where some frame is
    hundreds of times smaller than the largest (a cloud that blows up), 32-bit floats keep its shape.
    """
    low = np.full(places.shape[-1], -1.0) if unit else places.min(axis=(0, 1))
    high = np.full(places.shape[-1], 1.0) if unit else places.max(axis=(0, 1))
    if not unit and _varies(places, high - low):
        return {"dtype": "float32", "positions": text_of(places.astype("<f4"))}
    offset = (low + high) / 2
    scale = np.maximum((high - low) / LEVELS, np.finfo(float).tiny)
    stored = np.clip(np.rint((places - offset) / scale), -LEVELS // 2, LEVELS // 2).astype("<i2")
    return {"dtype": "int16", "positions": text_of(stored), "scale": scale.tolist(), "offset": offset.tolist()}


def _varies(places: np.ndarray, extent: np.ndarray) -> bool:
    """Whether the largest frame is hundreds of times as large as the smallest that is no point."""
    each = np.ptp(places, axis=1).max(axis=-1)
    wide = each[each > 0]
    return bool(wide.size and extent.max() > FINEST * wide[0] and wide[0] > 1e-9 * extent.max())


def packed_labels(labels: np.ndarray) -> str:
    """Labels (frame, token) below 65,536 as text."""
    return text_of(labels.astype("<u2"))


def text_of(array: np.ndarray) -> str:
    """Bytes of an array in base64."""
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
