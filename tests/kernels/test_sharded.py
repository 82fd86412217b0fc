"""One system over four (forced) devices against plain sums in NumPy; this file is also the program that they run."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from pathlines.attention import AlibiMask, HardmaxAttention, SoftmaxAttention, UnnormalisedAttention
from pathlines.foundation.errors import ArgumentError
from pathlines.kernels.sharded import sharded_attend, sharded_spectral_attend

KINDS = {"softmax": SoftmaxAttention(), "unnormalised": UnnormalisedAttention(0.7)}
SIZES = {"divisible": (16, 16), "padded": (37, 37), "empty device": (5, 5), "rectangular": (9, 14)}
CASES = [
    ("softmax", "divisible", False),
    ("softmax", "padded", False),
    ("softmax", "padded", True),
    ("softmax", "empty device", True),
    ("softmax", "rectangular", False),
    ("unnormalised", "padded", False),
    ("unnormalised", "empty device", True),
]
SERIES = [("softmax", 2, 13), ("unnormalised", 2, 13), ("softmax", 3, 8)]
BETA = 4.0
EVEN = np.full(37, 1 / 37, np.float32)


def masked(causal):
    return AlibiMask(strict=False, reduce="sum") if causal else None


def problem(size, dtype="float64"):
    n, m = SIZES[size]
    rng = np.random.default_rng(n)
    masses = rng.dirichlet(np.ones(m))
    masses[0] = 0.0  # the first row of a causal system then sees nothing
    masses[1:3] += 0.1
    arrays = (2 * rng.standard_normal((n, 3)), rng.standard_normal((m, 3)), rng.standard_normal((m, 2)), masses)
    return [a.astype(dtype) for a in arrays]


def dense(kind, q, k, v, masses, causal):
    """Plain NumPy."""
    q, k, v, masses = (np.asarray(a, np.float64) for a in (q, k, v, masses))
    scores = q @ k.T
    if causal:
        scores = np.where(np.arange(len(k)) <= np.arange(len(q))[:, None], scores, -np.inf)
    weights = masses * np.exp(scores)
    if kind == "unnormalised":
        return weights @ v * np.exp(-0.7), np.full(len(q), 0.7)
    total = weights.sum(axis=1)
    with np.errstate(divide="ignore"):
        return weights @ v / np.where(total > 0, total, 1)[:, None], np.log(total)


def far_below_zero():
    """Queries and keys almost opposite to each other."""
    q, k, _, _ = problem("padded", "float32")
    return np.float32(30) + np.float32(0.1) * q, np.float32(-10) + np.float32(0.01) * k


def unit_vectors(d, n):
    x = np.random.default_rng(n).standard_normal((n, d))
    return x / np.linalg.norm(x, axis=1, keepdims=True), np.random.default_rng(d).dirichlet(np.ones(n))


def slack(q, k, v, masses, dtype, kind):
    """Rounding: ε|s| in an exponent of size |s|, a few ε for the sum, relative to the largest answer."""
    size = np.abs(q @ k.T).max()
    largest = np.abs(v).max() * (np.exp(size) if kind == "unnormalised" else 1 + size)
    return 16 * np.finfo(dtype).eps * (1 + size) * largest


def gradients_of(causal):
    """Of a scalar of all answers, in queries, keys, values and masses."""
    q, k, v, masses = map(jnp.asarray, problem("padded"))
    mesh = jax.make_mesh((4,), ("rows",))

    def scalar(q, k, v, masses):
        return jnp.sum(jnp.sin(sharded_attend(SoftmaxAttention(), q, k, v, masses, mesh, masked(causal))[0]))

    return jax.grad(scalar, argnums=(0, 1, 2, 3))(q, k, v, without(masses, causal))


def without(masses, causal):
    """All masses of the second device gone, and in a causal system those of the first ten rows."""
    return masses.at[10:20].set(0.0).at[: 10 if causal else 0].set(0.0)


def on_four_devices(path):
    """What the subprocess does."""
    jax.config.update("jax_enable_x64", True)
    meshes = (jax.make_mesh((4,), ("rows",)), jax.sharding.Mesh(np.array(jax.devices()).reshape(2, 2), ("a", "b")))
    found = {}
    for number, (kind, size, causal) in enumerate(CASES):
        answer = sharded_attend(KINDS[kind], *map(jnp.asarray, problem(size)), meshes[number % 2], masked(causal))
        found[f"{kind}/{size}/{causal}/0"], found[f"{kind}/{size}/{causal}/1"] = answer
    for kind, d, n in SERIES:
        x, masses = map(jnp.asarray, unit_vectors(d, n))
        answer = sharded_spectral_attend(KINDS[kind], x, x, BETA, masses, meshes[d % 2])
        found[f"series/{kind}/{d}/0"], found[f"series/{kind}/{d}/1"] = answer
    single = [jnp.asarray(a) for a in problem("padded", "float32")]
    found["float32"] = sharded_attend(SoftmaxAttention(), *single, meshes[0])[0]
    found["cold"] = sharded_attend(SoftmaxAttention(), 500 * single[0], *single[1:3], EVEN, meshes[0])[0]
    found["far"] = sharded_attend(SoftmaxAttention(), *far_below_zero(), single[2], EVEN, meshes[0])[0]
    for causal in (False, True):
        for number, gradient in enumerate(gradients_of(causal)):
            found[f"gradient/{causal}/{number}"] = gradient
    np.savez(path, devices=jax.device_count(), **found)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    path = tmp_path_factory.mktemp("sharded") / "found.npz"
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count=4"
    environment = {**os.environ, "XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    subprocess.run([sys.executable, __file__, str(path)], env=environment, check=True, timeout=300)
    return np.load(path)


def test_there_were_four_devices(found):
    assert found["devices"] == 4


@pytest.mark.parametrize(("kind", "size", "causal"), CASES)
def test_answers_are_those_of_one_device(found, kind, size, causal):
    arguments = problem(size)
    exact = dense(kind, *arguments, causal)
    for part, theirs in enumerate(exact):
        ours = found[f"{kind}/{size}/{causal}/{part}"]
        assert ours.shape == theirs.shape
        bound = slack(*arguments, "float64", kind)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=bound)


@pytest.mark.parametrize(("kind", "d", "n"), SERIES)
def test_series_are_the_sums_over_all_pairs(found, kind, d, n):
    """The kernel e^{β(<x,y>-1)} is wrong by at most 1e-12; softmax divides by Z ≥ m_i, sums carry e^{β - shift}."""
    x, masses = unit_vectors(d, n)
    exact = dense(kind, BETA * x, x, x, masses, False)
    factor = 2 / masses.min() if kind == "softmax" else np.exp(BETA - 0.7)
    for part, theirs in enumerate(exact):
        np.testing.assert_allclose(found[f"series/{kind}/{d}/{part}"], theirs, rtol=0, atol=1e-12 * factor)


def test_float32_stays_float32(found):
    arguments = problem("padded", "float32")
    exact, _ = dense("softmax", *arguments, False)
    assert found["float32"].dtype == np.float32
    np.testing.assert_allclose(found["float32"], exact, rtol=0, atol=slack(*arguments, "float32", "softmax"))


def test_no_overflow_at_low_temperature(found):
    """Scores in the thousands: attention is the value of the best key."""
    q, k, v, _ = problem("padded", "float32")
    scores = q @ k.T
    clear = np.diff(np.sort(scores, axis=1)[:, -2:])[:, 0] > 0.1
    assert clear.sum() > 20
    np.testing.assert_allclose(found["cold"][clear], v[np.argmax(scores, axis=1)][clear], rtol=1e-6, atol=1e-6)


def test_padding_does_not_set_the_scale(found):
    """Scores near -900, where a padded key of score zero would make all weights underflow."""
    q, k = far_below_zero()
    v = problem("padded", "float32")[2]
    exact, _ = dense("softmax", q, k - k.mean(axis=0), v, EVEN, False)
    size = np.abs(q @ k.T).max()
    np.testing.assert_allclose(found["far"], exact, rtol=0, atol=4 * np.finfo(np.float32).eps * size * np.abs(v).max())


@pytest.mark.parametrize("causal", [False, True])
def test_derivatives_by_central_differences(found, causal):
    """Along a random direction, extrapolated; masses from zero too.

    Causal rows that see no mass would jump in it, so that those keys keep none.
    """
    arguments = problem("padded")
    arguments[3] = np.array(without(jnp.asarray(arguments[3]), causal))
    directions = [np.random.default_rng(number).standard_normal(a.shape) for number, a in enumerate(arguments)]
    directions[3] *= np.where(np.arange(37) < (20 if causal else 0), 0.0, np.maximum(arguments[3], 0.01))

    def slope(h):
        moved = ([a + s * h * b for a, b in zip(arguments, directions)] for s in (1, -1))
        ends = [np.sum(np.sin(dense("softmax", *a, causal)[0])) for a in moved]
        return (ends[0] - ends[1]) / (2 * h)

    expected = (4 * slope(1e-5) - slope(2e-5)) / 3
    ours = sum(np.sum(found[f"gradient/{causal}/{number}"] * b) for number, b in enumerate(directions))
    assert ours == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"attention": HardmaxAttention()}, "Argument `attention` must be softmax or unnormalised"),
        ({"mesh": "four"}, "Argument `mesh` must be a jax.sharding.Mesh"),
        ({"keys": np.ones((3, 2)), "mask": AlibiMask()}, "Argument `keys` must be as many as the queries"),
    ],
)
def test_bad_arguments(change, says):
    mesh = jax.make_mesh((1,), ("rows",))
    good = {
        "attention": SoftmaxAttention(),
        "queries": np.ones((4, 2)),
        "keys": np.ones((4, 2)),
        "values": np.ones((4, 2)),
    }
    with pytest.raises(ArgumentError, match=says):
        sharded_attend(**{**good, "masses": np.ones(4), "mesh": mesh, **change})


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"attention": HardmaxAttention()}, "Argument `attention` must be softmax or unnormalised"),
        ({"targets": np.ones((4, 9))}, "Argument `targets` must be rows of length 2 to 8"),
        ({"sources": np.ones((4, 3))}, "Argument `sources` must be rows of length 2"),
        ({"beta": -1.0}, "Argument `beta` must be a finite number ≥ 0"),
        ({"tolerance": 1e-30}, "Argument `tolerance` must be at least"),
    ],
)
def test_bad_arguments_of_series(change, says):
    good = {"attention": SoftmaxAttention(), "targets": np.ones((4, 2)), "sources": np.ones((4, 2)), "beta": 1.0}
    with pytest.raises(ArgumentError, match=says):
        sharded_spectral_attend(**{**good, "masses": np.ones(4), "mesh": jax.make_mesh((1,), ("rows",)), **change})


if __name__ == "__main__":
    on_four_devices(sys.argv[1])
