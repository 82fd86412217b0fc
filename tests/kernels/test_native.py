"""The native kernel: batches, extremes, determinism, life without it."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.attention import SoftmaxAttention, UnnormalisedAttention
from pathlines.kernels.native import fused_attend, native_library
from pathlines.kernels.portable import portable_attend

pytestmark = pytest.mark.skipif(native_library() is None, reason="no C++ compiler here")


def problem(shape, dtype="float64", scale=2.0):
    n, m, p, d = shape
    q, k, v, w = jax.random.split(jax.random.key(sum(shape)), 4)
    masses = jax.nn.softmax(jax.random.normal(w, (m,), dtype))
    arrays = [jax.random.normal(x, size, dtype) for x, size in ((q, (n, p)), (k, (m, p)), (v, (m, d)))]
    return (scale * arrays[0], *arrays[1:], masses)


@pytest.mark.parametrize("width", [3, 20])
def test_batches_are_bitwise_the_single_systems(width):
    """However many there are, and whether they share the threads or not."""
    systems = [problem((33, 33, width, width), scale=c) for c in np.linspace(0.5, 3, 40)]
    stacked = [jnp.stack(x) for x in zip(*systems, strict=True)]
    together = jax.vmap(lambda *a: fused_attend(SoftmaxAttention(), *a))(*stacked)
    for i in (0, 17, 39):
        alone = fused_attend(SoftmaxAttention(), *systems[i])
        assert all(bool(jnp.array_equal(x[i], y)) for x, y in zip(together, alone, strict=True))


@pytest.mark.parametrize("width", [3, 12])
@pytest.mark.parametrize("beta", [0.0, 50.0, 1000.0, 1e5])
def test_no_overflow_for_any_temperature(beta, width):
    x = jax.random.normal(jax.random.key(0), (300, width))
    x = x / jnp.linalg.norm(x, axis=1, keepdims=True)
    arguments = (SoftmaxAttention(), beta * x, x, x, jnp.full(300, 1 / 300))
    out, scale = fused_attend(*arguments)
    exact, exact_scale = portable_attend(*arguments)
    np.testing.assert_allclose(out, exact, atol=1e-15 * max(beta, 100))
    np.testing.assert_allclose(scale, exact_scale, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize("width", [4, 11])
def test_not_a_number_is_passed_on(width):
    q, k, v, masses = problem((9, 9, width, width))
    out, scale = fused_attend(SoftmaxAttention(), q.at[2, 1].set(jnp.nan), k, v, masses)
    assert bool(jnp.isnan(out[2]).all()) and bool(jnp.isnan(scale[2]))
    assert bool(jnp.isfinite(out[3]).all())


@pytest.mark.parametrize("width", [2, 10])
def test_tokens_without_mass_do_not_exist(width):
    """The longer key raises the shift to at most 100, and weights round by that many ε."""
    q, k, v, masses = problem((9, 30, width, width))
    masses = masses.at[20:].set(0.0)
    for kind in (SoftmaxAttention(), UnnormalisedAttention(1.0)):
        fewer = fused_attend(kind, q, k[:20], v[:20], masses[:20])
        all_of_them = fused_attend(kind, q, k.at[25].mul(3.0), v, masses)
        np.testing.assert_allclose(all_of_them[0], fewer[0], rtol=0, atol=1e-13)


def test_rows_do_not_depend_on_their_neighbours():
    """A causal row is the row of a shorter sequence (up to its shift, which bounds all scores)."""
    for width in (3, 40):
        q, k, v, masses = problem((500, 500, width, width), scale=0.3)
        whole = fused_attend(SoftmaxAttention(), q, k, v, masses, True)[0]
        part = fused_attend(SoftmaxAttention(), q[:77], k[:77], v[:77], masses[:77], True)[0]
        np.testing.assert_allclose(whole[:77], part, rtol=1e-13, atol=1e-15)


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
