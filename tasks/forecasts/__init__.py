"""Pass rates and a policy in, how often its gate is red out; pure."""
