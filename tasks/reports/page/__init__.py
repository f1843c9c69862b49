"""The page of a run: one HTML file that needs nothing from elsewhere, and files with further trials beside it."""
