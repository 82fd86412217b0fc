"""Gaussian token clouds: closed forms of the exact matrix equations, and how far they hold at finite context."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
