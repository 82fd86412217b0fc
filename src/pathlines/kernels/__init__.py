"""How attention is summed, fast."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
