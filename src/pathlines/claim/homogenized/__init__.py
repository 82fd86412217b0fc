"""Claims about random transformers and their homogenized limits."""

from pathlines.foundation.namespace import namespace

namespace(__name__, entries_only=True)
