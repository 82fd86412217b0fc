"""Causal attention: the decoder on the circle."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
