"""Tasks written as files of the dialects that passgate reads: from models to documents and their texts, no files."""
