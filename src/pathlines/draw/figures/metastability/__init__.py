"""Figures of the papers on metastable clusters, their modes and their landscape."""

from pathlines.foundation.namespace import namespace

namespace(__name__, entries_only=True)
