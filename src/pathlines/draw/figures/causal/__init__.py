"""Figures of causal attention."""
