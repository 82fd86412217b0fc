"""Closed forms and reductions of clustering."""
