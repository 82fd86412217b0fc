"""Figures of the papers, one folder a family."""

from pathlines.foundation.namespace import namespace

namespace(__name__, entries_only=True)
