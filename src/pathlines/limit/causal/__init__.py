"""Causal attention in closed form: retrieval, paths of attention, layered mean field, parking."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
