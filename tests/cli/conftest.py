"""The program, called in this process."""

import sys

import pytest

from pathlines.cli import main


@pytest.fixture
def pathlines(monkeypatch, capsys):
    """Calls the program with these words: (exit code, stdout, stderr)."""

    def call(*words):
        monkeypatch.setattr(sys, "argv", ["pathlines", *map(str, words)])
        with pytest.raises(SystemExit) as stopped:
            main()
        return stopped.value.code or 0, *capsys.readouterr()

    return call
