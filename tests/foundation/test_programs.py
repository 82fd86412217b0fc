"""A process that compiles program after program keeps its table of memory maps from filling."""

import resource
import sys
import threading

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import pathlines as pl
from pathlines.domain.circle_law import quiet_start
from pathlines.foundation import programs
from pathlines.integrate.side_by_side import side_by_side

counted = pytest.mark.skipif(programs.share_of_maps() == 0, reason="the system does not count memory maps")
WRONG = [[float("nan")]]
KEY = jax.random.key(0)


@pytest.fixture
def crowded(monkeypatch):
    """The table looks full from the next question on; returns how often programs were forgotten."""
    forgotten = []
    monkeypatch.setattr(jax, "clear_caches", lambda: forgotten.append(1))
    monkeypatch.setattr(programs, "share_of_maps", lambda: 0.9)
    monkeypatch.setattr(programs._count, "bare", 0.01)
    monkeypatch.setattr(programs._count, "fresh", programs.BETWEEN_LOOKS)
    return forgotten


@counted
def test_forgetting_gives_maps_back(monkeypatch):
    functions = [jax.jit(lambda x, k=k: jnp.sin(x) @ x.T + k) for k in range(12)]
    for k, function in enumerate(functions):
        function(jnp.ones((3 + k, 2)))
    before, times = programs.share_of_maps(), programs.times_forgotten()
    monkeypatch.setattr(programs, "ROOM", 0.0)
    assert programs.make_room_for_programs()
    assert programs.share_of_maps() < before
    assert programs.times_forgotten() == times + 1
    assert float(functions[0](jnp.ones((3, 2)))[0, 0]) == pytest.approx(2 * float(jnp.sin(1.0)))


@pytest.mark.parametrize(
    "entry",
    [
        lambda: pl.flow(pl.SelfAttention(1.0), WRONG, until=1.0),
        lambda: pl.layers(pl.SelfAttention(1.0), WRONG, depth=1),
        lambda: pl.chain(pl.SelfAttention(1.0), WRONG, depth=-1, key=KEY),
        lambda: pl.ensemble(pl.SelfAttention(1.0), lambda key: WRONG, runs=0, key=KEY, until=1.0),
        lambda: side_by_side([], WRONG, times=[1.0]),
        lambda: pl.integrate.fates([], WRONG),
        lambda: pl.integrate.expectation_over_heads(None, WRONG, depth=1, function=jnp.sum),
        lambda: pl.phase_diagram(-1, [], [], 0),
        lambda: pl.Sphere(2).uniform(KEY, -1),
        lambda: pl.Sphere(2).uniform_span(KEY, -1),
        lambda: pl.Sphere(2).simplex(-1),
        lambda: pl.Sphere(2).normalise(WRONG),
        lambda: pl.Euclidean(2).cube(KEY, -1),
        lambda: pl.Euclidean(2).gaussian(KEY, -1),
        lambda: quiet_start(-1, 5, KEY),
        lambda: pl.model.metastability.zonal_start({0: 1.0}, 5, 3),
    ],
)
def test_every_entry_that_compiles_asks_first(crowded, entry):
    with pytest.raises(Exception):  # noqa: B017  they ask before they look at their arguments, which are wrong
        entry()
    assert crowded == [1]


def test_nothing_is_forgotten_in_the_middle_of_a_trace(crowded):
    asked = jax.jit(lambda x: (x, programs.make_room_for_programs())[0])
    assert asked(1.0) == 1.0 and crowded == []
    assert programs.make_room_for_programs() and crowded == [1]


def test_other_threads_forget_as_a_last_resort_only(crowded, monkeypatch):
    answers = []
    for share in (programs.LAST_RESORT - 0.1, programs.LAST_RESORT + 0.1):
        monkeypatch.setattr(programs, "share_of_maps", lambda share=share: share)
        programs._count.fresh = programs.BETWEEN_LOOKS
        thread = threading.Thread(target=lambda: answers.append(programs.make_room_for_programs()))
        thread.start()
        thread.join()
    assert answers == [False, True]


def test_programs_are_kept_where_there_is_room(crowded, monkeypatch):
    monkeypatch.setattr(programs, "share_of_maps", lambda: 0.1)
    assert not programs.make_room_for_programs() and crowded == []


def test_runs_of_equal_shapes_neither_look_nor_compile_again(crowded, monkeypatch):
    x = np.eye(3)[:2]
    pl.flow(pl.SelfAttention(1.0), x, times=[0.1])
    monkeypatch.setattr(programs._count, "fresh", 0)
    monkeypatch.setattr(programs, "share_of_maps", lambda: pytest.fail("looked without need"))
    for beta in range(2, 2 + 2 * programs.BETWEEN_LOOKS):
        pl.flow(pl.SelfAttention(beta), x, times=[0.1 * beta])
    assert programs._count.fresh == 0


def test_maps_that_are_no_programs_do_not_make_programs_forgotten(crowded):
    """A process of many maps of its own keeps its programs: what is left after forgetting counts as its own."""
    assert programs.make_room_for_programs()
    programs._count.fresh = programs.BETWEEN_LOOKS
    assert not programs.make_room_for_programs() and crowded == [1]


def test_systems_that_do_not_count_are_left_alone(monkeypatch, tmp_path):
    monkeypatch.setattr(programs, "MAPS", tmp_path / "missing")
    assert programs.share_of_maps() == 0


@counted
@pytest.mark.slow
@pytest.mark.parametrize("mask", [None, "causal"], ids=["native", "compiled"])
def test_a_thousand_flows_of_different_shapes_in_one_process(mask):
    """A minute in native code, half an hour compiled, where forgetting nothing ends it at the 325th."""
    rng, most = np.random.default_rng(0), int(programs.MOST_MAPS.read_text())
    shapes = [(n, d) for d in range(2, 12) for n in range(2, 102)]
    largest = 0.0
    for n, d in shapes:
        x = rng.standard_normal((n, d))
        run = pl.flow(pl.SelfAttention(1.0, mask=mask), x / np.linalg.norm(x, axis=1, keepdims=True), times=[0.1])
        assert run.outcome == "completed"
        largest = max(largest, programs.share_of_maps())
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    assert largest * most < 20_000 and peak < 1.5e9, f"{largest * most:.0f} maps, {peak / 1e9:.2f} GB"
