"""Signed verdicts: in-toto statements in DSSE envelopes. Bytes in, values out."""
