"""Low temperature, at settings where theory has left out too much to say that it is refuted."""

import pytest

from pathlines.claim.followups import low_temperature as claims


@pytest.mark.parametrize(
    "setting",
    [
        claims.Plateau(betas=(3.0,), mean=21.0),
        claims.Plateau(betas=(8.0,)),
        claims.Plateau(betas=(16.0,), value=(1.0, 0.7)),
        claims.Plateau(kappa=0.0),
    ],
)
def test_plateaus_that_are_not_decided(setting):
    assert set(claims.predict_plateau(setting).undecided) == {"misassigned", "plateau"}


def test_approaches_that_are_not_decided():
    assert "rate" in claims.predict_approach(claims.Approach(times=(7.6, 8.0))).undecided
    assert set(claims.predict_approach(claims.Approach(beta=128.0)).undecided) == {"distance", "rate"}


def test_symmetric_starts_that_part_slowly_are_not_decided():
    assert set(claims.predict_symmetric(claims.Symmetric(beta=0.1)).undecided) == {"misassigned", "distance"}
    assert claims.slowest(claims.Symmetric(beta=0.1)) == pytest.approx(0.05, rel=2e-3)
    assert claims.slowest(claims.Symmetric(beta=1e4)) == pytest.approx(1, rel=1e-4)


def test_those_of_the_claims_are_decided():
    for predict, setting in (
        (claims.predict_plateau, claims.Plateau()),
        (claims.predict_plateau, claims.Plateau(betas=(16.0, 32.0, 64.0, 128.0))),
        (claims.predict_approach, claims.Approach()),
        (claims.predict_approach, claims.Approach(beta=2048.0)),
        (claims.predict_symmetric, claims.Symmetric()),
        (claims.predict_symmetric, claims.Symmetric(kappa=2.0)),
    ):
        assert not predict(setting).undecided, setting
