"""Claims about the papers that follow the unified perspective, one file for each system."""

from pathlines.foundation.namespace import namespace

namespace(__name__, entries_only=True)
