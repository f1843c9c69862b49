"""The JSON Schemas of eval files, made from what they are read with."""
