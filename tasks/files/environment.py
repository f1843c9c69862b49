"""What programs that passgate starts inherit of its environment."""

from collections.abc import Mapping
from typing import Final

# Git sets them for its hooks, and whoever has them finds that repository from everywhere. Those for its settings stay.
_OF_A_REPOSITORY: Final = frozenset(
    {
        *("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"),
        *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH", "GIT_SHALLOW_FILE"),
        *("GIT_NAMESPACE", "GIT_CEILING_DIRECTORIES", "GIT_INTERNAL_SUPER_PREFIX", "GIT_REPLACE_REF_BASE"),
        *("GIT_GRAFT_FILE", "GIT_NO_REPLACE_OBJECTS", "GIT_REFLOG_ACTION", "GIT_EXEC_PATH"),
    }
)


def bound_to_no_repository(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without those that bind git to one repository, wherever it is started."""
    return {name: value for name, value in environment.items() if name not in _OF_A_REPOSITORY}
