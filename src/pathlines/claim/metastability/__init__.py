"""Claims about the time between a random start and the final collapse: patterns, clusters, modes, landscapes."""

from pathlines.foundation.namespace import namespace

namespace(__name__, entries_only=True)
