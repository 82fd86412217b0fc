"""How fast: our methods and their peers, interleaved in one process."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
