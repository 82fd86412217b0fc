"""The layers of an architecture as maps, one after the other; equal layers are one map."""

from __future__ import annotations

from pathlines.architecture.record import Architecture
from pathlines.limit.architecture.attention import AttendedGram
from pathlines.limit.architecture.layer import LayerMap
from pathlines.limit.architecture.sampled import SAMPLES

_APART = 1_000_000


def layer_maps(architecture: Architecture, n: int, depth: int, samples: int = SAMPLES) -> list[LayerMap[AttendedGram]]:
    """The map of each of ``depth`` layers on n tokens; different ones draw their heads from different seeds."""
    maps: dict[int, LayerMap[AttendedGram]] = {}
    found = []
    for layer in architecture.each_layer(depth):
        if id(layer) not in maps:
            maps[id(layer)] = LayerMap(layer, AttendedGram(layer, n, samples))
            maps[id(layer)].attended.seed = _APART * (len(maps) - 1)
        found.append(maps[id(layer)])
    return found
