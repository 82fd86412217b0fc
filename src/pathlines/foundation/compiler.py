"""Compilers that give wrong answers are told not to.

jaxlib 0.10.2 compiles ``y = w @ (x @ c); y - sum(x * y) x`` for a CPU into one library call whose answer is wrong for
some shapes (n = 200, d = 128 in float64: off by more than its own size). That is the velocity of a token on the sphere.
The fusions responsible are switched off before the compiler reads its flags; other versions are left alone.
"""

from __future__ import annotations

import os
import sys
import warnings
from importlib.metadata import PackageNotFoundError, version

WRONG = {"0.10.2": "--xla_cpu_experimental_ynn_fusion_type="}
"""For each version of jaxlib, the flag that avoids what it gets wrong."""


def avoid_wrong_fusions() -> None:
    """Add the flag to XLA_FLAGS, unless it is there; a warning when JAX has read its flags already."""
    try:
        flag = WRONG.get(version("jaxlib"))
    except PackageNotFoundError:
        return
    given = os.environ.get("XLA_FLAGS", "")
    if flag is None or flag.split("=")[0] in given:
        return
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is not None and bridge.backends_are_initialized():
        reason = "jaxlib 0.10.2 can compile products of matrices wrongly, and JAX ran before pathlines was imported"
        warnings.warn(f"{reason}: import pathlines first, or set XLA_FLAGS={flag}", RuntimeWarning, stacklevel=3)
        return
    os.environ["XLA_FLAGS"] = f"{given} {flag}".strip()
