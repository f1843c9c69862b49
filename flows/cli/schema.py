"""`passgate schema`: print the JSON Schema of a file that passgate reads or writes."""

from typing import Annotated

import typer


def schema(
    name: Annotated[str, typer.Argument(metavar="[NAME]", help="Which schema. Without it, the names.")] = "",
) -> int:
    """Print the JSON Schema of a kind of file, for editors and programs."""
    from passgate.flows.cli.terminal import say
    from passgate.tasks.errors import UsageError
    from passgate.tasks.formats.schemas import schema_text, schemas

    known = schemas()
    if name and name not in known:
        raise UsageError(f"no schema {name!r:.60}: expected one of {', '.join(sorted(known))}")
    say(schema_text(known[name]).rstrip("\n") if name else "\n".join(sorted(known)))
    return 0
