"""Claims are complete, and verdicts follow from numbers and tolerances."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from pathlines.claim import (
    CLAIMS,
    Curve,
    Evidence,
    Outcome,
    absolute,
    at_least,
    at_most,
    evaluate,
    exactly,
    relative,
    standard_errors,
)
from pathlines.claim.base import Claim, claim
from pathlines.foundation.errors import ArgumentError
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting, changed, fields
from pathlines.model import MODELS

ROWS = {f"clustering/CL-{i:02d}" for i in range(1, 49)}


def test_every_row_of_the_clustering_table_is_a_claim():
    assert set(CLAIMS) >= ROWS


def test_a_setting_is_a_record():
    computed = {"models": ("sa",), "within": {}, "simulate": None, "predict": None}
    with pytest.raises(ArgumentError, match="record of settings"):
        claim("test/dictionary", PERSPECTIVE, "", "", quick={"n": 3}, **computed)


def test_every_family_has_its_file_of_quick_verdicts():
    """So that all quick claims run, and workers share the families."""
    files = {f.name for f in Path(__file__).parent.rglob("test_*_claims.py")}
    assert files == {f"test_{name.split('/')[0]}_claims.py" for name in CLAIMS}


@pytest.mark.parametrize("name", list(CLAIMS))
def test_claims_are_complete(name):
    claim = CLAIMS[name]
    assert claim.statement
    assert claim.label
    assert claim.where
    assert all(t.reason for t in claim.within.values())
    assert type(claim.full) is type(claim.quick)
    if claim.expected == "refuted":
        assert claim.corrected_by in list(CLAIMS)
        assert CLAIMS[claim.corrected_by].expected == "holds"


@pytest.mark.parametrize("name", list(CLAIMS))
def test_every_setting_has_a_meaning_and_is_within_its_bounds(name):
    claim = CLAIMS[name]
    assert all(f.meaning for f in fields(type(claim.quick)))
    for setting in (claim.quick, claim.full):
        plain = msgspec.to_builtins(setting)
        assert changed(name, setting, plain) == setting
        assert all(type(getattr(setting, k)) is not list for k in plain)


def test_errata_are_variants_of_their_corrections():
    printed, corrected = CLAIMS["homogenized/ER-05"], CLAIMS["homogenized/ER-05b"]
    assert (printed.expected, printed.corrected_by) == ("refuted", corrected.id)
    assert (printed.quick, printed.full, printed.simulate) == (corrected.quick, corrected.full, corrected.simulate)
    assert printed.predict is not corrected.predict
    assert printed.blind == {}


def made(measured, expected, tolerance, uncertainty=0.0):
    return Claim(
        "x/y", PERSPECTIVE, "l", "s", (), Setting(), Setting(), {"q": tolerance},
        lambda s: Evidence({"q": measured}, {"q": uncertainty}), lambda s: Evidence({"q": expected}),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("measured", "expected", "verdict"),
    [
        (1.0, 1.05, "holds"),
        (1.0, 1.2, "refuted"),
        (1.0, None, "inconclusive"),
        (float("nan"), 1.0, "inconclusive"),
        ([1.0, 2.0], [1.0, 2.5], "refuted"),
    ],
)
def test_verdicts(measured, expected, verdict):
    assert evaluate(made(measured, expected, absolute(0.1, "r"))).verdict == verdict


def test_headline_is_the_worst_entry():
    outcome = evaluate(made([1.0, 2.0, 3.0], [1.01, 2.05, 3.0], absolute(0.1, "r")))
    assert (outcome.measured, outcome.expected) == (2.0, 2.05)
    assert outcome.error == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("tolerance", "verdict"),
    [
        (absolute(0.1, "r", errors=3.0), "holds"),
        (absolute(0.1, "r", errors=2.0), "refuted"),
        (relative(0.1, "r", errors=3.0), "holds"),
        (relative(0.1, "r", errors=2.0), "refuted"),
        (at_most("r", 0.1, errors=3.0), "holds"),
        (at_most("r", 0.1, errors=2.0), "refuted"),
        (at_least("r", errors=0.0), "holds"),
    ],
)
def test_standard_errors_on_top(tolerance, verdict):
    """1.35 against 1 with a standard error of 0.1."""
    assert evaluate(made(1.35, 1.0, tolerance, uncertainty=0.1)).verdict == verdict


def test_exact_counts():
    assert evaluate(made(4, 4, exactly("count"))).verdict == "holds"
    assert evaluate(made(4, 3, exactly("count"))).verdict == "refuted"


def test_undecided_quantities_are_inconclusive_with_what_to_change():
    claim = made(2.0, 1.0, absolute(0.1, "r"))
    late = msgspec.structs.replace(claim, simulate=lambda s: Evidence({"q": 2.0}, undecided={"q": "until=200"}))
    outcome = evaluate(late)
    assert (outcome.verdict, outcome.checks[0].reason) == ("inconclusive", "until=200")


def test_samples_that_are_all_alike_refute_nothing():
    assert evaluate(made(1.0, 1.1, standard_errors(4.0, "r"))).verdict == "inconclusive"
    assert evaluate(made([1.0, 2.0], [1.0, 1.1], standard_errors(4.0, "r"), [0.0, 0.1])).verdict == "refuted"


def test_outcomes_with_gaps_survive_the_store():
    curve = Curve("gap", [0.0, 1.0], [np.nan, 1.0])
    claim = msgspec.structs.replace(
        made(1.0, 1.0, absolute(0.1, "r")), simulate=lambda s: Evidence({"q": np.nan}, curves=(curve,))
    )
    outcome = msgspec.msgpack.decode(msgspec.msgpack.encode(evaluate(claim)), type=Outcome)
    assert outcome.verdict == "inconclusive"
    assert np.isnan(outcome.lines[0].y[0])


def test_outcome_carries_it():
    assert evaluate(made(1.0, 1.0, absolute(0.1, "r"))).checks[0].notices == pytest.approx(0.1)


def test_every_model_is_in_a_claim():
    claimed = {model for name in CLAIMS for model in CLAIMS[name].models}
    assert claimed <= set(MODELS)
    assert set(MODELS) - claimed == set()
