"""The Prefect flows, one per gate, and the command line."""
