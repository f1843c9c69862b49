"""`passgate init`: a gate in the user's own repository."""

from importlib.resources import as_file, files
from pathlib import Path
from typing import Annotated

import typer

_GATES = Path("gates.yaml")
_WORKFLOW = Path(".github", "workflows", "passgate.yaml")


def init(
    folder: Annotated[Path, typer.Argument(help="The repository.")] = Path(),
) -> int:
    """Write suites/ with a first task each, gates.yaml and a CI workflow; files that are there are kept."""
    from passgate.flows.cli.terminal import say
    from passgate.tasks.errors import StorageError

    with (
        as_file(files("passgate").joinpath("flows", "cli", "scaffold")) as scaffold,
        as_file(files("passgate").joinpath("gates.yaml")) as gates,
    ):
        suites = scaffold / "suites"
        wanted = {path.relative_to(scaffold): path for path in sorted(suites.rglob("*")) if path.is_file()}
        wanted |= {_GATES: gates, _WORKFLOW: scaffold / "workflow.yaml"}
        try:
            written = [name for name, source in wanted.items() if _write(folder / name, source)]
        except OSError as error:
            raise StorageError(f"cannot write into {folder}: {error}") from error
    for name in wanted:
        say(f"{'wrote' if name in written else 'kept '} {folder / name}")
    say("\nNext: passgate run ci_merge   # proves the graders with the reference solutions")
    return 0


def _write(target: Path, source: Path) -> bool:
    if target.exists():
        return False
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(source.read_bytes())
    return True
