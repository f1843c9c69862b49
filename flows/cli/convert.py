"""`passgate convert`: write tasks of one format in another format."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from passgate.flows.cli.options import GatesOption, named_path

if TYPE_CHECKING:
    from passgate.tasks.commands.convert import Converted
    from passgate.tasks.model.policy import Policy

DIALECTS = ("four-suite", "eval", "jsonl")


def convert(
    paths: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...",
            help="Task files, eval files, folders that contain them.",
            parser=named_path,
            show_default=False,
        ),
    ],
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="DIALECT",
            help="four-suite: one YAML file per task; eval: one EVAL.yaml; jsonl: one test per line and a sidecar.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            "--out", metavar="PATH", help="four-suite: the suites folder. eval, jsonl: the file.", show_default=False
        ),
    ],
    gates: GatesOption = "gates.yaml",
    lossy: Annotated[
        bool, typer.Option("--lossy", help="Omit what the format cannot express; list it on standard error.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite files that exist.")] = False,
) -> int:
    """Write tasks in another format. Then read the new files and check that they contain the same tasks."""
    import os

    from passgate.flows.cli.terminal import say
    from passgate.tasks.commands.convert import Destination, Dialect
    from passgate.tasks.commands.convert import convert as write
    from passgate.tasks.errors import UsageError
    from passgate.tasks.formats.loading import policy_or_default
    from passgate.tasks.reports.figures import count

    if to not in DIALECTS:
        raise UsageError(f"--to {to}: expected one of {', '.join(DIALECTS)}")
    policy = policy_or_default(Path(gates))
    _refuse_problems(paths, policy)
    destination = Destination(Dialect(to), out, policy, os.environ, lossy=lossy, overwrite=force)
    converted = write(paths, destination)
    _tell(converted)
    say(f"{count(converted.tasks, 'task')} written to {count(len(converted.files), 'file')}: {out}")
    return 0


def _refuse_problems(paths: list[Path], policy: "Policy") -> None:
    """Raise `InputError` if files have problems, `UsageError` if files are missing."""
    from passgate.flows.cli.remarks import remark
    from passgate.tasks.errors import InputError, UsageError
    from passgate.tasks.formats.loading import load_paths

    for path in paths:
        if not path.exists():
            raise UsageError(f"no file or folder {path}")
    loaded = load_paths(paths, policy)
    remark(loaded)
    if loaded.problems:
        raise InputError(loaded.problems)


def _tell(converted: "Converted") -> None:
    from passgate.tasks.reports.escape import printable
    from passgate.tasks.reports.messages import LONGEST_MESSAGE

    left_out = [f"left out: {loss}" for loss in converted.left_out]
    warnings = [f"warning: {problem}" for problem in converted.not_comparable]
    lines = [*converted.renamed, *left_out, *warnings]
    for line in lines:
        sys.stderr.write(printable(line, LONGEST_MESSAGE) + "\n")
