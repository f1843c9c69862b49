"""Names of branches."""

import re

DEFAULT_BRANCH = "main"
"""The branch that changes are merged into, where nobody says another."""
# What git takes for no name, or for an expression that means some commit: `git help check-ref-format`.
_NO_NAME = re.compile(r"^-|^HEAD$|\.\.|@\{|[\x00-\x20\x7f~^:?*\[\\]|^/|/$|//|(^|/)\.|\.$|\.lock(/|$)")


def is_branch_name(name: str) -> bool:
    """Whether git would let a branch have this name."""
    return bool(name) and not _NO_NAME.search(name)
