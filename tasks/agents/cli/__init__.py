"""A command as an agent."""
