"""Theory instead of simulation."""
