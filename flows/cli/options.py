"""Options that several commands have."""

from typing import Annotated

import typer

AgentOption = Annotated[
    str,
    typer.Option(
        "--agent",
        metavar="SPEC",
        help="oracle, oracle:COUNTEREXAMPLE, nop, 'cli:COMMAND' or python:MODULE:FUNCTION.",
    ),
]
SuitesOption = Annotated[str, typer.Option("--suites", metavar="DIR", help="The folder of the suites.")]
GatesOption = Annotated[str, typer.Option("--gates", metavar="FILE", help="The gates' policies.")]
HistoryOption = Annotated[
    str | None,
    typer.Option("--history", metavar="URL", help="Folder or URL of the history; the gates file's by default."),
]
