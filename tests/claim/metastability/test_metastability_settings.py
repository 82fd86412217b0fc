"""Claims of the metastability family at other settings than their own: the theory is right there, or says that it is
silent, or the setting is refused.
"""

import pytest

from pathlines.claim import CLAIMS, evaluate
from pathlines.foundation.errors import ArgumentError

HOLDS = [
    ("P4", {"strength": -0.1}),
    ("P4", {"strength": 0.7, "until": 40.0}),
    ("M2", {"corners": [2, 5], "betas": [3.0, 9.0], "modes": [1, 1]}),
    ("M4", {"angles": [0.0, 0.5, 1.1, 2.4, 5.0], "masses": [1.0, 1e-12, 2.0, 3.0, 1e-6], "betas": [20.0, 1000.0]}),
    ("G1", {"betas": [0.001, 1000.0]}),
    ("G3", {"dimensions": [100, 3, 4], "betas": [2.5307, 70.0, 144.4577]}),
    ("G3", {"dimensions": [2, 64, 128], "betas": [0.1, 45.0, 79.0]}),
    ("M3", {"betas": [10000.0]}),
    ("M5", {"n": 2, "until": 5.0}),
    ("M8", {"n": 2}),
    ("F1", {"n": 300, "betas": [1.0, 400.0]}),
    ("F4", {"n": 200, "betas": [1.0, 81.0]}),
    pytest.param("S2", {"level": 0.2, "runs": 100}, marks=pytest.mark.slow),
    ("K3", {"cells": [[20, 1.0], [30, 0.5], [1000, 2.0]]}),
    ("K2", {"seed": 94}),
    ("K2", {"cells": [[50, 4.0], [100, 10.0]], "checks": 10, "seed": 1003}),
    ("S1", {"tokens": [1e7, 1e8], "runs": 218, "seed": 1101}),
    ("M7", {"each": 4, "beta": 26.0, "centres": [1.0, -1.0]}),
    ("M9", {"times": [30.0, 77.0, 100.0, 150.0, 420.0], "seed": 7}),
    ("S8", {"d": 4, "n": 100, "level": 0.7, "degrees": 5, "draws": 2000, "seed": 9}),
    ("F3", {"sizes": [70000, 190000], "rounds": 1}),
    pytest.param("P3", {"beta": 4.0, "strengths": [0.05, -0.03]}, marks=pytest.mark.slow),
]
SILENT = [
    ("ER-11", {"samples": [0.0, 2.5], "a": 0.05}),
    ("M7", {"centres": [0.0, 2.0, 4.0]}),
    ("K4", {"sizes": [100], "runs": 20}),
    ("P2", {"strengths": [1.0, -0.98], "betas": [4.0]}),
    ("ER-05b", {"beta": 20.0}),
    pytest.param("ER-08b", {"centres": [0.0, 0.6]}, marks=pytest.mark.slow),
    pytest.param("M2", {"corners": [2, 6], "betas": [3.0, 40.0], "modes": [1, 3]}, marks=pytest.mark.slow),
]
REFUSED = [
    ("M2", {"corners": [5], "betas": [9.0], "modes": [6]}, "from 1 to 4"),
    ("K5", {"cells": [[1000, 0.5]]}, "1 < β"),
    ("ER-14b", {"strengths": [1.0, -0.7]}, "times as large"),
]


@pytest.mark.parametrize(("name", "changes"), HOLDS)
def test_holds(name, changes):
    outcome = evaluate(CLAIMS[f"metastability/{name}"], "quick", changes)
    assert outcome.verdict == "holds", (outcome.quantity, outcome.measured, outcome.expected)


@pytest.mark.parametrize(("name", "changes"), SILENT)
def test_silent(name, changes):
    assert evaluate(CLAIMS[f"metastability/{name}"], "quick", changes).verdict == "inconclusive"


@pytest.mark.parametrize(("name", "changes", "says"), REFUSED)
def test_refused_at_once(name, changes, says):
    with pytest.raises(ArgumentError, match=says):
        evaluate(CLAIMS[f"metastability/{name}"], "quick", changes)


def test_the_rounded_law_is_exact_on_the_published_cells():
    (check,) = (c for c in evaluate(CLAIMS["metastability/G3"]).checks if c.quantity == "exceptions")
    assert check.measured == check.expected == 0


@pytest.mark.parametrize(
    ("name", "quantity"), [("M7", "exit"), ("M7", "gather"), ("F3", "growth"), ("K8", "central_modes")]
)
def test_an_error_of_ten_per_cent_would_be_noticed(name, quantity):
    checks = {c.quantity: c for c in evaluate(CLAIMS[f"metastability/{name}"]).checks}
    assert checks[quantity].notices < 0.1


def test_where_the_theorem_is_silent_it_says_what_to_change():
    checks = evaluate(CLAIMS["metastability/M7"], "quick", {"beta": 8.0}).checks
    assert all(c.verdict == "inconclusive" and "raise `beta`" in c.reason for c in checks)
