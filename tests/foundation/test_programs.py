"""A process that compiles program after program keeps its table of memory maps from filling."""

import jax
import jax.numpy as jnp
import pytest

from pathlines.foundation import programs


@pytest.mark.skipif(programs.share_of_maps() == 0, reason="the system does not count memory maps")
def test_forgetting_gives_maps_back(monkeypatch):
    functions = [jax.jit(lambda x, k=k: jnp.sin(x) @ x.T + k) for k in range(40)]
    for k, function in enumerate(functions):
        function(jnp.ones((3 + k, 2)))
    before = programs.share_of_maps()
    monkeypatch.setattr(programs, "CROWDED", before / 2)
    assert programs.forget_programs_when_crowded()
    assert programs.share_of_maps() < before
    assert float(functions[0](jnp.ones((3, 2)))[0, 0]) == pytest.approx(2 * float(jnp.sin(1.0)))


def test_programs_are_kept_where_there_is_room(monkeypatch):
    monkeypatch.setattr(programs, "share_of_maps", lambda: 0.1)
    monkeypatch.setattr(jax, "clear_caches", lambda: pytest.fail("forgot programs without need"))
    assert not programs.forget_programs_when_crowded()


def test_systems_that_do_not_count_are_left_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(programs, "MAPS", tmp_path / "missing")
    assert programs.share_of_maps() == 0
