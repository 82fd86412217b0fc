"""Moving pictures, one file each."""

from pathlines.foundation.namespace import namespace

namespace(__name__, entries_only=True)
