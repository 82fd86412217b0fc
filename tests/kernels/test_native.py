"""The native kernel against plain JAX: shapes, kinds, precisions, batches, derivatives, extremes, life without it."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.kernels.native import fused_attend, native_library
from pathlines.kernels.native.call import portable_attend

pytestmark = pytest.mark.skipif(native_library() is None, reason="no C++ compiler here")

SHAPES = [
    (1, 1, 1, 1),
    (3, 2, 1, 2),
    (5, 7, 2, 3),
    (32, 32, 32, 32),
    (37, 41, 5, 9),
    (70, 600, 17, 33),
    (300, 513, 3, 3),
]


def problem(shape, dtype, scale=2.0):
    n, m, p, d = shape
    q, k, v, w, s = jax.random.split(jax.random.key(sum(shape)), 5)
    masses = jax.nn.softmax(jax.random.normal(w, (m,), dtype))
    arrays = [jax.random.normal(x, size, dtype) for x, size in ((q, (n, p)), (k, (m, p)), (v, (m, d)))]
    return (scale * arrays[0], *arrays[1:], masses, jax.random.normal(s, (), dtype))


@pytest.mark.parametrize("softmax", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES)
def test_same_as_plain_jax(shape, dtype, softmax):
    arguments = problem(shape, dtype, scale=0.5)
    exact = portable_attend(softmax, *(a.astype("float64") for a in arguments))
    for ours, theirs in zip(fused_attend(softmax, *arguments), exact, strict=True):
        # Rounding of scores of size |s| changes weights by eps·|s|; sums of m terms lose a few more bits.
        slack = 64 * np.finfo(dtype).eps * (1 + float(jnp.abs(theirs).max()))
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=slack * 4)


def test_batches_are_bitwise_the_single_systems():
    arguments = [
        jnp.stack(x) for x in zip(*(problem((33, 33, 4, 4), "float64", c) for c in (0.5, 1.0, 3.0)), strict=True)
    ]
    together = jax.vmap(lambda *a: fused_attend(True, *a))(*arguments)
    for i in range(3):
        alone = fused_attend(True, *(a[i] for a in arguments))
        assert all(bool(jnp.array_equal(x[i], y)) for x, y in zip(together, alone, strict=True))


@pytest.mark.parametrize("softmax", [True, False])
def test_derivatives(softmax):
    arguments = problem((6, 6, 3, 3), "float64", 0.7)
    forward = jax.jacfwd(lambda q: fused_attend(softmax, q, *arguments[1:])[0])(arguments[0])
    backward = jax.jacrev(lambda q: fused_attend(softmax, q, *arguments[1:])[0])(arguments[0])
    plain = jax.jacfwd(lambda q: portable_attend(softmax, q, *arguments[1:])[0])(arguments[0])
    np.testing.assert_allclose(forward, plain, atol=1e-13)
    np.testing.assert_allclose(backward, plain, atol=1e-13)


@pytest.mark.parametrize("beta", [0.0, 50.0, 1000.0, 1e5])
def test_no_overflow_for_any_temperature(beta):
    x = jax.random.normal(jax.random.key(0), (300, 3))
    x = x / jnp.linalg.norm(x, axis=1, keepdims=True)
    out, scale = fused_attend(True, beta * x, x, x, jnp.full(300, 1 / 300), jnp.zeros(()))
    exact, exact_scale = portable_attend(True, beta * x, x, x, jnp.full(300, 1 / 300), jnp.zeros(()))
    np.testing.assert_allclose(out, exact, atol=1e-15 * max(beta, 100))
    np.testing.assert_allclose(scale, exact_scale, rtol=1e-14, atol=1e-14)


def test_not_a_number_is_passed_on():
    q, k, v, masses, shift = problem((9, 9, 4, 4), "float64")
    out, scale = fused_attend(True, q.at[2, 1].set(jnp.nan), k, v, masses, shift)
    assert bool(jnp.isnan(out[2]).all()) and bool(jnp.isnan(scale[2]))
    assert bool(jnp.isfinite(out[3]).all())


@pytest.mark.parametrize("setting", [{"PATHLINES_NATIVE": "off"}, {"CXX": "/nowhere/c++", "XDG_CACHE_HOME": "{}"}])
def test_without_a_compiler_the_portable_path_takes_over(setting, tmp_path, monkeypatch):
    for name, value in setting.items():
        monkeypatch.setenv(name, value.format(tmp_path))
    code = (
        "import warnings; warnings.simplefilter('always'); import pathlines as pl; pl.enable_float64();"
        "from pathlines.kernels.native import native_library; assert native_library() is None;"
        "print(float(pl.flow(pl.SelfAttention(1.0), pl.Sphere(3).sines(5), until=1.0, record='mean_overlap')"
        "['mean_overlap'][-1]))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ("Native kernels are not available" in result.stderr) == ("CXX" in setting)
    assert -1 < float(result.stdout) < 1
