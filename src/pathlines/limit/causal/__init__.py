"""Causal attention in closed form: retrieval, paths of attention, layered mean field, parking."""
