"""Transformers as data: one frozen record, and readers of configuration files."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
