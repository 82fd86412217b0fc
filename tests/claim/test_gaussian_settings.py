"""Claims of the Gaussian family at other settings than their own: right there, silent, or refused."""

import pytest

from pathlines.claim import CLAIMS, evaluate
from pathlines.foundation.errors import ArgumentError


@pytest.mark.parametrize(
    ("name", "changes", "verdict"),
    [
        ("C07", {"V": [[1.0, 0.0], [0.0, 1.0]]}, "holds"),
        ("C07", {"V": [[-0.5, 0.0], [0.0, -0.5]], "A": [[-0.8, 0.2], [-0.1, 0.3]]}, "holds"),
        ("C07", {"V": [[1.0, 1.0], [0.0, 1.0]]}, "inconclusive"),
    ],
)
def test_verdict(name, changes, verdict):
    outcome = evaluate(CLAIMS[f"gaussian/{name}"], "quick", changes)
    assert outcome.verdict == verdict, (outcome.quantity, outcome.measured, outcome.expected)


@pytest.mark.parametrize("name", ["C02", "C03"])
def test_refused_past_the_blow_up(name):
    with pytest.raises(ArgumentError, match=r"below the blow-up of the mean field at .* = 2, but is 3"):
        evaluate(CLAIMS[f"gaussian/{name}"], "quick", {"v": 1.0, "a": 0.25, "until": 3.0})
