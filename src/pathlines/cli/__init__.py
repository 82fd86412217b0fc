"""The command line: one file a verb."""

from pathlines.cli.main import main as main
