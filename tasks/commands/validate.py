"""Validate files: return their tasks, or raise all their problems. Run nothing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from passgate.tasks.errors import InputError, Problem, UsageError
from passgate.tasks.formats.four_suite import Loaded, shown_path
from passgate.tasks.formats.loading import load_paths, load_pins_file, load_policy, load_price_table, policy_or_default
from passgate.tasks.formats.project_files import AGENTS_FILE, PINS_FILE, PRICES_FILE, QUARANTINE_FILE, read_quarantine
from passgate.tasks.model.task import Suite
from passgate.tasks.planning.named_agents import load_agents
from passgate.tasks.planning.requirements import problems_at_gates, weak_task_warnings


def validate(paths: Sequence[Path], gates: Path, tell: Callable[[Loaded], None]) -> Loaded:
    """Return the tasks and warnings of files and folders, settings files too. `tell` gets them before an error.

    Raise `InputError` with all problems, `UsageError` for missing paths, paths without tasks, and invalid gates.
    """
    for path in paths:
        if not path.exists():
            raise UsageError(f"no file or folder {path}")
    readers = readers_of_settings(gates.name)
    quarantines = [path for path in paths if path.name == QUARANTINE_FILE]
    settings = [path for path in paths if path.name in readers]
    problems: list[Problem] = []
    for file in settings:
        try:
            readers[file.name](file)
        except InputError as error:
            problems += error.problems
    task_paths = [path for path in paths if path not in {*settings, *quarantines}]
    # Tasks are read by the policy. With a broken policy they would only have problems that are the policy's own.
    policy_is_broken = any(path.name == gates.name for path in settings) and problems
    policy = None if policy_is_broken else policy_or_default(gates)
    loaded = Loaded() if policy is None else load_paths(task_paths, policy)
    runnable = [task for task in loaded.tasks if not task.cannot_run]
    warnings, files = (*loaded.warnings, *weak_task_warnings(runnable)), loaded.files + len(settings) + len(quarantines)
    # What cannot be run is raised as a problem below, so the command must not print it as a remark too.
    found = replace(loaded, warnings=warnings, cannot_run=(), files=files)
    tell(found)
    problems += problems_at_gates(runnable, policy) if policy else []
    # passgate can check that the tasks of a quarantine exist only if it knows all tasks: in a folder of suites.
    has_suites = any((path / suite).is_dir() for path in task_paths for suite in Suite)
    tasks = loaded.tasks if has_suites and not policy_is_broken and not loaded.problems else None
    for file in quarantines:
        answer = read_quarantine(file, shown_path(file, Path.cwd()), datetime.now(UTC).date(), tasks)
        problems += answer if isinstance(answer, list) else []
    if problems or loaded.problems or loaded.cannot_run:
        raise InputError([*problems, *loaded.problems, *loaded.cannot_run])
    if task_paths and not loaded.tasks:
        raise UsageError(f"no task files in {', '.join(map(str, task_paths))}: neither tasks nor evals")
    return found


def readers_of_settings(gates: str) -> Mapping[str, Callable[[Path], object]]:
    """Return the reader of each settings file by the file's name. A reader raises `InputError` or `UsageError`."""
    return {gates: load_policy, AGENTS_FILE: load_agents, PRICES_FILE: load_price_table, PINS_FILE: load_pins_file}
