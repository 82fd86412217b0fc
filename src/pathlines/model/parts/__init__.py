"""Mechanisms that models share: masks, sums, energies, split steps, the perceptron."""

from pathlines.foundation.namespace import namespace

namespace(__name__)
