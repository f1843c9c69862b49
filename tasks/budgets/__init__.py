"""What a trial used, and the limits on it."""
