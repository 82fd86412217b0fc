"""What is asked for is done or refused: sums by harmonics in a bare drift, energies that overflow, float32."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pathlines as pl
from pathlines.foundation.errors import ArgumentError, FormError, PrecisionError
from pathlines.integrate.side_by_side import side_by_side

TOKENS = pl.Sphere(3).sines(40)


def test_spectral_sums_of_a_drift_that_is_called_by_itself():
    dense, spectral = (pl.SelfAttention(2.0, summation=s).drift for s in ("dense", "spectral"))
    asked, direct = (str(jax.make_jaxpr(f)(TOKENS, 0.0)) for f in (spectral, dense))
    assert asked != direct
    one, other = spectral(TOKENS, jnp.zeros(())), dense(TOKENS, jnp.zeros(()))
    np.testing.assert_allclose(one, other, rtol=0, atol=1e-10)
    assert np.any(np.asarray(one) != np.asarray(other))


def test_spectral_sums_that_cannot_serve_a_drift_are_refused():
    with pytest.raises(ArgumentError, match="cannot be 'spectral': not for d = 40"):
        pl.SelfAttention(2.0, summation="spectral").drift(jnp.eye(40), jnp.zeros(()))
    model = pl.SelfAttention(2.0, summation="spectral")
    with pytest.raises(FormError, match="needs β as a number"):
        eqx.filter_eval_shape(lambda m: m.drift(TOKENS, jnp.zeros(())), model)


def test_layers_sum_as_asked():
    runs = [pl.layers(pl.SelfAttention(2.0, summation=s), TOKENS, depth=2) for s in ("dense", "spectral")]
    assert "harmonics" in runs[1].forms[0].reason and "harmonics" not in runs[0].forms[0].reason
    np.testing.assert_allclose(runs[0]["tokens"], runs[1]["tokens"], rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "entry",
    [
        lambda m, x: pl.flow(m, x, times=[0.1], record="energy"),
        lambda m, x: pl.flow(m, x, times=[0.1], accumulate="energy"),
        lambda m, x: pl.layers(m, x, depth=1, record="energy"),
        lambda m, x: side_by_side([m], x[None], times=[0.1], record="energy"),
        lambda m, x: pl.ensemble(
            pl.SelfAttention(1.0), lambda key: x, runs=1, key=jax.random.key(0), times=[0.1], record="energy",
            over={"beta": [1.0, float(m.beta)]},
        ),
    ],
)  # fmt: skip
def test_energies_that_overflow_are_refused_with_the_remedy(entry):
    with pytest.raises(ArgumentError, match=r"e\^β/\(2β\) in float64, but β = 1000; record `energy_fraction`"):
        entry(pl.SelfAttention(1000.0), TOKENS)


@pytest.mark.parametrize(("dtype", "beta"), [("float64", 716.0), ("float32", 93.0)])
def test_energies_up_to_the_largest_number(dtype, beta):
    """E_max = e^β/(2β) is finite although e^β is not."""
    x = jnp.asarray(np.repeat(np.eye(3)[:1], 2, axis=0), dtype)
    energy = pl.layers(pl.SelfAttention(beta), x, depth=0, record="energy")["energy"].values[0]
    assert np.log(float(energy)) == pytest.approx(beta - np.log(2 * beta), rel=1e-5)
    with pytest.raises(ArgumentError, match=dtype):
        pl.layers(pl.SelfAttention(beta + 10), x, depth=0, record="energy")


def test_float32_is_offered_in_the_way_that_a_run_takes_it():
    with jax.enable_x64(False):
        for call in (
            lambda: pl.flow(pl.SelfAttention(1.0), np.eye(2), until=1.0),
            lambda: pl.layers(pl.SelfAttention(1.0), np.eye(2), depth=1),
        ):
            with pytest.raises(PrecisionError, match=r"enable_float64\(\) once at the start, or pass tokens.astype"):
                call()
        with pytest.raises(PrecisionError, match="or pass dtype='float32'"):
            pl.Sphere(2).uniform(jax.random.key(0), 3)
        assert pl.layers(pl.SelfAttention(1.0), np.eye(2, dtype="float32"), depth=1)["tokens"].dtype == "float32"
