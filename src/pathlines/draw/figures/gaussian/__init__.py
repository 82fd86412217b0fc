"""Figures of Gaussian token clouds (A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322)."""

from pathlines.foundation.namespace import namespace

namespace(__name__, entries_only=True)
