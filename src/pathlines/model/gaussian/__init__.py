"""Closures of attention on Gaussian clouds."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
