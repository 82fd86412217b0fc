"""The curve in a terminal: mean cosine against depth, with spread and what was measured."""

from __future__ import annotations

import numpy as np

_ROWS = 11
_MOST = 64


def curve_lines(mean: np.ndarray, spread: np.ndarray, measured: np.ndarray | None = None) -> list[str]:
    """Lines of text: ● prediction, │ its spread over seeds, ○ measured; a column for each layer, or every k-th."""
    stride = -(-len(mean) // _MOST)
    layers = np.arange(0, len(mean), stride)
    gap = max(1, min(3, _MOST // len(layers)))
    least = float(np.min(mean))
    low = 0.0 if least > -0.05 else float(np.floor(10 * least) / 10)
    rows = [[" "] * (gap * len(layers)) for _ in range(_ROWS)]

    def row(value: float) -> int:
        place = (min(max(value, low), 1.0) - low) / (1 - low)
        return _ROWS - 1 - round(place * (_ROWS - 1))

    for column, layer in enumerate(layers):
        for k in range(row(mean[layer] + spread[layer]), row(mean[layer] - spread[layer]) + 1):
            rows[k][gap * column] = "│"
        if measured is not None and layer < len(measured):
            rows[row(float(measured[layer]))][gap * column] = "○"
        rows[row(float(mean[layer]))][gap * column] = "●"
    labels = [f"{1 - k * (1 - low) / (_ROWS - 1):5.2f} ┤" for k in range(_ROWS)]
    axis = "      └" + "─" * (gap * len(layers))
    return [label + "".join(cells).rstrip() for label, cells in zip(labels, rows, strict=True)] + [
        axis,
        "       " + _ticks(layers, gap) + "  layer",
    ]


def _ticks(layers: np.ndarray, gap: int) -> str:
    text = [" "] * (gap * len(layers) + 4)
    free = 0
    for column, layer in enumerate(layers):
        label, place = str(layer), gap * column
        if place >= free and (column == 0 or layer % 5 == 0 or len(layers) <= 13):
            text[place : place + len(label)] = label
            free = place + len(label) + 1
    return "".join(text).rstrip()
