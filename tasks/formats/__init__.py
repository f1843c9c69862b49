"""From files to tasks and policies; every problem with its file, line and column."""
