"""Random transformers of real architectures."""
