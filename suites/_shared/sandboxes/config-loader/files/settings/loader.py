"""Reads configuration files."""

from collections.abc import Mapping
from pathlib import Path

PREFIX = "APP_"

Value = str | int | bool


class SettingsError(ValueError):
    """A configuration that cannot be used; the text names the file and the line."""


def load(
    path: str | Path,
    environment: Mapping[str, str] | None = None,
    _open: tuple[Path, ...] = (),
) -> dict[str, Value]:
    """Return the settings of a file, with those of the environment put over them."""
    path = Path(path)
    if path.resolve() in _open:
        raise SettingsError(f"{path}: includes itself")
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise SettingsError(f"{path}: no such file") from None
    values: dict[str, Value] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("include "):
            name = line[len("include ") :].strip()
            included = load(path.parent / name, None, (*_open, path.resolve()))
            for key, value in included.items():
                if key not in values:
                    values[key] = value
            continue
        if "=" not in line:
            raise SettingsError(f"{path}:{number}: expected `key = value`")
        key, _, raw = line.partition("=")
        key = key.strip().lower()
        raw = raw.strip()
        if not key:
            raise SettingsError(f"{path}:{number}: the key is missing")
        if len(raw) >= 2 and raw[0] == raw[-1] and raw[0] in "'\"":
            values[key] = raw[1:-1]
        elif raw.lower() in ("yes", "true", "on"):
            values[key] = True
        elif raw.lower() in ("no", "false", "off"):
            values[key] = False
        elif raw.lstrip("-").isdigit():
            try:
                values[key] = int(raw)
            except ValueError:
                raise SettingsError(f"{path}:{number}: {raw} is no number") from None
        else:
            values[key] = raw
    if environment is not None:
        for name, raw in environment.items():
            if not name.startswith(PREFIX):
                continue
            key = name[len(PREFIX) :].lower().replace("_", ".")
            if key not in values:
                continue
            old = values[key]
            if isinstance(old, bool):
                if raw.lower() in ("yes", "true", "on", "1"):
                    values[key] = True
                elif raw.lower() in ("no", "false", "off", "0"):
                    values[key] = False
                else:
                    raise SettingsError(f"{name}: expected yes or no")
            elif isinstance(old, int):
                try:
                    values[key] = int(raw)
                except ValueError:
                    raise SettingsError(f"{name}: {raw} is no number") from None
            else:
                values[key] = raw
    return values
