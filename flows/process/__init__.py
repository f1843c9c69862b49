"""The process of a command: its supervisor, its worker, its signals and its exit code."""
