"""Lists of one line for each thing, and the names that a shell completes."""

import json
import os
import subprocess
import sys

import pytest

from pathlines.cli import complete
from pathlines.cli.listing import KINDS, entries
from pathlines.foundation.registry import near


def test_a_list_has_one_line_for_each_thing(pathlines):
    for kind in ("models", "figures", "observables"):
        lines = pathlines("list", kind)[1].splitlines()
        assert [line.split()[0] for line in lines] == [name for name, _ in entries(kind)]


def test_names_are_kept_for_completion_until_the_code_changes(monkeypatch, tmp_path):
    monkeypatch.setenv("PATHLINES_STORE", str(tmp_path))
    first = complete.names()
    assert set(first) == set(KINDS)
    assert ("sa", dict(first["models"])["sa"]) in complete.models("s")
    assert all(name.startswith("clustering/CL-4") for name, _ in complete.claims("clustering/CL-4"))
    kept = json.loads((tmp_path / complete.KEPT).read_text())
    kept["names"]["models"] = [["zebra", "a model of another day"]]
    (tmp_path / complete.KEPT).write_text(json.dumps(kept))
    assert complete.models("z") == [("zebra", "a model of another day")]
    monkeypatch.setattr(complete, "_state", lambda: [0, 0.0])
    assert ("zebra", "a model of another day") not in complete.models("z")


@pytest.mark.parametrize(
    ("words", "at", "found"), [("pathlines verif", 1, "verify"), ("pathlines run pre", 2, "pre-ln")]
)
def test_a_shell_is_answered(words, at, found):
    asked = {**os.environ, "_PATHLINES_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(at)}
    program = [sys.executable, "-c", "import sys; sys.argv[0] = 'pathlines'; from pathlines.cli import main; main()"]
    result = subprocess.run(program, env=asked, capture_output=True, text=True, timeout=300)
    assert result.stdout.split() == [found], result.stderr


def test_wrong_names_offer_near_ones_only():
    known = ["clustering/CL-43", "clustering/CL-44", "gaussian/C06", "sa", "usa"]
    assert near("clustering/CL-4", known) == "`clustering/CL-44`, `clustering/CL-43`"
    assert near("clustering/zebra", known) == ""
    assert near("saa", known) == "`sa`, `usa`"
    assert near("hippopotamus", known) == ""
