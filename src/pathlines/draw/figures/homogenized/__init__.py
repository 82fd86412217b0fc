"""Figures of Homogenized Transformers, arXiv:2604.01978."""
