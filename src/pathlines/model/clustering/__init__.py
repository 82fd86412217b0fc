"""Models of the clustering family."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
