"""Studies: labelled answers, that do not depend on what settings are run with, where, or in how many goes."""

import json
from importlib import import_module
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray as xr
from studied import Wave, gentle, many_waves, noisy, wave

import pathlines as pl
from pathlines.foundation.errors import ArgumentError, UnknownNameError
from pathlines.store.definition import defining_text
from pathlines.sweep import model_runs
from pathlines.sweep.plan import StudyPlan, derived_seed
from pathlines.sweep.study import Study

FEW = {"record": ["mean_overlap", "energy"], "until": 2.0, "d": 3}


def bits(data):
    return {name: data[name].values.tobytes() for name in map(str, data.data_vars)}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    store = tmp_path_factory.mktemp("whole")
    return pl.study("sa", {"beta": "1:9:5", "n": [6, 8]}, repeat=7, **FEW).run(store=store)


def test_axes_are_dimensions_with_symbols_and_units(whole):
    assert dict(whole.sizes) == {"beta": 5, "n": 2, "repeat": 7}
    assert whole.beta.attrs == {"symbol": "β", "long_name": "inverse temperature"}
    assert whole.mean_overlap.attrs["symbol"] and (whole.status == 0).all()
    assert "Geshkovski" in whole.attrs["citation"]
    assert json.loads(whole.attrs["pathlines_study"])["setting"]["until"] == 2.0


def test_a_setting_has_the_numbers_of_a_flow_by_itself(whole):
    """Another engine, another tolerance of steps, the same start: equal to the tolerance."""
    seed = int(whole.seed[4])
    tokens = pl.Sphere(3).uniform(jax.random.key(seed), 8)
    run = pl.flow(pl.SelfAttention(5.0), tokens, until=2.0, record=["mean_overlap", "energy"], rtol=1e-9)
    point = whole.sel(beta=5.0, n=8).isel(repeat=4)
    for name in ("mean_overlap", "energy"):
        assert float(point[name]) == pytest.approx(run[name].values[-1], rel=2e-5)


def test_numbers_do_not_depend_on_the_grouping(whole, tmp_path, monkeypatch):
    backwards = pl.study("sa", {"beta": [9.0, 3.0], "n": "8"}, repeat=3, **FEW).run(store=tmp_path / "a")
    here = whole.sel(beta=[9.0, 3.0], n=[8]).isel(repeat=slice(3))
    assert bits(backwards) == bits(here.transpose(*backwards.mean_overlap.dims))
    alone = pl.study("sa", beta=7.0, n=6, seed=int(whole.seed[6]), **FEW).run(store=tmp_path / "b")
    assert bits(alone) == bits(whole.sel(beta=7.0, n=6).isel(repeat=6))
    monkeypatch.setattr(import_module("pathlines.sweep.study"), "chunk_size", lambda *a: 3)
    chunks = pl.study("sa", {"beta": "1:9:5", "n": [6, 8]}, repeat=7, **FEW).run(store=tmp_path / "c")
    assert bits(chunks) == bits(whole)


def test_processes_give_the_bits_of_this_one(whole, tmp_path):
    seen = []
    spread = pl.study("sa", {"beta": "1:9:5", "n": [6, 8]}, repeat=7, **FEW).run(
        "processes", workers=1, store=tmp_path, watch=seen.append
    )
    assert bits(spread) == bits(whole)
    assert seen[0].computed == 0 and seen[-1].computed == seen[-1].done == 70


def test_another_width_of_lanes_changes_the_program_and_is_fixed_by_the_problem():
    assert model_runs.lane_width(32, 3) == 8 and model_runs.lane_width(4096, 3) == 1


def test_what_is_stored_is_not_computed_again(tmp_path):
    axes, seen = {"x": "0:2:5", "k": [1, 2]}, []
    first = pl.study(noisy, axes, repeat=2).run(store=tmp_path)
    again = pl.study(noisy, axes, repeat=2).run(store=tmp_path, watch=seen.append)
    xr.testing.assert_identical(first, again)
    assert seen[-1].computed == 0 and seen[-1].recalled == 20
    more = pl.study(noisy, {"x": "0:2:9", "k": [1, 2, 3]}, repeat=3).run(store=tmp_path, watch=seen.append)
    assert seen[-1].computed == 81 - 20
    same = more.sel(x=first.x, k=first.k).isel(repeat=slice(2))
    np.testing.assert_array_equal(same.y, first.y)
    pl.study(noisy, axes, repeat=2).run(store=tmp_path, fresh=True, watch=seen.append)
    assert seen[-1].computed == 20


