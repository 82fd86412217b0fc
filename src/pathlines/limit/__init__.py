"""Theory instead of simulation."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
