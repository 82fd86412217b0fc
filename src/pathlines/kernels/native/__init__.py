"""Native code for the processor at hand: compiled on first use, optional, the same answers."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
