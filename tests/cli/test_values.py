"""How the values that a person types are read."""

import pytest

from pathlines.cli.common import parse_changes


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        (".3", 0.3),
        ("-.3", -0.3),
        ("1e-3", 1e-3),
        ("inf", float("inf")),
        ("[.5,1]", [0.5, 1]),
        ("0,.5,1", [0, 0.5, 1]),
        ("[[1,.2],[.1,.4]]", [[1, 0.2], [0.1, 0.4]]),
        ("null", None),
        ("causal", "causal"),
        ("window:64", "window:64"),
        ("a.5", "a.5"),
        ("./x.npy", "./x.npy"),
    ],
)
def test_value(text, value):
    assert parse_changes([f"name={text}"]) == {"name": value}
