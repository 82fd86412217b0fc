"""Claims about predictions for architectures: what-ifs against random models."""
