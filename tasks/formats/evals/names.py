"""The names of tests among all tasks of a suites folder."""

from functools import cache
from pathlib import Path

from passgate.tasks.formats.discover import SUITES
from passgate.tasks.formats.evals.paths import Ground

_SUFFIXES = (".yaml", ".yml", ".jsonl", ".json", ".csv")


def full_id(test_id: str, file: Path, ground: Ground, label: str | None = None) -> str:
    """The id of a test with its file before it: that file's path in the suites folder without the folder of the suite
    and without suffixes. EVAL.yaml goes by the name of its folder.
    """
    return f"{_file_name(file, ground)}{test_id}" + (f"#{label}" if label is not None else "")


@cache
def _file_name(file: Path, ground: Ground) -> str:
    parts = Path(ground.relative(file)).parts
    folders = [part for part in parts[:-1] if part != ".."]
    if folders and folders[0] in SUITES:
        folders = folders[1:]
    stem = _stem(parts[-1])
    return "".join(f"{part}/" for part in (*folders, *([stem] if stem else [])))


def _stem(name: str) -> str:
    """A file's name without suffixes; empty for EVAL.yaml."""
    suffix = next((suffix for suffix in _SUFFIXES if name.lower().endswith(suffix)), "")
    stem = name[: len(name) - len(suffix)]
    if stem.lower() == "eval":
        return ""
    return stem[: -len(".eval")] if stem.lower().endswith(".eval") else stem
