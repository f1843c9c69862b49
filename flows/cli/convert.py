"""`passgate convert`: write eval files as task files, or one eval file as YAML or JSONL."""

import os
from pathlib import Path
from typing import Annotated

import typer

from passgate.flows.cli import options

DIALECTS = ("four-suite", "eval", "jsonl")


def convert(
    paths: options.TaskFilesArgument,
    to: Annotated[
        str,
        typer.Option(
            metavar="DIALECT",
            help="four-suite: one task file per test. The same eval file as eval: YAML; jsonl: one test per line.",
        ),
    ],
    out: Annotated[Path, typer.Option(metavar="PATH", help="four-suite: the suites folder. eval, jsonl: the file.")],
    gates: options.GatesOption = "gates.yaml",
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Omit what a task file cannot express; list it on standard error.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")] = False,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Write eval files in another format. Then read the new files and check that they contain the same tests."""
    from passgate.flows.cli.output import answer
    from passgate.flows.cli.task_files import read_tasks
    from passgate.tasks.commands.convert import Destination, TargetFormat
    from passgate.tasks.commands.convert import convert as write
    from passgate.tasks.errors import UsageError
    from passgate.tasks.formats.loading import policy_or_default
    from passgate.tasks.reports.figures import count
    from passgate.tasks.reports.messages import write_line

    if to not in DIALECTS:
        raise UsageError(f"--to {to}: expected one of {', '.join(DIALECTS)}")
    policy = policy_or_default(Path(gates))
    read_tasks(paths, policy)  # for its remarks: `write` reads the files itself
    destination = Destination(TargetFormat(to), out, policy, os.environ, lossy=lossy, overwrite=force)
    converted = write(paths, destination)
    left_out = (f"omitted: {loss}" for loss in converted.left_out)
    warnings = (f"warning: {problem}" for problem in converted.not_comparable)
    for line in (*converted.renamed, *left_out, *warnings):
        write_line(line)
    answer(
        lambda: f"{count(converted.tasks, 'task')} written to {count(len(converted.files), 'file')}: {out}",
        lambda: converted,
        as_json=as_json,
        quiet=quiet,
    )
    return 0
