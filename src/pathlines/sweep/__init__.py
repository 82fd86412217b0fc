"""Many settings: claims, phase diagrams; what the store has is skipped."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
