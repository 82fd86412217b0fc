"""Flows of ReLU pieces in R^d."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
