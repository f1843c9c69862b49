"""Files on disk: atomic writes, locks, removal and temporary folders."""
