"""Ways to draw one random layer that have the same law and different costs."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
