"""Compilers that give wrong answers are told not to, and those of workers are told not to take too long.

jaxlib 0.10.2 compiles ``y = w @ (x @ c); y - sum(x * y) x`` for a CPU into one library call whose answer is wrong for
some shapes (n = 200, d = 128 in float64: off by more than its own size). That is the velocity of a token on the sphere.
The fusions responsible are switched off before the compiler reads its flags; other versions are left alone.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Mapping, MutableMapping
from importlib.metadata import PackageNotFoundError, version

WRONG = {"0.10.2": ("--xla_cpu_experimental_ynn_fusion_type=individual_dot",)}
"""For each version of jaxlib, the flags that avoid what it gets wrong."""
QUICK = {"0.10.2": ("--xla_cpu_use_fusion_emitters=false", "--xla_cpu_parallel_codegen_split_count=1")}
"""For each version of jaxlib (an unknown flag ends the process), the flags that compile in a third of the time.

Pure JAX loops over pairs then run up to three times slower, so they are for programs that run for a moment. These are
not cut into parts for several threads: there is one.
"""


def compile_quickly(environment: MutableMapping[str, str]) -> None:
    """Add the flags to the XLA_FLAGS that processes started with ``environment`` will read."""
    _add(QUICK, environment)


def avoid_wrong_fusions() -> None:
    """Add the flags to XLA_FLAGS, unless they are there; a warning when JAX has read its flags already."""
    lacking = _lacking(WRONG, os.environ)
    if not lacking:
        return
    bridge = sys.modules.get("jax._src.xla_bridge")
    if bridge is not None and bridge.backends_are_initialized():
        reason = "jaxlib 0.10.2 can compile products of matrices wrongly, and JAX ran before pathlines was imported"
        remedy = f"import pathlines first, or set XLA_FLAGS={' '.join(lacking)}"
        warnings.warn(f"{reason}: {remedy}", RuntimeWarning, stacklevel=3)
        return
    _add(WRONG, os.environ)


def _lacking(flags: Mapping[str, tuple[str, ...]], environment: MutableMapping[str, str]) -> list[str]:
    try:
        known = flags.get(version("jaxlib"), ())
    except PackageNotFoundError:
        return []
    return [flag for flag in known if flag.split("=")[0] not in environment.get("XLA_FLAGS", "")]


def _add(flags: Mapping[str, tuple[str, ...]], environment: MutableMapping[str, str]) -> None:
    for flag in _lacking(flags, environment):
        environment["XLA_FLAGS"] = f"{environment.get('XLA_FLAGS', '')} {flag}".strip()