def test_failures_are_data(tmp_path):
    seen = []
    data = pl.study(noisy, {"x": [1.0, 3.0], "k": [1, 3]}).run(store=tmp_path, watch=seen.append)
    assert data.status.values.tolist() == [[0, 0], [1, 1]] and data.attrs["errors"] == "ValueError: x is too large"
    assert np.isnan(data.y.values[1]).all() and np.isfinite(data.y.values[0]).all()
    assert data.curve.values[0, 0].tolist()[1:] != data.curve.values[0, 1].tolist()[1:]  # shorter ones end in NaN
    assert seen[-1].failed == 2
    pl.study(noisy, {"x": [1.0, 3.0], "k": [1, 3]}).run(store=tmp_path, retry_failed=True, watch=seen.append)
    assert seen[-1].computed == 2 and seen[-1].failed == 2


def test_a_flow_that_cannot_go_on_fails_alone(tmp_path):
    axes = {"beta": [1.0, 800.0]}
    data = pl.study("usa", axes, n=4, until=1.0, record="mean_overlap").run(store=tmp_path)
    assert data.status.values.tolist() == [0, 1] and "at most 700" in data.attrs["errors"]
    assert np.isfinite(data.mean_overlap.values[0]) and np.isnan(data.mean_overlap.values[1])


def test_functions_of_a_setting_and_of_many_settings_at_once(tmp_path):
    one = pl.study(wave, {"x": "0:2:5", "k": [1, 2]}).run(store=tmp_path)
    many = pl.study(many_waves, {"x": "0:2:5", "k": [1, 2]}, many=3).run(store=tmp_path)
    np.testing.assert_array_equal(one.wave.values, many.y.values)
    assert many.z.dims == ("x", "k", "z_1") and many.z.values[4, 0].tolist() == [0.0, 2.0, 4.0]
    assert isinstance(Wave(), Wave)


def test_models_of_ones_own_layers_and_chains(tmp_path):
    own = pl.study(gentle, {"beta": [2.0, 8.0]}, n=5, until=1.0, record="mean_overlap").run(store=tmp_path)
    sa = pl.study("sa", {"beta": [1.0, 4.0]}, n=5, until=1.0, record="mean_overlap").run(store=tmp_path)
    assert own.mean_overlap.values.tobytes() == sa.mean_overlap.values.tobytes()
    stack = pl.study("pre-ln", {"beta": [1.0]}, n=4, d=4, layers=3, step=0.1, record="mean_overlap").run(store=tmp_path)
    assert (stack.status == 0).all()
    chain = pl.study("random", {"layers": [2, 4]}, n=4, d=4, record="mean_overlap").run(store=tmp_path)
    assert (chain.status == 0).all() and chain.mean_overlap.values[0] != chain.mean_overlap.values[1]


def test_curves_have_a_time_axis(tmp_path):
    data = pl.study("sa", {"beta": [1.0, 2.0]}, n=4, times="0:1:3", record="mean_overlap").run(store=tmp_path)
    assert data.mean_overlap.dims == ("beta", "time") and data.time.values.tolist() == [0, 0.5, 1]


def test_claims_are_studied_with_theory_and_verdict(tmp_path):
    data = pl.study("clustering/CL-43", {"beta": [1.0, 3.0]}).run(store=tmp_path)
    quantity = next(n for n in data.data_vars if f"{n}_theory" in data)
    assert data.verdict.values.tolist() == [1, 1]
    np.testing.assert_allclose(data[quantity], data[f"{quantity}_theory"], rtol=1e-2)


def test_repetitions_are_seeds_that_stay_when_more_are_asked_for():
    few = [derived_seed(5, k) for k in range(4)]
    assert few[0] == 5 and len(set(few)) == 4 and few == [derived_seed(5, k) for k in range(9)][:4]


def test_keys_are_those_of_the_values_not_of_the_grid():
    axes = pl.study(wave, {"x": "0:2:5", "k": [1, 2]}).axes
    plan = StudyPlan({"x": 1.0, "k": 1}, axes, frozenset(), 3)
    other = StudyPlan({"k": 2}, pl.study(wave, {"x": [2.0, 0.5]}).axes, frozenset(), 1)
    wanted = [plan.keys(np.array([k * 2 + 1]))[0].tolist() for k in (4, 1)]
    assert [row.tolist() for row in other.keys(np.arange(2))] == wanted
    where = np.concatenate([c.where for c in plan.chunks()])
    assert sorted(where.tolist()) == list(range(10)) and len({c.name for c in plan.chunks()}) == plan.chunk_count


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: pl.study("saa"), "Did you mean `sa`"),
        (lambda: pl.study("sa", {"beta": [1.0]}, bta=2), "no setting `bta`"),
        (lambda: pl.study("sa", record="clustercount"), "Did you mean `cluster_count`"),
        (lambda: pl.study("sa", {"until": [1.0, 2.0]}, times="0:1:3"), "where `until` is an axis"),
        (lambda: pl.study(wave, repeat=2), "it has no seed"),
        (lambda: pl.study("sa", {"seed": [1, 2]}, repeat=2), "where `seed` is an axis"),
        (lambda: pl.study(noisy), "noisy needs `x`"),
        (lambda: pl.study(3), "must be the name of a model"),
        (lambda: pl.study("sa").run("somewhere"), "Argument `on` must be serial"),
        (lambda: pl.study("sa", record="sinkhorn_residual"), "."),
    ],
)
def test_what_is_refused(call, words):
    with pytest.raises((ArgumentError, UnknownNameError, TypeError), match=words):
        call()


