"""Depth as time: layers, flows, ensembles, certificates."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
