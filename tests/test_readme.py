"""The README tells the truth: its example runs; the tables of the site are those of the registries."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_example_runs_as_printed(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    assert len([line for line in code.splitlines() if line.strip()]) <= 10
    result = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert "clusters at t = 30" in result.stdout
    assert (tmp_path / "run.pdf").stat().st_size > 1000


def test_tables_come_from_the_registries():
    result = subprocess.run([sys.executable, ROOT / "docs" / "tables.py", "--check"], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_continuous_integration_runs_the_readme_command():
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "make test" in script.splitlines()
    assert "make test" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_exit_codes_are_those_of_the_help():
    from pathlines.cli.program import app

    listed = set(re.findall(r"\b(\d+) [a-z]", app.info.help.split("Exit codes:")[1]))
    page = (ROOT / "docs" / "use" / "exit-codes.md").read_text(encoding="utf-8")
    (words,) = re.findall(r"exit codes: (.*?)\n\n", (ROOT / "README.md").read_text(encoding="utf-8"), flags=re.DOTALL)
    assert set(re.findall(r"^\| (\d+) \|", page, flags=re.MULTILINE)) == listed
    assert set(re.findall(r"\b(\d+)\s[a-z]", words)) == listed
