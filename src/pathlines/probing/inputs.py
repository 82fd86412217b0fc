"""One input of a model: what the module is called with, and which tokens it becomes."""

from __future__ import annotations

from typing import Any

import msgspec
import numpy as np

from pathlines.probing.text import Tokens


class Input(msgspec.Struct, frozen=True):
    """``module``: arguments by name; ``ids``: equal numbers for equal tokens; ``special``: which tokens are marks.

    Where tokens are patches of an image, ids number them after the class token.
    """

    module: dict[str, np.ndarray]
    ids: np.ndarray
    special: np.ndarray

    @property
    def tokens(self) -> int:
        """How many there are."""
        return len(self.ids)


def of_tokens(tokens: Tokens) -> Input:
    """A text."""
    return Input({"input_ids": tokens.ids}, tokens.ids, tokens.special)


def takes_images(config: Any) -> bool:
    """Whether the configuration is that of a vision model."""
    return hasattr(config, "patch_size") and hasattr(config, "image_size")


def of_noise(config: Any, seed: int = 0) -> Input:
    """An image of independent standard normal pixels."""
    side, channels = config.image_size, config.num_channels
    pixels = np.random.default_rng(seed).standard_normal((channels, side, side), dtype=np.float32)
    ids = np.arange(1 + (side // config.patch_size) ** 2)
    return Input({"pixel_values": pixels}, ids, ids == 0)
