"""Random transformers and their homogenized limits."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
