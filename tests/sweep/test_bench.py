"""The bench measures what it says: contenders that agree with direct sums, fair rounds, honest goals. No times."""

import json
import math
from importlib import import_module

import msgspec
import numpy as np
import pytest

from pathlines.draw.bench_figure import bench_figure
from pathlines.foundation.errors import UnknownNameError
from pathlines.kernels.native import native_library
from pathlines.sweep.bench import CASES, Report, bench, chosen_cases, page, quiet
from pathlines.sweep.bench import case as cases
from pathlines.sweep.bench.case import GROUPS, QUADRATIC, Case, Contender, ordered, reason_to_leave_out, too_large
from pathlines.sweep.bench.drift import drift_error, in_jax, in_numpy, in_torch, steps_error
from pathlines.sweep.bench.fields import Tokens, dense_rows, keops_field, numpy_field, uniform_tokens
from pathlines.sweep.bench.goals import Goal, goals
from pathlines.sweep.bench.machine import Machine, copy_rate, exponential_rates, gemm_rate
from pathlines.sweep.bench.measure import Result, Timing, interleaved, measure
from pathlines.sweep.bench.memory import Memory, _in_a_process, one_drift
from pathlines.sweep.bench.quiet import warning
from pathlines.sweep.bench.solve import UNTIL, solve_error
from pathlines.sweep.bench.spectral import in_series

machines = import_module("pathlines.sweep.bench.machine")  # the room's name of it is the function
MACHINE = Machine(
    "a processor", 2, {"jax": "1"}, {"float32": 100.0, "float64": 50.0}, {"float32": 8.0, "float64": 2.0}, {}, 30.0, 7.0
)
EPS = {"float32": 1.2e-7, "float64": 2.3e-16}


def timing(method, seconds, ours=False):
    return Timing(method, ours, seconds, 0.9 * seconds, 1.1 * seconds, 5, 1e-15)


def result(name, **seconds):
    """A result with peers and ours by name; underscores stand for spaces."""
    ours = {"automatic", "native", "portable", "native series", "portable series", "compiled steps"}
    names = {key.replace("_", " "): value for key, value in seconds.items()}
    found = CASES[name]
    timings = tuple(timing(key, value, key in ours) for key, value in names.items())
    return Result(name, found.group, found.n, found.d, found.dtype, found.what, timings, {})


@pytest.mark.parametrize(("dtype", "general"), [("float32", True), ("float64", False)])
def test_every_library_computes_the_same_drift(dtype, general):
    """Scores are below 2β = 8, so weights are off by a few 8ε, and drifts by as much."""
    p = uniform_tokens(21, 3, dtype, general=general)
    calls = {"NumPy": in_numpy(numpy_field, False, p), "portable": in_jax("portable", False, p)}
    calls["automatic"] = in_jax("automatic", False, p)
    if native_library() is not None:
        calls["native"] = in_jax("native", False, p)
    for name, call in calls.items():
        answer = np.asarray(call())
        assert answer.dtype == dtype, name
        assert drift_error(p, answer) < 50 * EPS[dtype], name


def test_the_reference_is_the_sum_over_pairs():
    p = uniform_tokens(5, 3, "float64")
    query, key, value = p.heads
    rows = []
    for i in range(5):
        weights = [math.exp(p.beta * float((query @ p.x[i]) @ (key @ p.x[j]))) for j in range(5)]
        a = sum(w * (value @ p.x[j]) for j, w in enumerate(weights)) / sum(weights)
        rows.append(a - (a @ p.x[i]) * p.x[i])
    np.testing.assert_allclose(dense_rows(p, np.arange(5)), rows, atol=1e-14)


@pytest.mark.parametrize("fused", [False, True])
def test_pytorch_computes_the_same(fused):
    pytest.importorskip("torch")
    p = uniform_tokens(21, 3, "float64")
    assert drift_error(p, np.asarray(in_torch(fused, False, p)())) < 1e-14
    assert steps_error(p, np.asarray(in_torch(fused, True, p)())) < 1e-13
    stack = Tokens(np.stack([p.x, p.x[::-1]]), p.beta, None)
    assert steps_error(stack, np.asarray(in_torch(fused, True, stack)())) < 1e-13


