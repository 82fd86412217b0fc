"""Figures of the papers that follow the unified perspective."""

from pathlines.foundation.namespace import namespace

namespace(__name__, entries_only=True)
