"""What is wrong with files from outside."""


class UnreadableError(Exception):
    """A file that is not what it should be. Its text goes on behind the file's name, as in "is no JSON"."""