def test_steps_of_ours_are_those_of_numpy():
    p = uniform_tokens(12, 3, "float64")
    assert steps_error(p, np.asarray(in_jax("portable", True, p)())) < 1e-13


@pytest.mark.parametrize(("d", "space"), [(2, "circle"), (3, "sphere")])
def test_nonuniform_transforms_compute_the_same(d, space):
    """FINUFFT is asked for 1e-12 of the largest moment; softmax divides by Z ≥ 1/n."""
    pytest.importorskip("finufft")
    finufft = next(c for c in CASES[f"{space}/n=1000"].contenders if c.name == "FINUFFT")
    p = uniform_tokens(60, d, "float64", general=False)
    assert drift_error(p, finufft.read(p, finufft.make(p)())) < 1e-12 * 60


def test_series_compute_the_same():
    p = uniform_tokens(60, 2, "float64", general=False)
    assert drift_error(p, np.asarray(in_series(False, p)())) < 2e-12 * 60


@pytest.mark.parametrize("name", ["SciPy DOP853", "diffrax", "torchdiffeq", "compiled steps"])
def test_solvers_agree(name):
    """Global errors of a contracting flow are a few tolerances."""
    contender = next(c for c in CASES["solve/n=32,d=3"].contenders if c.name == name)
    if contender.needs:
        pytest.importorskip(contender.needs)
    p = uniform_tokens(5, 3, "float64", general=False, beta=1.0)
    assert solve_error(UNTIL, p, contender.read(p, contender.make(p)())) < 1e-6


def test_rounds_are_interleaved():
    seen = []
    calls = {name: lambda name=name: seen.append(name) for name in "abc"}
    samples = interleaved(calls, dict.fromkeys(calls, 1.0), seconds=0.0)
    rounds = ["".join(seen[k : k + 3]) for k in (0, 3, 6)]
    assert all(sorted(r) == ["a", "b", "c"] for r in rounds)
    assert len(set(rounds)) > 1
    assert all(len(s) == 7 for s in samples.values())


def test_long_calls_are_not_repeated():
    seen = []
    samples = interleaved({"a": lambda: seen.append(1)}, {"a": 60.0}, seconds=1.0)
    assert seen == []
    assert samples == {"a": [60.0]}


def test_contenders_that_cannot_take_part_are_named(monkeypatch):
    monkeypatch.setattr(cases, "installed", lambda module: False)

    def broken(problem):
        raise RuntimeError("no such\nkernel")

    contenders = (
        Contender("good", lambda p: lambda: p + 1),
        Contender("absent", lambda p: None, needs="torch"),
        Contender("slow", lambda p: None, compiles=True),
        Contender("large", lambda p: None, unfit=lambda p: too_large(1e18)),
        Contender("broken", broken, ours=True),
    )
    example = Case("drift/x", 1, 1, "float64", "", lambda: 1.0, contenders, lambda p, a: abs(float(a) - 2.0))
    found = measure(example, 0.0, quick=True)
    assert [t.method for t in found.timings] == ["good"]
    assert found.timings[0].error == 0.0
    assert found.left_out["absent"] == "PyTorch is not installed"
    assert "quick" in found.left_out["slow"]
    assert "GB" in found.left_out["large"]
    assert found.left_out["broken"] == "failed: RuntimeError: no such kernel"
    assert reason_to_leave_out(contenders[2], 1.0, quick=False) == ""


def test_cases_are_complete_and_ordered():
    listed = ordered(list(CASES))
    assert {c.group for c in listed} == set(GROUPS)
    assert listed[0].group == "drift"
    for case in listed:
        assert sum(c.name == "automatic" and c.ours for c in case.contenders) == 1
        assert any(not c.ours for c in case.contenders)
    assert set(chosen_cases(quick=True)) < set(chosen_cases())
    assert chosen_cases("circle", quick=True) == ["circle/n=100", "circle/n=10000"]
    assert chosen_cases("circle/n=1000") == ["circle/n=1000"]
    with pytest.raises(UnknownNameError, match="begin with drift"):
        chosen_cases("drfit")


