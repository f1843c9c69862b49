"""`passgate validate`: every problem of every file, and nothing run."""

from pathlib import Path
from typing import Annotated

import typer

from passgate.flows.cli.options import GatesOption


def validate(
    paths: Annotated[list[Path], typer.Argument(help="Task files, folders of them, gates files.", show_default=False)],
    gates: GatesOption = "gates.yaml",
) -> int:
    """Check files and run nothing: every problem in every file, as file:line:column."""
    from passgate.flows.cli.terminal import say
    from passgate.tasks.errors import InputError, UsageError
    from passgate.tasks.load import load_policy, policy_or_default, validate_paths

    for path in paths:
        if not path.exists():
            raise UsageError(f"no file or folder {path}")
    gate_files = [path for path in paths if path.name == Path(gates).name]
    for file in gate_files:
        load_policy(file)
    task_paths = [path for path in paths if path not in gate_files]
    tasks, problems = validate_paths(task_paths, policy_or_default(Path(gates)))
    if problems:
        raise InputError(problems)
    if task_paths and not tasks:
        raise UsageError(f"no task files in {', '.join(map(str, task_paths))}: tasks are *.yaml files")
    files = len(tasks) + len(gate_files)
    say(f"{files} file{'s' if files != 1 else ''} checked, no problems")
    return 0
