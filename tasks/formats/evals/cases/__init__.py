"""From a test as its file writes it to a task."""