def test_goals_are_met_missed_or_not_measured():
    name = "drift/n=20000,d={}/float32"
    fast = [result(name.format(d), PyTorch_SDPA=0.5, automatic=0.07) for d in (2, 3)]
    assert goals(fast, MACHINE, [])[0].met is True
    assert goals(fast[:1], MACHINE, [])[0].met is None
    slow = [fast[0], result(name.format(3), PyTorch_SDPA=0.5, automatic=0.2)]
    missed = goals(slow, MACHINE, [])[0]
    assert missed.met is False
    assert "2.5 (drift/n=20000,d=3/float32)" in missed.measured
    limit = next(g for g in goals(fast, MACHINE, []) if "exponentials" in g.text)
    assert "1.4 (drift/n=20000,d=2/float32)" in limit.measured  # 0.07 s · 8e9/s / 4e8
    assert next(g for g in goals([], None, []) if "exponentials" in g.text).met is None


def test_goals_about_series_choice_small_systems_and_memory():
    times = {"FINUFFT": 10.0, "native_series": 1.0, "automatic": 1.1, "portable_series": 20.0}
    sizes = {n: result(f"circle/n={n}", **{k: n * t for k, t in times.items()}) for n in (10**4, 10**5, 10**6)}
    solve = result("solve/n=32,d=3", diffrax=0.004, automatic=0.002, compiled_steps=0.001)
    runs = [result(f"ensemble/runs=1000/{t}", PyTorch_bmm=0.4, automatic=0.1) for t in ("float32", "float64")]
    memories = [Memory("native", 10, 3, 10, "float64", 1e8, 2e9)]
    found = {g.text: g for g in goals([*sizes.values(), solve, *runs], MACHINE, memories)}
    verdict = lambda word: [g.met for text, g in found.items() if word in text]  # noqa: E731
    assert verdict("circle: at least 5") == [True]
    assert verdict("pure JAX") == [False]
    assert verdict("circle: ten times") == [True]
    assert verdict("sphere") == [None, None]
    assert verdict("what is chosen") == [True]
    left = msgspec.structs.replace(result("circle/n=1000", native_series=1.0), left_out={"automatic": QUADRATIC})
    assert [g.met for g in goals([left], None, []) if "what is chosen" in g.text] == [False]
    assert verdict("under 3 ms") == [True]
    assert verdict("Ensemble") == [True, False]
    assert verdict("memory") == [False]


@pytest.fixture
def report():
    results = (
        result("drift/n=32,d=3/float32", NumPy=3e-5, automatic=6e-5),
        result("drift/n=32,d=3/float64", NumPy=4e-5, automatic=6e-5),
        msgspec.structs.replace(
            result("circle/n=100", FINUFFT=1e-3, automatic=1e-5), left_out={"KeOps": "KeOps is not installed"}
        ),
        result("circle/n=1000", FINUFFT=1e-3, automatic=1e-4),
        result("solve/n=32,d=3", diffrax=3e-3, automatic=6e-3, compiled_steps=2e-3),
    )
    judged = (Goal("be fast", "2 (somewhere)", True), Goal("be small", "", None))
    memories = (Memory("native", 200_000, 3, 200_000, "float64", 2e8, 3e8),)
    return Report("2026-01-01 00:00 UTC", "full", MACHINE, results, memories, judged, ("KeOps",), 0.0)


def test_page_shows_tables_goals_and_who_is_missing(report):
    text = page(report, "bench.png")
    assert "| n=32,d=3 | 0.03 / 0.04 | 0.06 / 0.06 | 0.50 / 0.67 | 1e-15 / 1e-15 |" in text
    assert "| be fast | 2 (somewhere) | met |" in text
    assert "| be small | – | not measured |" in text
    assert "KeOps is not installed (circle/n=100)" in text
    assert "pip install 'pathlines[bench]'" in text
    assert "![" in text and "a processor" in text and "2026-01-01" in text and "0.30 GB" in text


def test_a_busy_machine_is_confessed(report):
    assert "quiet machine" not in page(report)
    assert "Others kept 1.5 cores busy" in page(msgspec.structs.replace(report, others=1.5))
    assert warning(None) == warning(0.0) == ""


