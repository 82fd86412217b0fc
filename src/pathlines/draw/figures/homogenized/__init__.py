"""Figures of Homogenized Transformers, arXiv:2604.01978."""

from pathlines.foundation.namespace import namespace

namespace(__name__, entries_only=True)
