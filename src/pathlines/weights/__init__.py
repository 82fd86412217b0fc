"""What the layers hold: queries, keys, values, and how they vary with depth."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
