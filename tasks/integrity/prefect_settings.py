"""The settings that Prefect reads from the checkout: a logging configuration among them names code that it calls."""

import io
import tomllib
from collections.abc import Callable, Mapping
from typing import Any

from dotenv import dotenv_values

from passgate.tasks.integrity.git import Checkout

_PREFIX = "PREFECT_"


def edited_prefect_settings(checkout: Checkout, commit: str) -> tuple[str, ...]:
    """The files of the working folder that git tracks and whose settings of Prefect are not those of a commit."""
    return tuple(name for name, settings in _FILES.items() if _is_edited(checkout, commit, name, settings))


def _is_edited(checkout: Checkout, commit: str, name: str, settings: Callable[[bytes], Any]) -> bool:
    file = checkout.folder.resolve() / name
    path = file.relative_to(checkout.top or file.parent).as_posix()
    # A file that git does not have is the machine's own.
    if not checkout.is_tracked(path):
        return False
    before = checkout.objects.file(commit, path)
    now = file.read_bytes() if file.is_file() else b""
    return bool(_read(settings, before or b"") != _read(settings, now))


def _read(settings: Callable[[bytes], Any], content: bytes) -> Any:
    """The settings of a file, or its bytes where they cannot be read."""
    try:
        return settings(content)
    except ValueError:
        return content


def _of_environment_file(content: bytes) -> Mapping[str, str | None]:
    values = dotenv_values(stream=io.StringIO(content.decode("utf-8")), interpolate=False)
    return {name: value for name, value in values.items() if name.upper().startswith(_PREFIX)}


def _of_own_file(content: bytes) -> Mapping[str, Any]:
    return tomllib.loads(content.decode("utf-8"))


def _of_project_file(content: bytes) -> Any:
    tools = _of_own_file(content).get("tool")
    return tools.get("prefect", {}) if isinstance(tools, dict) else {}


_FILES: Mapping[str, Callable[[bytes], Any]] = {
    ".env": _of_environment_file,
    "prefect.toml": _of_own_file,
    "pyproject.toml": _of_project_file,
}
