"""Attention among unit vectors by harmonics: O(n) with a rigorous error bound."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
