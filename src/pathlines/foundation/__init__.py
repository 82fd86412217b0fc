"""What every room stands on: errors a user can act on, citations, registries, precision."""
