"""Measures moved by networks with explicit weights."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
