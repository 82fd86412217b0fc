"""Between a random start and the final collapse: growth of patterns, life and death of clusters."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
