"""Figures of the papers, one folder a family."""
