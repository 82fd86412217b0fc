"""Claims about the time between a random start and the final collapse: patterns, clusters, modes, landscapes."""