def test_own_work_is_not_that_of_others(monkeypatch):
    """Ten seconds of which we worked six on one core, while everybody together worked nine."""
    clocks = {"monotonic": 100.0, "_all_seconds": 50.0, "_own_seconds": 7.0}
    monkeypatch.setattr(quiet.time, "monotonic", lambda: clocks["monotonic"])
    for name in ("_all_seconds", "_own_seconds"):
        monkeypatch.setattr(quiet, name, lambda name=name: clocks[name])
    watch = quiet.Watch()
    clocks.update(monotonic=110.0, _all_seconds=59.0, _own_seconds=13.0)
    assert watch.others() == pytest.approx(0.3)
    clocks["_all_seconds"] = None
    assert watch.others() is None


def test_figure_has_a_panel_a_kind(report):
    figure = bench_figure(report)
    assert len(figure.axes) == 4
    assert {axes.get_xscale() for axes in figure.axes} == {"log"}
    assert len({text.get_text() for text in figure.legends[0].get_texts()}) == len(figure.legends[0].get_texts())
    assert len(bench_figure(msgspec.structs.replace(report, results=report.results[:1], machine=None)).axes) == 1


def test_report_survives_json(report):
    assert msgspec.json.decode(msgspec.json.encode(report), type=Report) == report


def test_bench_of_one_case(monkeypatch):
    monkeypatch.setattr(cases, "installed", lambda module: False)
    found = bench("drift/n=32,d=3/float64", quick=True, peaks=False, progress=False)
    (only,) = found.results
    assert {t.method for t in only.timings} >= {"NumPy", "portable", "automatic"}
    assert set(only.left_out) - {"native"} == {"PyTorch eager", "PyTorch SDPA", "KeOps"}
    assert all(t.error < 50 * EPS["float64"] and t.seconds > 0 for t in only.timings)
    assert found.missing and found.memories == ()


def test_peaks_are_positive_numbers(monkeypatch):
    monkeypatch.setattr(machines, "SIDE", 32)
    monkeypatch.setattr(machines, "DTYPES", ("float32",))
    monkeypatch.setattr(machines, "COPIED", 1 << 16)
    monkeypatch.setattr(machines, "installed", lambda module: False)
    assert gemm_rate("float32") > 0
    assert copy_rate() > 0
    if native_library() is not None:
        in_cache, in_registers = exponential_rates()
        assert set(in_cache) == set(in_registers) == {"float32"}
        assert min(*in_cache.values(), *in_registers.values()) > 0
    monkeypatch.setattr(machines, "native_library", lambda: None)
    in_cache, in_registers = exponential_rates()
    assert min(in_cache.values()) > 0 and in_registers == {}


def test_memory_of_a_drift_is_reported(capsys):
    one_drift("portable", "200", "3", "50", "float64")
    found = json.loads(capsys.readouterr().out)
    assert 1e7 < found["before"] <= found["peak"] < 1e11


def test_keops_computes_the_same(monkeypatch):
    """With a stand-in for KeOps: compiling with the real one takes many seconds."""
    import sys
    import types

    class LazyTensor:
        def __init__(self, array):
            self.array = array

        def __or__(self, other):
            return LazyTensor(np.sum(self.array * other.array, axis=-1))

        def sumsoftmaxweight(self, values, axis):
            weights = np.exp(self.array)
            return np.einsum("ij,xjd->id", weights, values.array) / weights.sum(axis)[:, None]

    package = types.ModuleType("pykeops")
    package.set_verbose = lambda wanted: None
    monkeypatch.setitem(sys.modules, "pykeops", package)
    stand_in = types.ModuleType("pykeops.numpy")
    stand_in.LazyTensor = LazyTensor
    monkeypatch.setitem(sys.modules, "pykeops.numpy", stand_in)
    p = uniform_tokens(9, 3, "float64")
    assert drift_error(p, keops_field(p)(p.x)) < 1e-14


def test_measuring_memory_imports_nothing_from_the_current_folder(tmp_path, monkeypatch):
    (tmp_path / "resource.py").write_text("raise SystemExit('planted')")
    monkeypatch.chdir(tmp_path)
    assert _in_a_process("native", 50, 3, 50, "float64").peak > 0


@pytest.mark.skipif(native_library() is None, reason="no C++ compiler here")
def test_the_compiler_may_have_several_words(monkeypatch, tmp_path):
    monkeypatch.setenv("CXX", "env LC_ALL=C g++")
    assert machines._probe(tmp_path).cache_float64
