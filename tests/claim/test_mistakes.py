"""Bounds and zeros object to constants made wrong: in the setting, in theory, in a model, in the drift."""

from functools import lru_cache

import jax
import msgspec
import numpy as np
import pytest

from pathlines.claim import CLAIMS, Evidence, absolute, at_least, at_most, evaluate, exactly
from pathlines.claim.base import Claim
from pathlines.claim.fitting import REVERSED, Mistake, scaled, simulated_at, too_large
from pathlines.claim.mistakes import COMPUTATIONS, DRIFT, objections, places_of
from pathlines.domain import Sphere
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting
from pathlines.integrate import flow
from pathlines.limit.clustering.equiangular import overlap_rate
from pathlines.model import SelfAttention
from pathlines.observable.energy import energy_fraction

SPHERE = Sphere(3)


def claim_of(simulate, predict, within, quick, models=(), **others):
    names = [(name, type(value), value) for name, value in quick.items()]
    setting = msgspec.defstruct("Made", names, bases=(Setting,), frozen=True)()
    claim = Claim("x/y", PERSPECTIVE, "l", "s", models, setting, setting, within, simulate, predict, **others)
    return objections(claim, "quick", None, evaluate(claim).checks)


def test_scaled_reaches_numbers_and_leaves_the_rest():
    value = {"a": (1.0, 2, "x"), "b": np.arange(2.0), "c": np.arange(2)}
    found = scaled(value, 1.5)
    assert found["a"] == (1.5, 2, "x")
    np.testing.assert_array_equal(found["b"], [0.0, 1.5])
    np.testing.assert_array_equal(found["c"], [0, 1])


def test_a_bound_notices_a_wrong_setting_of_its_prediction():
    found = claim_of(
        lambda s: Evidence({"q": 0.99 * s.beta}), lambda s: Evidence({"q": s.beta}), {"q": at_most("r")}, {"beta": 2.0}
    )
    assert found == {"q": "beta of the prediction × 0.9"}


def test_a_bound_that_nothing_can_break_is_named():
    found = claim_of(lambda s: Evidence({"q": 0.1}), lambda s: Evidence({"q": 1e9}), {"q": at_most("r")}, {"beta": 2.0})
    assert found == {"q": ""}


@lru_cache
def _remembered(beta):
    return float(overlap_rate(0.3, 5, beta))


def _residual(s):
    return Evidence({"q": _remembered(s.beta) - RATE})


RATE = float(overlap_rate(0.3, 5, 2.0))


def test_a_zero_notices_a_wrong_function_of_theory_behind_a_cache():
    found = claim_of(_residual, lambda s: Evidence({"q": 0.0}), {"q": absolute(1e-9, "r")}, {"beta": 2.0})
    assert found == {"q": "overlap_rate × 1.1"}
    assert _remembered(2.0) == RATE


def test_a_zero_notices_a_wrong_drift():
    start = SPHERE.uniform(jax.random.key(0), 6)

    def simulate(s):
        run = flow(SelfAttention(s.beta), start, until=1.0, record=energy_fraction, form="tokens", rtol=1e-8)
        return Evidence({"residual": np.abs(run["dissipation_residual"].values).max()})

    within = {"residual": absolute(1e-6, "r")}
    found = claim_of(simulate, lambda s: Evidence({"residual": 0.0}), within, {"beta": 1.0}, models=("sa",))
    assert found["residual"].startswith("drift × ")


def test_counts_of_zero_are_zeros():
    found = claim_of(lambda s: Evidence({"q": 0}), lambda s: Evidence({"q": 0}), {"q": exactly("r")}, {"n": 1})
    assert found == {"q": ""}


def test_a_bound_notices_a_simulation_at_another_setting():
    found = claim_of(
        lambda s: Evidence({"q": s.until}), lambda s: Evidence({"q": 0.95}), {"q": at_least("r")}, {"until": 1.0}
    )
    assert found == {"q": "until of the simulation × 0.9"}


def test_a_mistake_that_cannot_be_computed_refutes_nothing():
    found = claim_of(
        lambda s: Evidence({"q": [0.5][int(s.a > 1)]}), lambda s: Evidence({"q": 1.0}), {"q": at_most("r")}, {"a": 1.0}
    )
    assert found == {"q": ""}


def _rate(n):
    return n**-0.5


@lru_cache
def _kept(n):
    return _rate(n)


def _faster(s):
    return Evidence({"q": _kept(s.n)})


def declared(*mistakes, simulate=_faster, bound=0.1001, **others):
    within = {"q": at_most("r")}
    return claim_of(simulate, lambda s: Evidence({"q": bound}), within, {"n": 100, **others}, mistakes=mistakes)


def test_a_declared_mistake_is_refuted_at_its_smallest_size():
    wrong = Mistake(
        "_rate", "an exponent {:g} too large", lambda right, size: lambda n: right(n) * n**size, (1e-5, 0.01, 1)
    )
    assert declared(wrong) == {"q": "an exponent 0.01 too large"}
    assert _kept(100) == 0.1


def test_a_declared_mistake_may_stand_in_another_module():
    wrong = Mistake(f"{__name__}._rate", "half the rate", lambda right, size: lambda n: 2 * right(n), (1.0,))
    assert declared(wrong) == {"q": "half the rate"}


def test_numbers_too_large_and_a_simulation_elsewhere():
    assert declared(too_large("simulate", "{:.0%} too large", (1e-4, 0.1))) == {"q": "10% too large"}
    fewer = simulated_at("n over {:g}", (1.0001, 4.0), n=lambda n, size: n / size)
    assert declared(fewer) == {"q": "n over 4"}


def test_a_declared_drift():
    start = SPHERE.uniform(jax.random.key(0), 6)

    def gathered(s):
        run = flow(SelfAttention(1.0), start, until=1.0, record=energy_fraction, form="tokens")
        return Evidence({"q": -float(np.diff(run["energy_fraction"].values).min())})

    assert declared(REVERSED, simulate=gathered, bound=0.0) == {"q": "the drift reversed"}


def test_a_declared_mistake_that_crashes_refutes_nothing():
    assert declared(Mistake("_rate", "nothing", lambda right, size: None)) == {"q": ""}


def test_errata_are_not_tried():
    assert claim_of(_faster, lambda s: Evidence({"q": 1.0}), {"q": at_most("r")}, {"n": 1}, expected="refuted") == {}


@pytest.mark.parametrize("name", sorted(n for n in CLAIMS if CLAIMS[n].mistakes))
def test_declared_mistakes_are_of_what_the_claim_calls(name):
    for mistake in CLAIMS[name].mistakes:
        assert mistake.of in (*COMPUTATIONS, DRIFT) or places_of(CLAIMS[name], mistake)


def test_a_mistake_of_nothing_is_an_error():
    with pytest.raises(ArgumentError, match="does not call"):
        places_of(CLAIMS["clustering/CL-01"], Mistake("nowhere", "w", lambda right, size: right))
