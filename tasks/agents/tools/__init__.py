"""Tools that passgate runs for an agent: in the sandbox, or from a recording."""
