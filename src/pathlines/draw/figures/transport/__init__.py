"""Figures of transport and control."""

from pathlines.foundation.namespace import namespace

namespace(__name__, entries_only=True)
