"""Runs of the verifier, by which the claims on the sphere simulate: it shares no code with what they claim."""

from __future__ import annotations

from typing import Any

import numpy as np

from pathlines.transport.verifier import Verified, verify_schedule

SOLVER = "integrated with relative tolerance 1e-12, with room for accumulation over the run"


def unit(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Uniform points of the sphere, rows."""
    x = rng.standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def integrated(d: int, pieces: list[dict[str, Any]], prompts: list[Any], targets: Any = None) -> Verified:
    """Prompts after pieces given as records of the exchange format."""
    document = {"kind": "transformer-sphere", "d": d, "pieces": pieces}
    return verify_schedule(document, prompts, targets, rtol=1e-12)
