"""A policy and what was measured in, a decision with its reasons out; pure."""
