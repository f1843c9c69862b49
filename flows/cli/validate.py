"""`passgate validate`: every problem of every file, and nothing run."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from passgate.flows.cli.options import GatesOption

if TYPE_CHECKING:
    from passgate.tasks.errors import Problem
    from passgate.tasks.load import Loaded


def validate(
    paths: Annotated[
        list[Path],
        typer.Argument(
            help="Task files, eval files, folders of them, gates.yaml, agents.yaml, prices.yaml.", show_default=False
        ),
    ],
    gates: GatesOption = "gates.yaml",
) -> int:
    """Check files and run nothing: every problem in every file, as file:line:column."""
    from passgate.flows.cli.remarks import remark
    from passgate.flows.cli.terminal import say
    from passgate.tasks.errors import InputError, UsageError
    from passgate.tasks.find import load_agents
    from passgate.tasks.formats.agents_file import AGENTS_FILE
    from passgate.tasks.formats.prices_file import PRICES_FILE
    from passgate.tasks.load import Loaded, load_paths, load_policy, load_price_table, policy_or_default

    for path in paths:
        if not path.exists():
            raise UsageError(f"no file or folder {path}")
    readers: dict[str, Callable[[Path], object]] = {
        Path(gates).name: load_policy,
        AGENTS_FILE: load_agents,
        PRICES_FILE: load_price_table,
    }
    settings = [path for path in paths if path.name in readers]
    problems = [problem for file in settings for problem in _problems(readers[file.name], file)]
    task_paths = [path for path in paths if path not in settings]
    policy_is_broken = any(path.name == Path(gates).name for path in settings) and problems
    loaded = Loaded() if policy_is_broken else load_paths(task_paths, policy_or_default(Path(gates)))
    remark(loaded)
    if problems or loaded.problems:
        raise InputError([*problems, *loaded.problems])
    if task_paths and not loaded.tasks:
        raise UsageError(f"no task files in {', '.join(map(str, task_paths))}: neither tasks nor evals")
    say(_summary(loaded, len(settings)))
    return 0


def _problems(read: Callable[[Path], object], file: Path) -> "tuple[Problem, ...]":
    from passgate.tasks.errors import InputError

    try:
        read(file)
    except InputError as error:
        return error.problems
    return ()


def _summary(loaded: "Loaded", settings: int) -> str:
    """As in `12 files, 40 tasks checked, no problems; 3 cannot be run`."""
    counted = [_counted(loaded.files + settings, "file")]
    if loaded.tasks:
        counted.append(_counted(len(loaded.tasks), "task"))
    stuck = sum(bool(task.cannot_run) for task in loaded.tasks)
    return f"{', '.join(counted)} checked, no problems" + (f"; {stuck} cannot be run" if stuck else "")


def _counted(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
