"""Clustering in self-attention dynamics: claims CL-01 … CL-48, errata ER-…, open questions OP-…."""

from pathlines.foundation.namespace import namespace

namespace(__name__, entries_only=True)
