"""asymptotics: limits and powers that are known are found, with bands that hold them as often as they say."""

import numpy as np
import pytest
import xarray as xr

import pathlines as pl
from pathlines.foundation.errors import ArgumentError

SIZES = np.array([8, 16, 32, 64, 128, 256])


def noisy(limit=2.0, slope=1.5, power=0.5, error=0.0, runs=1, seed=0, sizes=SIZES):
    clean = limit + slope * (sizes / sizes[0]) ** -power
    noise = error * np.random.default_rng(seed).normal(size=(len(sizes), runs))
    return xr.Dataset({"y": (("n", "repeat"), clean[:, None] + noise)}, {"n": sizes})


@pytest.mark.parametrize(("limit", "power"), [(2.0, 0.5), (-1.0, 1.0), (0.0, 2.0)])
def test_a_limit_without_noise_is_found(limit, power):
    found = pl.asymptotics(noisy(limit, power=power), along="n")
    assert found.limit.value == pytest.approx(limit, abs=1e-3) and found.power.value == pytest.approx(power, rel=1e-2)


def test_bands_hold_the_truth_as_often_as_they_say():
    """95 % of 60: at least 50, five standard deviations of the binomial law below 57."""
    held = [pl.asymptotics(noisy(error=0.05, runs=20, seed=k), along="n", seed=k).limit for k in range(60)]
    assert sum(band.low <= 2.0 <= band.high for band in held) >= 50
    wide = np.mean([band.high - band.low for band in held])
    assert 0.01 < wide < 0.6


def test_the_size_from_which_theory_is_near_enough():
    found = pl.asymptotics(noisy(1.0, 0.4, 1.0), along="n", theory=1.0, tolerance=0.051)
    assert found.size == 64 and found.predicted_size == pytest.approx(3.2 / 0.051, rel=1e-3)
    assert found.power.value == pytest.approx(1.0, rel=1e-6)
    far = pl.asymptotics(noisy(1.0, 0.4, 1.0), along="n", theory=1.0, tolerance=1e-3)
    assert far.size is None and far.predicted_size == pytest.approx(8 * 400.0, rel=1e-3)
    assert "not in this range (by the fit from 3.2e+03 on)" in str(far)


def test_noise_delays_the_size_and_a_wrong_theory_is_never_near():
    loud = noisy(1.0, 0.4, 1.0, error=0.1, runs=5)
    assert (pl.asymptotics(loud, along="n", theory=1.0).size or np.inf) > 64
    wrong = pl.asymptotics(noisy(1.0, 0.4, 1.0), along="n", theory=lambda n: 1.5 + 0 * n)
    assert wrong.size is None and wrong.predicted_size is None


def test_a_claim_is_compared_with_its_own_theory_at_its_worst_entry():
    gaps = np.array([0.3, 0.1, 0.02])
    data = xr.Dataset(
        {
            "rate": (("n", "rate_0"), np.stack([np.ones(3), 2 * (1 + gaps)], axis=1)),
            "rate_theory": (("n", "rate_0"), np.broadcast_to([1.0, 2.0], (3, 2))),
            "rate_error": (("n", "rate_0"), np.zeros((3, 2))),
            "verdict": ("n", [-1.0, 1.0, 1.0]),
        },
        {"n": [4, 8, 16]},
    )
    found = pl.asymptotics(data, along="n")
    assert found.size == 16 and found.values == pytest.approx(2 * (1 + gaps))


def test_a_study_is_run_and_drawn(tmp_path, monkeypatch):
    monkeypatch.setenv("PATHLINES_STORE", str(tmp_path))
    made = pl.study(mean_of_squares, {"n": "8:512:log"}, repeat=8)
    found = pl.asymptotics(made, along="n", theory=1.0, tolerance=0.3)
    assert found.size is not None and len(found.plot().axes) == 1
    assert len(pl.asymptotics(made, along="n").plot().axes) == 1


def mean_of_squares(n: int, seed: int = 0) -> float:
    return float(np.mean(np.random.default_rng([seed, n]).normal(size=n) ** 2))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"along": "m"}, "Argument `along` must be an axis"),
        ({"variable": "z"}, "must be one of y, but is 'z'"),
        ({"tolerance": 0.0}, "`tolerance`"),
        ({"study": 3}, "be a study or its Dataset"),
        ({"study": noisy(sizes=SIZES[:2])}, "known at 2 sizes"),
        ({"study": noisy().assign_coords(n=-SIZES)}, "positive numbers"),
        ({"study": noisy().expand_dims(beta=[1, 2])}, r"other dimensions \(beta\)"),
    ],
)
def test_what_is_refused(changes, words):
    with pytest.raises(ArgumentError, match=words):
        pl.asymptotics(**{"study": noisy(), "along": "n", **changes})
