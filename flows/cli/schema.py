"""`passgate schema`: print a published JSON Schema."""

from typing import Annotated

import typer

from passgate.flows.cli import options
from passgate.flows.cli.completion import complete_schemas


def schema(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="The schema: task, gates, verdict, ... Default: list them.",
            autocompletion=complete_schemas,
        ),
    ] = None,
    as_json: options.JsonOption = False,
    quiet: options.QuietOption = False,
) -> int:
    """Print the JSON Schema of a file that passgate reads or writes. Without NAME, list the schemas."""
    from passgate.flows.cli.output import answer
    from passgate.flows.cli.terminal import say
    from passgate.tasks.commands.schema import schema_text, schema_titles

    if name is not None:
        text = schema_text(name)
        if as_json or not quiet:
            say(text)
        return 0
    titles = schema_titles()
    width = max(map(len, titles))
    answer(
        lambda: "\n".join(f"{one:<{width}}  {title}".rstrip() for one, title in titles.items()),
        lambda: titles,
        as_json=as_json,
        quiet=quiet,
    )
    return 0
