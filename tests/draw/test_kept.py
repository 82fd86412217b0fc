"""Figures that were drawn are not drawn again, unless something that they depend on is another."""

import matplotlib as mpl
import pytest

from pathlines.draw import kept
from pathlines.draw.gallery import Picture
from pathlines.draw.kept import drawn
from pathlines.draw.style import new_figure
from pathlines.foundation.errors import PathlinesWarning, StoreError
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting
from pathlines.store import Store


class Level(Setting):
    a: float


@pytest.fixture
def picture():
    calls = []

    def make(s):
        calls.append(s.a)
        return new_figure()[0]

    return Picture("test/a", PERSPECTIVE, "", Level(1.0), Level(2.0), make), calls


def test_drawn_once(picture, tmp_path):
    figure, calls = picture
    first, again = (drawn(figure, "quick", {}, ".svg", store=Store(tmp_path)) for _ in range(2))
    assert first[0].startswith(b"<?xml")
    assert (first[0], first[1], again[1], calls) == (again[0], False, True, [1.0])
    assert not drawn(figure, "quick", {}, ".svg", store=Store(tmp_path), fresh=True)[1]


def test_another_setting_format_look_or_file_is_another_figure(picture, tmp_path, monkeypatch):
    figure, _ = picture
    store, file = Store(tmp_path), tmp_path / "mine.py"
    file.write_text("")
    drawn(figure, "quick", {}, ".svg", store=store)
    assert not drawn(figure, "quick", {"a": 3.0}, ".svg", store=store)[1]
    assert not drawn(figure, "full", {}, ".svg", store=store)[1]
    assert not drawn(figure, "quick", {}, ".png", store=store)[1]
    assert not drawn(figure, "quick", {}, ".svg", store=store, files=(str(file),))[1]
    with mpl.rc_context({"lines.linewidth": 9}):
        assert not drawn(figure, "quick", {}, ".svg", store=store)[1]
    monkeypatch.setattr(kept, "fingerprint", lambda *_, **__: "other code")
    assert not drawn(figure, "quick", {}, ".svg", store=store)[1]


def test_a_full_store_does_not_cost_the_figure(picture, tmp_path, monkeypatch):
    def full(*_):
        raise StoreError("No space left on device.")

    monkeypatch.setattr(Store, "put", full)
    with pytest.warns(PathlinesWarning, match="drawn but not kept"):
        content, _ = drawn(picture[0], "quick", {}, ".png", store=Store(tmp_path))
    assert content
