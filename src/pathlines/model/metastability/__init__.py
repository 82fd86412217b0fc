"""Models of the metastability family."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
