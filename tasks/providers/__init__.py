"""Model providers: the shapes of their APIs, and calls that are retried, limited and given up in time."""
