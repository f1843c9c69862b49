"""A plan in, finished trials out."""
