"""Models of the clustering family."""