def test_a_store_that_cannot_be_written_is_said_before_anything_runs(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot be written"):
        pl.study(noisy, {"x": [1.0]}).run(store=tmp_path / "file" / "store")


def test_a_file_holds_one_study_and_can_be_extended(tmp_path):
    out, axes = tmp_path / "s.nc", {"x": [0.0, 1.0]}
    pl.study(noisy, axes).run(store=tmp_path, out=out)
    pl.study(noisy, axes).run(store=tmp_path, out=out)
    with pytest.raises(ArgumentError, match=r"its axis x has 2 other values, 0.0 … 1.0"):
        pl.study(noisy, {"x": [0.5]}).run(store=tmp_path, out=out)
    with pytest.raises(ArgumentError, match="its k is 1"):
        pl.study(noisy, axes, k=2).run(store=tmp_path, out=out, extend=True)
    pl.study(noisy, {"x": [0.5]}).run(store=tmp_path, out=out, extend=True)
    assert xr.load_dataset(out).x.values.tolist() == [0.0, 0.5, 1.0]
    pl.study(noisy, {"x": [float("-inf")]}).run(store=tmp_path, out=tmp_path / "inf.nc")
    pl.study(noisy, {"x": [2.0]}).run(store=tmp_path, out=tmp_path / "inf.nc", extend=True)
    assert xr.load_dataset(tmp_path / "inf.nc").x.values.tolist() == [-np.inf, 2.0]
    pl.study(noisy, {"x": [1.0]}).run(store=tmp_path, out=tmp_path / "inf.nc", extend=True)
    assert xr.load_dataset(tmp_path / "inf.nc").x.values.tolist() == [-np.inf, 1.0, 2.0]
    (tmp_path / "other.nc").write_text("a letter")
    with pytest.raises(ArgumentError, match="is not a Pathlines study"):
        pl.study(noisy, axes).run(store=tmp_path, out=tmp_path / "other.nc")


def test_a_forecast_counts_what_is_there(tmp_path):
    made = pl.study(noisy, {"x": "0:1:4"})
    assert made.predict(tmp_path).seconds is None
    made.run(store=tmp_path)
    told = pl.study(noisy, {"x": "0:1:4"}).predict(tmp_path)
    assert (told.runs, told.stored, told.seconds) == (4, 4, 0.0)
    assert pl.study("sa", {"beta": "1:9:9"}, n=16).predict(tmp_path).seconds > 0


def test_a_million_settings_are_planned_at_once():
    made = pl.study("sa", {"beta": "0:9:1000", "rtol": [1e-6]}, repeat=1000, n=8, until=1.0)
    assert isinstance(made, Study) and made.plan().count == 10**6
    assert sum(len(c.where) for c in made.plan().chunks()) == 10**6


SCRIPT = """
import numpy as np
import pathlines as pl
TABLE = [1, 2]
TABLE.append(3)
def helper(x): return x + TABLE[0]  # a comment
def unused(x): return 2
def mine(x: float): return helper(x)
study = pl.study(mine, {"x": "0:1:3"})
print(study)
"""


def test_the_code_of_a_function_is_what_it_uses():
    text = defining_text(SCRIPT, "mine")
    assert "TABLE.append(3)" in text and "helper" in text
    assert all(word not in text for word in ("unused", "comment", "print", "study"))
    assert defining_text(SCRIPT.replace("0:1:3", "0:1:9"), "mine") == text
    assert defining_text(SCRIPT.replace("append(3)", "append(4)"), "mine") != text


def test_a_collected_study_computes_nothing(tmp_path):
    made = pl.study(noisy, {"x": "0:1:4"})
    assert (made.collect(tmp_path).status == -1).all()
    made.run(store=tmp_path)
    assert (made.collect(tmp_path).status == 0).all() and Path(tmp_path, "studies").is_dir()
