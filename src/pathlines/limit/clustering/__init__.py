"""Closed forms and reductions of clustering."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
