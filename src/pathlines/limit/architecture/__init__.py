"""What an architecture does to its tokens at initialisation: the Gram map, layer by layer, and the simplex summary."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
