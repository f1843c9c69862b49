"""Graders as eval files write them, read into passgate's own."""
