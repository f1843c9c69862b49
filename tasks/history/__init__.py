"""What is kept: the journal of a run, its folder, and the history of all runs."""
