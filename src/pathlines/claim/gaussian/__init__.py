"""Attention as a velocity field, the Transformer PDE and Gaussian clouds: claims C01 … C28, errata ER-…."""

from pathlines.foundation.namespace import namespace

namespace(__name__, entries_only=True)
