"""`passgate show`: print tasks the way passgate runs them."""

from pathlib import Path
from typing import Annotated

import typer

from passgate.flows.cli.options import GatesOption, named_path


def show(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Task files, eval files, folders that contain them.",
            parser=named_path,
            show_default=False,
        ),
    ],
    gates: GatesOption = "gates.yaml",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON list with every field, not YAML without defaults.")
    ] = False,
) -> int:
    """Print the tasks of every format in one form, with names resolved and the defaults of the suite."""
    from passgate.flows.cli.remarks import remark
    from passgate.flows.cli.terminal import say
    from passgate.tasks.errors import InputError, UsageError
    from passgate.tasks.formats.loading import load_paths, policy_or_default
    from passgate.tasks.reports.tasks import tasks_as_json, tasks_as_yaml

    for path in paths:
        if not path.exists():
            raise UsageError(f"no file or folder {path}")
    loaded = load_paths(paths, policy_or_default(Path(gates)))
    remark(loaded)
    if loaded.problems:
        raise InputError(loaded.problems)
    say(tasks_as_json(loaded.tasks) if as_json else tasks_as_yaml(loaded.tasks))
    return 0
