"""`passgate show`: files as passgate understands them."""

from pathlib import Path
from typing import Annotated

import typer

from passgate.flows.cli.options import GatesOption, named_path


def show(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Task files, eval files, folders of them.",
            parser=named_path,
            show_default=False,
        ),
    ],
    gates: GatesOption = "gates.yaml",
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON list with every field, instead of YAML without defaults.")
    ] = False,
) -> int:
    """Print the tasks of files as they are run: every dialect in one form, names resolved, defaults of the suite in."""
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
