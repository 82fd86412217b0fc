"""Claims about causal attention: retrieval, lost in the middle, parking."""

from pathlines.foundation.namespace import namespace

namespace(__name__, entries_only=True)
