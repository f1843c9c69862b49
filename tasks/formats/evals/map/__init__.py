"""From a test as its file writes it, with its graders, to a task."""
