"""Closures of attention on Gaussian clouds."""
