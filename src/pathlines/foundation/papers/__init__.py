"""The papers whose mathematics this package implements, one file per family: all rooms cite from here."""

from pathlines.foundation.namespace import namespace

namespace(__name__, lambda: {"PAPERS": "pathlines.foundation.papers.shelf"})
