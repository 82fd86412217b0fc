"""What is compiled is what was written."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.domain import Sphere
from pathlines.foundation import compiler


@pytest.mark.parametrize(("n", "d"), [(200, 128), (100, 96), (150, 150), (64, 200)])
def test_velocity_of_attended_values_vs_numpy(n, d):
    """P_x(w V x): jaxlib 0.10.2 is wrong by more than the answer unless told otherwise."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n, d))
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    w, value = rng.random((n, n)) / n, rng.standard_normal((d, d)) / np.sqrt(d)
    move = lambda x, w, value: Sphere(d).tangent(x, w @ (x @ value))  # noqa: E731
    y = w @ (x @ value)
    exact = y - np.sum(x * y, axis=1, keepdims=True) * x
    np.testing.assert_allclose(jax.jit(move)(*map(jnp.asarray, (x, w, value))), exact, rtol=0, atol=1e-13)


def test_flags_of_the_user_stay():
    code = "import os, pathlines; print(os.environ['XLA_FLAGS'])"
    given = "--xla_cpu_multi_thread_eigen=true"
    run = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "XLA_FLAGS": given}, capture_output=True, text=True, check=True
    )
    assert run.stdout.startswith(given)


def test_quick_compilation_is_added_once_and_for_known_versions_only(monkeypatch):
    given = "--xla_cpu_multi_thread_eigen=true"
    environment = {"XLA_FLAGS": given}
    monkeypatch.setattr(compiler, "version", lambda _: "0.10.2")
    for _ in range(2):
        compiler.compile_quickly(environment)
    assert environment["XLA_FLAGS"].split() == [given, *compiler.QUICK["0.10.2"]]
    monkeypatch.setattr(compiler, "version", lambda _: "99.0")
    later: dict[str, str] = {}
    compiler.compile_quickly(later)
    assert later == {}
