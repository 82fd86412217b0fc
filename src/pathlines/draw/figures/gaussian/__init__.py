"""Figures of Gaussian token clouds (A Unified Perspective on the Dynamics of Deep Transformers, arXiv:2501.18322)."""
