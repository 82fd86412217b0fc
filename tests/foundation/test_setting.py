"""Settings say what they mean and what is allowed, and refuse the rest."""

from typing import Annotated

import msgspec
import numpy as np
import pytest

from pathlines.foundation import vocabulary as of
from pathlines.foundation.errors import ArgumentError, UnknownNameError
from pathlines.foundation.setting import Setting, at_least, changed, fields, means


class Tide(Setting):
    """A harbour."""

    moons: Annotated[int, at_least(2), means("moons", "m")] = 3
    height: of.Positive = 1.5
    share: of.Share = 0.5
    springs: Annotated[tuple[of.NonNegative, ...], means("springs", unit="days")] = (1.0, 2.0)
    cases: tuple[tuple[int, float], ...] = ((1, 2.0),)
    width: of.Count | None = None
    dry: bool = False
    name: str = "bay"


def test_fields_carry_symbol_meaning_unit_and_bounds():
    said = {f.name: f for f in fields(Tide)}
    assert (said["moons"].symbol, said["moons"].meaning) == ("m", "moons")
    assert said["springs"].unit == "days"
    assert {n: f.allowed for n, f in said.items()} == {
        "moons": "integer ≥ 2",
        "height": "number > 0",
        "share": "number ≥ 0 and ≤ 1",
        "springs": "[number ≥ 0, …]",
        "cases": "[[integer, number], …]",
        "width": "integer ≥ 1 or null",
        "dry": "true or false",
        "name": "text",
    }


@pytest.mark.parametrize(
    ("changes", "value"),
    [
        ({"height": 2}, 2.0),
        ({"height": np.float64(2)}, 2.0),
        ({"springs": [3, np.float64(4)]}, (3.0, 4.0)),
        ({"springs": np.array([3, 4])}, (3.0, 4.0)),
        ({"cases": [[2, 3]]}, ((2, 3.0),)),
        ({"width": 4}, 4),
        ({"width": None}, None),
    ],
)
def test_what_is_allowed_is_converted(changes, value):
    (name,) = changes
    found = getattr(changed("x", Tide(width=2), changes), name)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"moons": 1}, "Setting `moons` of Claim `a/b` must be an integer ≥ 2, but is 1."),
        ({"moons": 2.5}, "must be an integer ≥ 2, but is 2.5"),
        ({"moons": True}, "must be an integer ≥ 2, but is True"),
        ({"height": 0.0}, "must be a number > 0, but is 0.0"),
        ({"height": float("nan")}, "must be a number > 0, but is nan"),
        ({"share": 1.5}, "must be a number ≥ 0 and ≤ 1"),
        ({"springs": 3.0}, r"must be \[number ≥ 0, …\], but is 3.0"),
        ({"springs": [1.0, -1.0]}, r"must be \[number ≥ 0, …\]"),
        ({"cases": [[1]]}, r"must be \[\[integer, number\], …\]"),
        ({"dry": 1}, "must be true or false, but is 1"),
        ({"name": 3}, "must be text, but is 3"),
        ({"name": object()}, "must be text"),
    ],
)
def test_what_is_not_allowed_is_refused(changes, says):
    with pytest.raises(ArgumentError, match=says):
        changed("Claim `a/b`", Tide(), changes)


def test_unknown_names_are_refused_with_those_there_are():
    with pytest.raises(UnknownNameError, match="x has no setting `moon`; its settings are: cases, dry, height"):
        changed("x", Tide(), {"moon": 1})


def test_settings_are_frozen():
    with pytest.raises(AttributeError):
        Tide().moons = 4


def test_schema_says_the_same():
    schema = msgspec.json.schema(Tide)["$defs"]["Tide"]["properties"]
    assert schema["moons"] == {"title": "m", "description": "moons", "type": "integer", "minimum": 2, "default": 3}
    assert schema["springs"]["unit"] == "days"
