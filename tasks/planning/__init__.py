"""A request and files in, the plan of a run out."""
