"""Ridge regression in one pass."""
