"""What a result depends on: its own imports, files of the user beside them, versions, and nothing else."""

import sys
from pathlib import Path

import pytest

from pathlines.claim import CLAIMS, Evidence, absolute, claim
from pathlines.foundation.papers import PERSPECTIVE
from pathlines.foundation.setting import Setting
from pathlines.store import code
from pathlines.store.code import PACKAGE, fingerprint
from pathlines.store.results import Store
from pathlines.sweep.verify import Job, _attempt, _finish


@pytest.fixture(autouse=True)
def _nothing_remembered():
    yield
    code._bytes.cache_clear()
    code._imported.cache_clear()


def changed(monkeypatch, path):
    """As if that file had one more line."""
    honest = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda self: honest(self) + (b"\n#" if self == path else b""))
    code._bytes.cache_clear()
    code._imported.cache_clear()


@pytest.mark.parametrize(
    ("file", "matters"),
    [
        ("claim/clustering/two_clusters.py", True),
        ("claim/clustering/perspective_energy.py", False),
        ("claim/evaluate.py", True),
        ("model/self_attention.py", True),
        ("observable/energy.py", True),  # by name, through the registry
        ("kernels/native/attend_short.h", True),
        ("foundation/errors.py", True),
        ("probing/__init__.py", False),
        ("cli/verify.py", False),
        ("draw/report.py", False),
        ("draw/figures/clustering/schemes.py", False),
        ("limit/homogenized/simplex.py", False),
        ("__init__.py", False),
    ],
)
def test_a_claim_depends_on_what_it_imports(monkeypatch, file, matters):
    assert (PACKAGE / file).is_file()
    name = next(n for n in CLAIMS if CLAIMS[n].homes[0].endswith("two_clusters"))
    before = Job(name, "quick", {}).address
    changed(monkeypatch, PACKAGE / file)
    assert (Job(name, "quick", {}).address != before) is matters


def test_every_import_that_really_happens_is_found():
    """Modules of ours that a claim's file names at run time, through its globals, are in its closure."""
    for name in list(CLAIMS)[::7]:
        home = CLAIMS[name].homes[0]
        found = code._closure((home,), ())
        for value in vars(sys.modules[home]).values():
            module = sys.modules.get(getattr(value, "__module__", None) or "")
            if module is not None and module.__name__.startswith("pathlines."):
                assert str(Path(module.__file__)) in found, (home, module.__name__)


def test_files_of_the_user_count_with_what_they_import(tmp_path, monkeypatch):
    main, helper, other = (tmp_path / f"{n}.py" for n in ("main", "helper", "other"))
    main.write_text("from helper import (\n    x,\n)\nimport numpy\n")
    helper.write_text("x = 1")
    other.write_text("y = 1")
    before = fingerprint(files=(str(main),))
    changed(monkeypatch, other)
    assert fingerprint(files=(str(main),)) == before
    changed(monkeypatch, helper)
    assert fingerprint(files=(str(main),)) != before


@pytest.mark.parametrize(
    "line",
    [
        "import os, helper",
        "import numpy as np, os as o, helper as h",
        "x = 1; import helper",
        "if True: import helper",
        "from . import helper",
        "from .helper import x",
        "from importlib import import_module; import_module('helper')",
        "def f():\n    import helper",
    ],
)
def test_imports_of_a_user_in_any_style_count(tmp_path, monkeypatch, line):
    main, helper = tmp_path / "main.py", tmp_path / "helper.py"
    main.write_text(line)
    helper.write_text("x = 1")
    before = fingerprint(files=(str(main),))
    changed(monkeypatch, helper)
    assert fingerprint(files=(str(main),)) != before


@pytest.mark.parametrize(
    ("line", "file"),
    [
        ("import pathlines as pl; pl.flow", "integrate/flow.py"),
        ("from pathlines import flow", "integrate/flow.py"),
        ("import pathlines; pathlines.limit.homogenized.overlap_curve(1)", "limit/homogenized/overlap_curve.py"),
        ("from pathlines.model.gaussian import SoftmaxGaussian", "model/gaussian/closure.py"),
        ("import pathlines as pl; pl.energy", "observable/energy.py"),
        ("from pathlines.limit import homogenized; homogenized.overlap_curve", "limit/homogenized/overlap_curve.py"),
    ],
)
def test_what_a_user_takes_from_our_namespaces_counts(tmp_path, line, file):
    main = tmp_path / "main.py"
    main.write_text(line)
    assert str(PACKAGE / file) in code._closure((), (str(main),))


def test_modules_of_the_user_elsewhere_on_the_path_count(tmp_path, monkeypatch):
    main, helper = tmp_path / "main.py", tmp_path / "elsewhere" / "helper.py"
    helper.parent.mkdir()
    main.write_text("import helper, numpy")
    helper.write_text("x = 1")
    monkeypatch.syspath_prepend(helper.parent)
    before = fingerprint(files=(str(main),))
    changed(monkeypatch, helper)
    assert fingerprint(files=(str(main),)) != before
    assert not [p for p in code._closure((), (str(main),)) if "numpy" in p]


def test_an_outcome_is_stored_under_the_code_that_computed_it(tmp_path, monkeypatch):
    """A file that is edited while a sweep is running: the worker that started later has the new one."""
    monkeypatch.setattr(CLAIMS, "_entries", dict(CLAIMS._entries))
    one = lambda s: Evidence({"x": 1.0})  # noqa: E731
    within = {"x": absolute(1.0, "one")}
    claim("test/one", PERSPECTIVE, "", "", models=("sa",), quick=Setting(), within=within, simulate=one, predict=one)
    store, job = Store(tmp_path), Job("test/one", "quick", {})
    result = _attempt(job)
    assert result.address == job.address
    monkeypatch.setattr(sys.modules[Job.__module__], "fingerprint", lambda *_, **__: "older code")
    assert _finish(job, result, store).outcome.verdict == "holds"
    assert store.get_document(result.address) is not None
    assert store.get_document(job.address) is None


def test_versions_and_the_choice_of_native_code_count(monkeypatch):
    before = fingerprint("pathlines.sweep.request")
    monkeypatch.setenv("PATHLINES_NATIVE", "off")
    without = fingerprint("pathlines.sweep.request")
    monkeypatch.setattr(code, "version", lambda name: "0.0")
    assert len({before, without, fingerprint("pathlines.sweep.request")}) == 3
