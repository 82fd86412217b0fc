"""Random transformers of real architectures."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
