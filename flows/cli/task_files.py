"""Reads the tasks of files for commands, and prints warnings and notes about them on standard error."""

from collections.abc import Sequence
from pathlib import Path

from passgate.tasks.errors import InputError, Problem, UsageError
from passgate.tasks.formats.folder import find_root
from passgate.tasks.formats.loading import load_paths
from passgate.tasks.formats.normalise import Loaded
from passgate.tasks.model.policy import Policy
from passgate.tasks.model.task import EvalTask
from passgate.tasks.reports.messages import write_line

_MOST_OTHERS = 20


def read_tasks(paths: Sequence[Path], policy: Policy) -> Loaded:
    """Read files and folders, and print what there is to remark. Raise `InputError` or `UsageError`."""
    for path in paths:
        if not path.exists():
            raise UsageError(f"no file or folder {path}")
    loaded = load_paths(paths, policy)
    remark(loaded)
    if loaded.problems:
        raise InputError(loaded.problems)
    return loaded


def read_tasks_by_folder(paths: Sequence[Path], policy: Policy) -> dict[Path, list[EvalTask]]:
    """Read tasks, print remarks, and group the tasks by the suites folder that their paths are relative to.

    Raise `UsageError` if there are no tasks. Raise `InputError` with the problems of all files.
    """
    by_folder: dict[Path, list[EvalTask]] = {}
    problems: dict[Problem, None] = {}
    # Paths may repeat and overlap. A file in two of them must not give its problems twice.
    for path in dict.fromkeys(paths):
        if not path.exists():
            raise UsageError(f"no file or folder {path}")
        loaded = load_paths([path], policy)
        remark(loaded)
        problems |= dict.fromkeys(loaded.problems)
        for task in loaded.tasks:
            by_folder.setdefault(find_root(Path(task.file), path), []).append(task)
    if problems:
        raise InputError([*problems])
    if not by_folder:
        raise UsageError(f"no task files in {', '.join(map(str, paths))}: neither tasks nor evals")
    return by_folder


def remark(loaded: Loaded) -> None:
    """Print warnings, tasks that cannot be run, files that are not eval files, and how many tasks name no suite."""
    lines = [f"warning: {warning}" for warning in loaded.warnings]
    lines += [f"cannot be run: {missing}" for missing in loaded.cannot_run]
    lines += [f"not an eval file: {file}" for file in loaded.others[:_MOST_OTHERS]]
    if len(loaded.others) > _MOST_OTHERS:
        lines.append(f"not an eval file: {len(loaded.others) - _MOST_OTHERS} more")
    assumed = sum(task.suite_assumed for task in loaded.tasks)
    if assumed:
        are = "1 task names no suite and is" if assumed == 1 else f"{assumed} tasks name no suite and are"
        lines.append(f"warning: {are} taken as golden: write `suite:`, or put the file into the folder of a suite")
    for line in lines:
        write_line(line)
