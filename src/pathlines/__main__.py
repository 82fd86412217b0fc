"""``python -m pathlines``."""

from pathlines.cli import main

main()
