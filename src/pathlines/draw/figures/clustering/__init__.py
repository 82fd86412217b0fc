"""Figures of the clustering papers."""
