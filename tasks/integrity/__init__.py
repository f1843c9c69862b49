"""Who judges a change: git, the merge base, the edits, a checkout of the base's files."""
