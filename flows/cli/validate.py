"""`passgate validate`: list every problem of every file."""

from pathlib import Path
from typing import Annotated

import typer

from passgate.flows.cli import options


def validate(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="PATH",
            help="Task files, eval files, folders that contain them, "
            "gates.yaml, agents.yaml, prices.yaml, quarantine.yaml, baseline.yaml.",
            parser=options.named_path,
        ),
    ],
    gates: options.GatesOption = "gates.yaml",
) -> int:
    """Check files and list every problem as file:line:column. Run nothing."""
    from passgate.flows.cli.task_files import remark
    from passgate.flows.cli.terminal import say
    from passgate.tasks.commands.validate import validate as validate_files
    from passgate.tasks.reports.figures import count

    found = validate_files(paths, Path(gates), remark)
    tasks = f", {count(len(found.tasks), 'task')}" if found.tasks else ""
    say(f"{count(found.files, 'file')}{tasks} checked, no problems")
    return 0
