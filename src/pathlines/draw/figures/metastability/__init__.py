"""Figures of the papers on metastable clusters, their modes and their landscape."""
