"""The processes of a command: supervisor, worker, signals, exit code."""
