"""Causal attention: the decoder on the circle."""
