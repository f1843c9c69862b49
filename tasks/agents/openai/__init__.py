"""passgate's own tool loop over a chat endpoint."""
