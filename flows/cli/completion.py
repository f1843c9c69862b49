"""What the shell completes: gates, tasks and runs, read from files cheaply. Whatever is wrong, nothing is completed."""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr
from itertools import islice
from pathlib import Path
from typing import Final

from passgate.tasks.errors import ExitCode
from passgate.tasks.model.names import GateName

ASKED: Final = "_PASSGATE_COMPLETE"
"""The environment variable by which a shell asks what could come next."""
_RUNS = Path(".passgate", "runs")
_SUITES = Path("suites")
_MOST_FILES, _MOST_BYTES = 2000, 20_000
_MOST_RUNS = 50
_TASK_ID = re.compile(rb"^task_id:[ \t]*[\"']?([\w./-]+)", re.MULTILINE)


def complete() -> int:
    """Answer a shell that asks what could come next, or show or install what makes it ask. Give the exit code.

    Never a traceback: it would appear in the middle of the user's line.
    """
    from passgate.flows.cli.app import app
    from passgate.tasks.reports.messages import warn

    asked = ASKED in os.environ
    try:
        with Path(os.devnull).open("w", encoding="utf-8") as nowhere, redirect_stderr(nowhere if asked else sys.stderr):
            app(prog_name="passgate")
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else 1
    except Exception as error:  # noqa: BLE001 - as above
        if not asked:
            warn(f"cannot set up the completion: {error}")
        return ExitCode.BAD_INPUT
    return ExitCode.PASS


def complete_gates(incomplete: str) -> list[str]:
    """Return the gates that begin with a text."""
    return [gate for gate in map(str, GateName) if gate.startswith(incomplete)]


def complete_runs(incomplete: str) -> list[str]:
    """`last`, and the newest runs of the working folder that begin so."""
    runs = [name for name in sorted(_names(_RUNS), reverse=True) if name.startswith(incomplete)]
    return [*(["last"] if "last".startswith(incomplete) else []), *runs[:_MOST_RUNS]]


def complete_tasks(incomplete: str) -> list[str]:
    """Return the tasks in `suites` whose `suite/task_id` begins with a text, from a plain search of their files."""
    return sorted(name for name in set(_tasks()) if name.startswith(incomplete))


def complete_schemas(incomplete: str) -> list[str]:
    """Return the published schemas that begin with a text."""
    from passgate.tasks.commands.schema import schema_names

    try:
        return [name for name in schema_names() if name.startswith(incomplete)]
    except OSError:
        return []


def _names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(folder) if entry.is_dir()]
    except OSError:
        return []


def _tasks() -> Iterator[str]:
    for suite in _names(_SUITES):
        if not suite.startswith(("_", ".")):
            for file in islice(sorted((_SUITES / suite).rglob("*.yaml")), _MOST_FILES):
                try:
                    with file.open("rb") as content:
                        found = _TASK_ID.search(content.read(_MOST_BYTES))
                except OSError:
                    continue
                if found is not None:
                    yield f"{suite}/{found[1].decode('utf-8', 'replace')}"
