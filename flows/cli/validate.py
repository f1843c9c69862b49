"""`passgate validate`: list every problem of every file."""

from dataclasses import asdict
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
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Check files and list every problem as file:line:column. Run nothing."""
    from passgate.flows.cli.output import answer
    from passgate.flows.cli.task_files import remark
    from passgate.tasks.commands.validate import validate as validate_files
    from passgate.tasks.errors import InputError
    from passgate.tasks.reports.figures import count

    try:
        found = validate_files(paths, Path(gates), remark)
    except InputError as error:
        if not as_json:
            raise
        problems = [asdict(problem) for problem in error.problems]
        answer(str, lambda: {"problems": problems}, as_json=as_json, quiet=quiet)
        return error.exit_code
    tasks = f", {count(len(found.tasks), 'task')}" if found.tasks else ""
    answer(
        lambda: f"{count(found.files, 'file')}{tasks} checked, no problems",
        lambda: {"problems": [], "files": found.files, "tasks": [task.name for task in found.tasks]},
        as_json=as_json,
        quiet=quiet,
    )
    return 0
