"""What programs that passgate starts inherit of its environment."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
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


def active_environment() -> Path | None:
    """Return the virtual environment that is active in the user's shell; `None` without one."""
    named = os.environ.get("VIRTUAL_ENV")
    return Path(named) if named and Path(named, "bin").is_dir() else None


def search_path() -> str:
    """Return where the commands of a trial are looked for: as in the user's shell, and last in passgate's environment.

    passgate may have one of its own, as with pipx or `uv tool`, and `python` is the agent's all the same.
    """
    active = active_environment()
    first = [str(active / "bin")] if active is not None else []
    return os.pathsep.join([*first, os.environ.get("PATH", os.defpath), str(Path(sys.executable).parent)])


def with_active_packages(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which a Python of passgate finds the packages of the active environment too, after its
    own. Another version of Python cannot use them.
    """
    active = active_environment()
    if active is None or active.resolve() == Path(sys.prefix).resolve():
        return dict(environment)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    paths = [environment.get("PYTHONPATH", ""), str(active / "lib" / version / "site-packages")]
    return {**environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
