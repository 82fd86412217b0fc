"""Models of the metastability family."""
