"""Claims about transport and control by explicit networks."""

from pathlines.foundation.namespace import namespace

namespace(__name__, entries_only=True)
