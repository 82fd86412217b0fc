"""Moving pictures, one file each."""
