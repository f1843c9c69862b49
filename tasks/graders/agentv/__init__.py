"""Scores as AgentV computes them, where it differs from AgentEvals: for tasks with `compat: agentv`."""
