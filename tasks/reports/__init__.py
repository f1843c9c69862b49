"""Views of a run and of the history: values in, text out."""
