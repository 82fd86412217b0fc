"""Claims about predictions for architectures: what-ifs against random models."""

from pathlines.foundation.namespace import namespace

namespace(__name__, entries_only=True)
