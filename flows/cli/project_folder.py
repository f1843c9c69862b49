"""Run a command in the project's folder when it is started in a folder below, as git's commands do."""

import inspect
import os
from collections.abc import Callable
from contextlib import chdir
from functools import wraps
from pathlib import Path
from typing import Any, Final, ParamSpec

from typer.models import ArgumentInfo, OptionInfo

GATES: Final = "gates.yaml"
_SUITES: Final = "suites"
_PATHS: Final = frozenset({"DIR", "FILE", "PATH", "FILE.json", "FILE.svg", "KEY.pem", "PUBLIC.pem", "URL"})
"""The metavars of parameters that are paths."""
_PERHAPS_PATHS: Final = frozenset({"RUN", "[RUN]", "TASK", "ID"})
"""The metavars of parameters that may be paths."""
P = ParamSpec("P")


def in_project(command: Callable[P, int]) -> Callable[P, int]:
    """Make a command run in the project's folder. Convert paths that are relative to the current folder."""
    parameters = inspect.signature(command).parameters

    @wraps(command)
    def run(*arguments: P.args, **options: P.kwargs) -> int:
        folder = _find_project()
        if folder is None:
            return command(*arguments, **options)
        below = Path(os.path.relpath(Path.cwd(), folder))
        converted: dict[str, Any] = {
            name: value if value == parameters[name].default else _convert_path(value, _info(parameters[name]), below)
            for name, value in options.items()
        }
        with chdir(folder):
            return command(*arguments, **converted)

    return run


def _find_project() -> Path | None:
    """Return the nearest folder above with a gates file or suites; `None` if the working folder has them."""
    try:
        here = Path.cwd()
        for folder in (here, *here.parents):
            if (folder / GATES).is_file() or (folder / _SUITES).is_dir():
                return None if folder == here else folder
            if (folder / ".git").exists():
                return None
    except OSError:
        pass  # the working folder is gone, or nobody may look
    return None


def _info(parameter: inspect.Parameter) -> ArgumentInfo | OptionInfo | None:
    metadata = getattr(parameter.annotation, "__metadata__", ())
    return next((one for one in metadata if isinstance(one, ArgumentInfo | OptionInfo)), None)


def _convert_path(value: Any, info: ArgumentInfo | OptionInfo | None, below: Path) -> Any:
    """Convert a value that is a path relative to the folder `below` to a path relative to the project's folder."""
    if info is None or not info.metavar or (info.envvar and value == os.environ.get(str(info.envvar))):
        return value
    if isinstance(value, list):
        return [_convert_path(one, info, below) for one in value]
    if not isinstance(value, str | Path) or str(value) == "-" or "://" in str(value):
        return value
    path = os.path.normpath(below / value)
    named = info.metavar in _PATHS or (info.metavar in _PERHAPS_PATHS and os.path.lexists(value))
    return type(value)(path) if named else value
