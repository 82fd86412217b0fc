"""Theory of transformers with fresh random weights in every layer: collapse laws, reductions and regimes."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
