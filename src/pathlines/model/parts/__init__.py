"""Mechanisms that models share: masks, sums, energies, split steps, the perceptron."""
