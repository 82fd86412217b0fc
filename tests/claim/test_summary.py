"""How comparisons are put into words."""

import pytest

from pathlines.claim.summary import distance, side


@pytest.mark.parametrize(
    ("kind", "error", "tolerance", "words"),
    [
        ("at most", -0.0918, 0.0076, "0.099 to spare"),
        ("at least", 0.03, 0.01, "0.02 beyond"),
        ("absolute", 0.01, 0.1, "0.01 ≤ 0.1"),
        ("standard errors", 0.2, 0.1, "0.2 > 0.1"),
        ("absolute", None, None, "–"),
    ],
)
def test_distance_from_failing(kind, error, tolerance, words):
    assert distance(kind, error, tolerance) == words


def test_bounds_show_their_side():
    assert [side(k) for k in ("at most", "at least", "relative")] == ["≤ ", "≥ ", ""]
