"""Figures, the report, one style."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
