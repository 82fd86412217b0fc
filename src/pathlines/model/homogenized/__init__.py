"""Random transformers and their homogenized limits."""
