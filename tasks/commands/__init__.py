"""What the commands do that are not a gate: one file each; they compose the rooms below."""
