"""Theorems and figures as executable claims: setting, simulate, predict, compare -> verdict."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
