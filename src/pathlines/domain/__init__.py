"""Where tokens live, and the laws they start from."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
