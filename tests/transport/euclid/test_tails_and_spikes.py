"""Tails that decide whether KL is finite, and densities with a narrow spike."""

import numpy as np
import pytest
from scipy import stats

import pathlines as pl
from pathlines.foundation.errors import ArgumentError


def fitted(law, pieces=18):
    return pl.Transport1D(pieces=pieces).fit_density(law.logpdf, law.cdf, law.sf).report_


@pytest.mark.parametrize("degrees", [0.5, 0.7, 1.0, 2.0])
def test_without_a_second_moment_kl_is_infinite(degrees):
    assert fitted(stats.t(degrees)).kl == np.inf


def test_two_degrees_and_a_hundredth_are_enough():
    assert fitted(stats.t(2.01)).kl == pytest.approx(0.0078, abs=5e-5)


def test_a_spike_is_no_reason_to_refuse():
    wide, narrow = stats.norm(0, 1), stats.norm(3, 0.01)
    found = pl.Transport1D(pieces=40).fit_density(
        lambda y: np.logaddexp(wide.logpdf(y), narrow.logpdf(y)) - np.log(2),
        lambda y: (wide.cdf(y) + narrow.cdf(y)) / 2,
        lambda y: (wide.sf(y) + narrow.sf(y)) / 2,
    )
    assert found.report_.kl < 0.003


def test_a_density_of_another_mass_is_refused():
    law = stats.norm()
    with pytest.raises(ArgumentError, match=r"integrates to 1\.11"):
        pl.Transport1D(pieces=18).fit_density(lambda y: law.logpdf(y) + 0.1, law.cdf, law.sf)
