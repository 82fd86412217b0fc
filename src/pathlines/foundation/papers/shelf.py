"""All papers, from the files of their families."""

from importlib import import_module

from pathlines.foundation.namespace import single_files
from pathlines.foundation.papers.paper import Paper

PAPERS: dict[str, Paper] = {
    entry.key: entry
    for family in single_files("pathlines.foundation.papers")
    if family not in ("paper", "shelf")
    for entry in vars(import_module(f"pathlines.foundation.papers.{family}")).values()
    if isinstance(entry, Paper)
}
"""By their BibTeX keys."""
