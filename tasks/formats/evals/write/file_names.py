"""Names of files for tasks."""

import re
from collections.abc import Iterable

from passgate.tasks.formats.evals.read.case_folders import CASE_FILES

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 120
_MEANT_OTHERWISE = frozenset({*(name.partition(".")[0] for name in CASE_FILES), "eval", "gates", "agents", "prices"})
"""Names of files that are no tasks."""


def file_names(ids: Iterable[str]) -> list[str]:
    """A name for each id, without a suffix, like it: safe in every file system, and of no two the same, case aside."""
    taken: set[str] = set()
    names = []
    for task_id in ids:
        wanted = _safe(task_id)
        name, number = wanted, 2
        while name.lower() in taken:
            name, number = f"{wanted}-{number}", number + 1
        taken.add(name.lower())
        names.append(name)
    return names


def _safe(task_id: str) -> str:
    # A name that begins with a dot or an underscore is not looked at.
    name = _UNSAFE.sub("-", task_id)[:_LONGEST].lstrip("._-").rstrip(".-")
    stands_for_more = name.lower() in _MEANT_OTHERWISE or name.lower().endswith(".eval")
    return f"{name}-task" if stands_for_more or name.lower().startswith("dataset") else name or "task"
