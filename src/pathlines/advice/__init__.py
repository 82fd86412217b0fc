"""What an architecture will do to its tokens, what moves that, and the smallest change that meets a target."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
