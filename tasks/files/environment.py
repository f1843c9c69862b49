"""What programs that passgate starts inherit of its environment."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

_VERSION: Final = f"python{sys.version_info.major}.{sys.version_info.minor}"
_PACKAGES: Final = Path("lib", _VERSION, "site-packages")
SET_FOR_PREFECT: Final = "PREFECT_SETS"
"""The variable that lists, with commas between them, further variables that passgate has set for Prefect."""
_NOT_FOR_AGENTS: Final = ("PASSGATE_JUDGE_", "PREFECT_")
# Git sets them for its hooks: with them every process finds that repository, and has the date and the options of that
# command. Those for a user's settings stay.
_OF_A_REPOSITORY: Final = frozenset(
    {
        *("GIT_DIR", "GIT_COMMON_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_PREFIX"),
        *("GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_QUARANTINE_PATH", "GIT_SHALLOW_FILE"),
        *("GIT_NAMESPACE", "GIT_CEILING_DIRECTORIES", "GIT_INTERNAL_SUPER_PREFIX", "GIT_REPLACE_REF_BASE"),
        *("GIT_GRAFT_FILE", "GIT_NO_REPLACE_OBJECTS", "GIT_REFLOG_ACTION", "GIT_EXEC_PATH"),
        *("GIT_CONFIG", "GIT_CONFIG_PARAMETERS", "GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"),
    }
)


def bound_to_no_repository(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables without those that bind git to one repository, wherever it is started."""
    return {name: value for name, value in environment.items() if name not in _OF_A_REPOSITORY}


def inherited_variables() -> dict[str, str]:
    """Return the variables of this process that an agent gets.

    Not the judge's key, no repository of a hook, and nothing of Prefect: an agent behaves alike with every engine.
    """
    variables = bound_to_no_repository(os.environ)
    left_out = variables.get(SET_FOR_PREFECT, "").split(",")
    return {
        name: value
        for name, value in variables.items()
        if not name.startswith(_NOT_FOR_AGENTS) and name not in left_out
    }


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


def add_active_packages(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables with which a Python of passgate finds the packages of the active environment too, after its
    own. Another version of Python cannot use them.
    """
    active = _other_environment()
    if active is None:
        return dict(environment)
    paths = [environment.get("PYTHONPATH", ""), str(active / _PACKAGES)]
    return {**environment, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def unusable_packages() -> str:
    """Say why passgate's Python cannot use the packages of the active environment, and what to do; empty if it can."""
    active = _other_environment()
    if active is None or (active / _PACKAGES).is_dir():
        return ""
    versions = [folder.parent.name for folder in active.glob("lib/python*/site-packages")]
    python = active / "bin/python"
    return (
        f"passgate runs on {_VERSION} and cannot use the packages of the active environment {active}, which has "
        f"{' and '.join(versions) or 'none'}: install passgate with that Python (`{python} -m pip install passgate`, "
        f"`uv tool install --python {python} passgate` or `pipx install --python {python} passgate`)"
    )


def _other_environment() -> Path | None:
    """Return the active environment if passgate has another one."""
    active = active_environment()
    return None if active is None or active.resolve() == Path(sys.prefix).resolve() else active
