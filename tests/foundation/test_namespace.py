"""Public names: found without imports, one meaning each, seen by type checkers, and the nearest one for a wrong one."""

import re
import subprocess
import sys
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

import pathlines as pl
from pathlines.foundation.namespace import defined, folders, homes, is_namespace, single_files

ROOT = Path(__file__).parents[2]
ROOMS = ("attention", "claim", "domain", "integrate", "limit", "model", "numerics", "observable", "sweep", "weights")


def fresh(code):
    """Run in a process that has imported nothing."""
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split("\n")


def namespaces(package="pathlines"):
    import_module(package)
    if is_namespace(package):
        yield package
    for folder in folders(package):
        yield from namespaces(f"{package}.{folder}")


def test_rooms_work_at_the_first_access_and_say_what_they_hold():
    for room in ROOMS:
        lines = fresh(f"import pathlines as pl, sys; print(len(dir(pl.{room}))); print('jax' in sys.modules)")
        assert int(lines[0]) > 2 and lines[1] == "False"
    assert fresh("import pathlines as pl; print(pl.limit.homogenized.overlap_curve([0.0], 8, 1.0))")[0] == "[0.]"


def test_a_function_wins_over_the_file_of_its_name():
    assert fresh("import pathlines.integrate.flow, pathlines as pl; print(callable(pl.integrate.flow))")[0] == "True"
    assert fresh("from pathlines.limit.clustering import cone; print(cone.__name__)")[0].endswith("clustering.cone")


def test_observables_are_listed_and_are_the_registered_ones():
    for name in pl.OBSERVABLES:
        assert name in dir(pl) and getattr(pl, name) is pl.OBSERVABLES[name] is getattr(pl.observable, name)


def test_no_two_public_things_share_a_name():
    """Within a namespace names are of one file; those at the top are taken nowhere else, rooms have their own."""
    top = homes("pathlines")
    assert not set(top) & set(folders("pathlines"))
    for package in namespaces():
        public = homes(package)
        files = [name for file in single_files(package) for name in set(defined(f"{package}.{file}"))]
        twice = {name for name, count in Counter(files).items() if count > 1 and name in public}
        assert not twice, (package, twice)
        for name in set(public) & {*single_files(package), *folders(package)}:
            assert public[name] == f"{package}.{name}", (package, name)
        for name in set(public) & set(top):
            assert public[name] == top[name], (package, name)


MISLEADING = {
    "trust", "closure", "certificate", "landscape", "minimise", "Parameters", "Markers", "Linear", "Identity", "Fixed",
    "identity", "summed", "sampled", "admitted", "beyond", "is_ripe",
}  # fmt: skip
"""Names that said too little of what they named; they were given up."""


def test_names_that_were_given_up_stay_away():
    assert [(package, name) for package in namespaces() for name in MISLEADING & set(homes(package))] == []


def test_the_top_tier_is_small():
    tier = set(pl.__all__) - set(pl.OBSERVABLES)
    assert 20 <= len(tier) <= 55
    for name in tier:
        assert getattr(pl, name) is not None


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [
        ("pl.flwo", "`flow`"),
        ("pl.trapezoid", "`pathlines.numerics.trapezoid`"),
        ("pl.weights.Gausianheads", "GaussianHeads"),
    ],
)
def test_a_wrong_name_fails_at_once_with_the_right_one(wrong, meant):
    code = "import time, sys, pathlines as pl\nstart = time.process_time()\n"
    code += f"try:\n    {wrong}\nexcept AttributeError as error:\n    print(error)\n"
    message, seconds, jax = fresh(code + "print(time.process_time() - start)\nprint('jax' in sys.modules)")[:3]
    assert meant in message and float(seconds) < 0.05 and jax == "False"


def test_stubs_are_up_to_date():
    assert subprocess.run([sys.executable, ROOT / "docs" / "stubs.py", "--check"]).returncode == 0


def test_mypy_sees_public_names_and_rejects_wrong_ones(tmp_path):
    file = tmp_path / "script.py"
    file.write_text(
        "import pathlines as pl\n"
        "pl.flwo(1)\n"
        "pl.limit.homogenized.overlap_cruve\n"
        "reveal_type(pl.limit.homogenized.collapse_time(8, 1.0))\n"
        "reveal_type(pl.energy)\n"
    )
    options = [
        "--follow-imports=silent",
        "--config-file=",
        "--ignore-missing-imports",
        f"--cache-dir={ROOT}/.mypy_cache",
    ]
    command = [sys.executable, "-m", "mypy", *options, str(file)]
    out = subprocess.run(command, capture_output=True, text=True, cwd=ROOT / "src").stdout
    errors = [line for line in out.split("\n") if ": error:" in line]
    assert len(errors) == 2 and "script.py:2" in errors[0] and "script.py:3" in errors[1], out
    assert "float" in out and "Observable" in out


def test_no_file_imports_the_package_itself():
    """Its stub names everything, so that would tie all files into one cycle, in which type checkers lose their way."""
    wrong = re.compile(r"^\s*(?:import pathlines$|import pathlines as|from pathlines import)", re.MULTILINE)
    assert not [path for path in (ROOT / "src").rglob("*.py") if wrong.search(path.read_text(encoding="utf-8"))]
