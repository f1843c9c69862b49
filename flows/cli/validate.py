"""`passgate validate`: every problem of every file, and nothing run."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from passgate.flows.cli.options import GatesOption

if TYPE_CHECKING:
    from collections.abc import Callable

    from passgate.tasks.errors import Problem


def validate(
    paths: Annotated[
        list[Path],
        typer.Argument(help="Task files, folders of them, gates.yaml, agents.yaml, prices.yaml.", show_default=False),
    ],
    gates: GatesOption = "gates.yaml",
) -> int:
    """Check files and run nothing: every problem in every file, as file:line:column."""
    from passgate.flows.cli.terminal import say
    from passgate.tasks.errors import InputError, UsageError
    from passgate.tasks.find import load_agents
    from passgate.tasks.formats.agents_file import AGENTS_FILE
    from passgate.tasks.formats.prices_file import PRICES_FILE
    from passgate.tasks.load import load_policy, load_price_table, policy_or_default, validate_paths

    for path in paths:
        if not path.exists():
            raise UsageError(f"no file or folder {path}")
    readers = {Path(gates).name: load_policy, AGENTS_FILE: load_agents, PRICES_FILE: load_price_table}
    settings = [path for path in paths if path.name in readers]
    problems = [problem for file in settings for problem in _problems(readers[file.name], file)]
    task_paths = [path for path in paths if path not in settings]
    policy_is_broken = any(path.name == Path(gates).name for path in settings) and problems
    tasks, of_tasks = ((), []) if policy_is_broken else validate_paths(task_paths, policy_or_default(Path(gates)))
    if problems or of_tasks:
        raise InputError([*problems, *of_tasks])
    if task_paths and not tasks:
        raise UsageError(f"no task files in {', '.join(map(str, task_paths))}: tasks are *.yaml files")
    files = len(tasks) + len(settings)
    say(f"{files} file{'s' if files != 1 else ''} checked, no problems")
    return 0


def _problems(read: "Callable[[Path], object]", file: Path) -> "tuple[Problem, ...]":
    from passgate.tasks.errors import InputError

    try:
        read(file)
    except InputError as error:
        return error.problems
    return ()
