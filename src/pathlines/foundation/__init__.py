"""What every room stands on: errors a user can act on, citations, registries, precision."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
