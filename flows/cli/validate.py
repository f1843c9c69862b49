"""`passgate validate`: list every problem of every file."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from passgate.flows.cli.options import GatesOption, named_path

if TYPE_CHECKING:
    from passgate.tasks.errors import Problem
    from passgate.tasks.formats.normalise import Loaded
    from passgate.tasks.model.task import EvalTask


def validate(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Task files, eval files, folders that contain them, "
            "gates.yaml, agents.yaml, prices.yaml, quarantine.yaml, baseline.yaml.",
            parser=named_path,
            show_default=False,
        ),
    ],
    gates: GatesOption = "gates.yaml",
) -> int:
    """Check files and list every problem as file:line:column. Run nothing."""
    from passgate.flows.cli.remarks import remark
    from passgate.flows.cli.terminal import say
    from passgate.tasks.errors import InputError, UsageError
    from passgate.tasks.formats.loading import load_paths, policy_or_default
    from passgate.tasks.formats.normalise import Loaded
    from passgate.tasks.formats.project_files import QUARANTINE_FILE
    from passgate.tasks.planning.preflight import problems_at_gates, warnings_of

    for path in paths:
        if not path.exists():
            raise UsageError(f"no file or folder {path}")
    readers = readers_of_settings(gates)
    quarantines = [path for path in paths if path.name == QUARANTINE_FILE]
    settings = [path for path in paths if path.name in readers]
    problems = [problem for file in settings for problem in _problems(readers[file.name], file)]
    task_paths = [path for path in paths if path not in {*settings, *quarantines}]
    policy_is_broken = any(path.name == Path(gates).name for path in settings) and problems
    policy = None if policy_is_broken else policy_or_default(Path(gates))
    loaded = Loaded() if policy is None else load_paths(task_paths, policy)
    runnable = [task for task in loaded.tasks if not task.cannot_run]
    remark(replace(loaded, warnings=(*loaded.warnings, *warnings_of(runnable)), cannot_run=()))
    problems += problems_at_gates(runnable, policy) if policy else []
    is_whole = not policy_is_broken and not loaded.problems and any(map(_is_suites_folder, task_paths))
    problems += [
        problem for file in quarantines for problem in _quarantine_problems(file, loaded.tasks if is_whole else None)
    ]
    if problems or loaded.problems or loaded.cannot_run:
        raise InputError([*problems, *loaded.problems, *loaded.cannot_run])
    if task_paths and not loaded.tasks:
        raise UsageError(f"no task files in {', '.join(map(str, task_paths))}: neither tasks nor evals")
    say(_summary(loaded, len(settings) + len(quarantines)))
    return 0


def readers_of_settings(gates: str) -> dict[str, Callable[[Path], object]]:
    """Map the name of each settings file to its reader. A reader raises `InputError` or `UsageError`."""
    from passgate.tasks.formats.agents_file import AGENTS_FILE
    from passgate.tasks.formats.loading import load_pins_file, load_policy, load_price_table
    from passgate.tasks.formats.project_files import PINS_FILE, PRICES_FILE
    from passgate.tasks.planning.named_agents import load_agents

    return {
        Path(gates).name: load_policy,
        AGENTS_FILE: load_agents,
        PRICES_FILE: load_price_table,
        PINS_FILE: load_pins_file,
    }


def _problems(read: Callable[[Path], object], file: Path) -> "tuple[Problem, ...]":
    from passgate.tasks.errors import InputError

    try:
        read(file)
    except InputError as error:
        return error.problems
    return ()


def _is_suites_folder(path: Path) -> bool:
    """Whether a path contains the folders of suites. Then all tasks are known."""
    from passgate.tasks.model.task import Suite

    return any((path / suite).is_dir() for suite in Suite)


def _quarantine_problems(file: Path, tasks: "Sequence[EvalTask] | None") -> "list[Problem]":
    """List the problems of a quarantine file. Check that its tasks exist only if all tasks are given."""
    from datetime import UTC, datetime

    from passgate.tasks.formats.four_suite import shown_path
    from passgate.tasks.formats.project_files import read_quarantine

    name, today = shown_path(file, Path.cwd()), datetime.now(UTC).date()
    answer = read_quarantine(file, name, today, tasks)
    return answer if isinstance(answer, list) else []


def _summary(loaded: "Loaded", settings: int) -> str:
    """Example: `12 files, 40 tasks checked, no problems`."""
    from passgate.tasks.reports.figures import count

    counted = [count(loaded.files + settings, "file")]
    if loaded.tasks:
        counted.append(count(len(loaded.tasks), "task"))
    return f"{', '.join(counted)} checked, no problems"
