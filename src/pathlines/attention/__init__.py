"""Who listens to whom: from scores to attention weights."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
