"""Claims of the clustering family at other settings than their own: the statement is right there, or the claim says
what to change, or the setting is refused.
"""

import pytest

from pathlines.claim import CLAIMS, evaluate
from pathlines.foundation.errors import ArgumentError

HOLDS = [
    ("OP-01d", {"seed": 1001}),
    ("CL-33", {"seed": 3, "n": 20}),
    ("CL-31", {"seed": 1003}),
    ("CL-41", {"seed": 1016}),
    ("CL-24", {"betas": [0.2, 0.02, 0.002], "seed": 1004}),
    ("ER-08b", {"until": 1.3, "steps": [0.07, 0.03, 0.011, 0.0052, 0.0024]}),
    ("CL-16", {"sizes": [[7, 2], [4, 6]], "draws": 2}),
    ("CL-46", {"n": 44, "betas": [1.26, 5.05, 11.35], "records": 59, "delta": 5.9e-4}),
]
REFUTED = [
    ("OP-01c", {"seed": 1001}),
    ("ER-04", {"seed": 1007}),
]
UNDECIDED = [
    ("CL-25", {"radius": 0.6, "n": 300}, "n="),
    ("CL-28", {"until": 7.0}, "until="),
    ("CL-29", {"window": [3.0, 5.0]}, "later window"),
    ("ER-01", {"beta": 0.5, "until": 90.0}, "smaller until"),
    ("ER-05a", {"n": 20, "beta": 0.02}, "beta below"),
    ("ER-09b", {"zooms": 2}, "zooms=4"),
    ("CL-30", {"value": [[1.0, 0.2], [0.1, 0.4]]}, "until="),
    pytest.param("CL-37", {"eigenvalues": [2.0, 1.9, -1.5], "beta": 3.0}, "until=", marks=pytest.mark.slow),
    ("ER-04", {"starts": 1, "seed": 2, "n": 3}, "more starts"),
    ("ER-07", {"start": [-0.7, 0.0, 1.8]}, "symmetric"),
    ("ER-07b", {"until": 3.5}, "rounding"),
    ("OP-01c", {"until": 2.0}, "until"),
    ("OP-01", {"until": 4.0}, "until"),
    ("CL-48", {"n": 50, "modes": [9, 20, 56]}, "modes=["),
]
REFUSED = [
    ("CL-06", {"sizes": [1, 3]}, "at least 2"),
    ("CL-28", {"d": 1}, "at least 2"),
    ("OP-01", {"outer": [1.0, -1.0]}, "positive"),
    ("CL-15", {"random_scores": 1}, "USA"),
    ("CL-36", {"mu": [1.5]}, "between"),
]


@pytest.mark.parametrize(("name", "changes"), HOLDS)
def test_holds(name, changes):
    outcome = evaluate(CLAIMS[f"clustering/{name}"], "quick", changes)
    assert outcome.verdict == "holds", (outcome.quantity, outcome.measured, outcome.expected)


@pytest.mark.parametrize(("name", "changes"), REFUTED)
def test_refuted(name, changes):
    assert evaluate(CLAIMS[f"clustering/{name}"], "quick", changes).verdict == "refuted"


@pytest.mark.parametrize(("name", "changes", "says"), UNDECIDED)
def test_undecided_with_what_to_change(name, changes, says):
    outcome = evaluate(CLAIMS[f"clustering/{name}"], "quick", changes)
    assert outcome.verdict == "inconclusive"
    assert any(says in check.reason for check in outcome.checks if check.verdict == "inconclusive")


@pytest.mark.parametrize(("name", "changes", "says"), REFUSED)
def test_refused_at_once(name, changes, says):
    with pytest.raises(ArgumentError, match=says):
        evaluate(CLAIMS[f"clustering/{name}"], "quick", changes)


@pytest.mark.parametrize(
    ("name", "quantity", "most"), [("CL-29", "rate", 1e-6), ("CL-27", "overlaps", 1e-6), ("CL-16", "frequency", 1e-6)]
)
def test_what_is_known_to_many_digits_is_compared_to_many(name, quantity, most):
    (check,) = (c for c in evaluate(CLAIMS[f"clustering/{name}"]).checks if c.quantity == quantity)
    assert check.notices < most


@pytest.mark.parametrize(("name", "quantity"), [("CL-41", "tangential_square"), ("CL-22", "coefficient")])
def test_notices_a_few_percent(name, quantity):
    (check,) = (c for c in evaluate(CLAIMS[f"clustering/{name}"]).checks if c.quantity == quantity)
    assert check.notices < 0.03
