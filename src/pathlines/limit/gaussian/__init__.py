"""Gaussian token clouds: closed forms of the exact matrix equations, and how far they hold at finite context."""
