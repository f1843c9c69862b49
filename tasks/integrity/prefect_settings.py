"""Compare the Prefect settings of a checkout: a logging configuration can name code that Prefect calls."""

import io
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from dotenv import dotenv_values

from passgate.tasks.integrity.checkout import Checkout

_PREFIX = "PREFECT_"


def edited_prefect_settings(checkout: Checkout, commit: str) -> tuple[str, ...]:
    """Return the tracked files of the working folder whose Prefect settings differ from those of a commit."""
    return tuple(name for name, settings in _FILES.items() if _is_edited(checkout, commit, name, settings))


def _is_edited(checkout: Checkout, commit: str, name: str, settings: Callable[[bytes], Any]) -> bool:
    file = checkout.folder.resolve() / name
    path = file.relative_to(checkout.top or file.parent).as_posix()
    # An untracked file belongs to the machine, not to the change.
    if not checkout.is_tracked(path):
        return False
    before = checkout.objects.file(commit, path)
    now = file.read_bytes() if file.is_file() else b""
    return bool(_read(settings, before or b"") != _read(settings, now))


def _read(settings: Callable[[bytes], Any], content: bytes) -> Any:
    """Return the settings of a file, or its bytes if they cannot be parsed."""
    try:
        return settings(content)
    except ValueError:
        return content


def _environment_file_settings(content: bytes) -> Mapping[str, str | None]:
    values = dotenv_values(stream=io.StringIO(content.decode("utf-8")), interpolate=False)
    return {name: value for name, value in values.items() if name.upper().startswith(_PREFIX)}


def _toml_settings(content: bytes) -> Mapping[str, Any]:
    return tomllib.loads(content.decode("utf-8"))


def _project_file_settings(content: bytes) -> Any:
    tools = _toml_settings(content).get("tool")
    return tools.get("prefect", {}) if isinstance(tools, dict) else {}


_FILES: Mapping[str, Callable[[bytes], Any]] = {
    ".env": _environment_file_settings,
    "prefect.toml": _toml_settings,
    "pyproject.toml": _project_file_settings,
}
