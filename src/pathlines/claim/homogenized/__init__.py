"""Claims about random transformers and their homogenized limits."""
