"""What a run records when nothing was asked for."""

import msgspec
import pytest

from pathlines.foundation.errors import PathlinesWarning
from pathlines.sweep.request import COMPARED, Request, _affordable, _usual, build

REQUEST = Request("sa", {}, 64, 3, 1.0, "uniform", (), 1, None, None, "rk45", 1e-8, "auto", 0, "float64")


@pytest.mark.parametrize(
    ("model", "n", "d", "left"),
    [
        ("sa", 64, 30, ""),
        ("sa", 100_000, 3, ""),
        ("sa", 100_000, 30, "cluster_count"),
        ("rescaled", COMPARED, 2, ""),
        ("rescaled", COMPARED + 1, 2, "diameter"),
    ],
)
@pytest.mark.filterwarnings("default")
def test_what_compares_all_pairs_of_very_many_tokens_is_left_out_with_a_word(model, n, d, left, recwarn):
    request = msgspec.structs.replace(REQUEST, model=model, n=n, d=d)
    usual = _usual(build(request), n)
    assert set(usual) - set(_affordable(usual, request)) == ({left} if left else set())
    words = [str(w.message) for w in recwarn if w.category is PathlinesWarning]
    assert len(words) == bool(left) and all(left in w and "--record insists" in w for w in words)
