"""What a user of Prefect sees of a run: states, artifacts, progress."""
