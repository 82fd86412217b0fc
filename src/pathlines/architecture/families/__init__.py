"""Readers of Hugging Face configurations, one file for each family of models."""

from pathlines.foundation.namespace import namespace

namespace(__name__, entries_only=True)
