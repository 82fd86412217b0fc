"""Measures moved on the sphere by layers of a transformer with explicit weights."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
