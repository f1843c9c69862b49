"""What kind of file a file is, told from its name and from as little of it as will do."""

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Literal

import yaml

from passgate.tasks.formats.discover import YAML_SUFFIXES
from passgate.tasks.formats.document import YAML_LOADER, UnreadableError, read_source
from passgate.tasks.formats.evals.read.case_folders import CASE_FILES
from passgate.tasks.formats.evals.read.lines import LINES_SUFFIX
from passgate.tasks.formats.evals.read.top_level import TESTS_KEYS

Kind = Literal["task", "eval", "cases"]
_EVAL_SUFFIXES = (".eval.yaml", ".eval.yml", ".eval.json")
_EVAL_NAMES = frozenset({"eval.yaml", "eval.yml"})
_TASK_KEY = "task_id"
_CASE_KEYS = frozenset(
    (
        *("input", "input_messages", "input_files", "vars", "turns", "criteria", "expected_outcome", "rubrics"),
        *("expected_output", "expected_messages", "assert", "assertions", "evaluators"),
    )
)
"""A mapping with an `id` and one of these is a test."""
_BESIDE_PROMPTS = frozenset({"providers", "targets", "default_test", "evaluate_options", "scenarios"})
_HEAD_BYTES = 1024 * 1024
_HEAD_LINES = 20


def kind_of(file: Path) -> Kind | None:
    """What a file is: a task of passgate's own format, an eval file, or tests for an eval file to take in.

    `None` for everything else, results of evals among it. What its content does not tell its name does, so that an
    eval file with a mistake in it is still one.
    """
    if file.suffix == LINES_SUFFIX:
        return "cases" if any(_is_case(keys) for keys in _line_keys(file)) else None
    said = _kind_of_yaml(file) if file.suffix in YAML_SUFFIXES else None
    return said or ("eval" if _has_eval_name(file) else None)


def is_eval(file: Path) -> bool:
    """Whether a file is read as one with tests, and not as a task of passgate's own format."""
    kind = kind_of(file) if file.is_file() else None
    return kind in {"eval", "cases"} or (kind is None and file.suffix not in YAML_SUFFIXES)


def has_list_of_tests(file: Path) -> bool:
    """Whether a YAML file is a mapping with tests under any of their names."""
    first_depth, keys = _head(file)
    return first_depth == 1 and any(key in keys for key in TESTS_KEYS)


def _has_eval_name(file: Path) -> bool:
    name = file.name.lower()
    is_data_set = name.startswith("dataset") and file.suffix in YAML_SUFFIXES
    return name in _EVAL_NAMES or name.endswith(_EVAL_SUFFIXES) or is_data_set


def _kind_of_yaml(file: Path) -> Kind | None:
    depth, keys = _head(file)
    if depth == 1 and _TASK_KEY in keys:
        return "task"
    if depth == 1 and (keys & {*TESTS_KEYS} or ("prompts" in keys and keys & _BESIDE_PROMPTS)):
        return "eval"
    return "cases" if _is_case(keys) or (file.name in CASE_FILES and keys & _CASE_KEYS) else None


def _is_case(keys: set[str]) -> bool:
    return "id" in keys and bool(keys & _CASE_KEYS)


def _head(file: Path) -> tuple[int, set[str]]:
    """The keys of a YAML file's mapping, which is at depth 1, or of the first mapping in its list, at depth 2; up to
    where they tell what the file is or something is wrong. Depth 0 where there is none.
    """
    depth, keys = 0, set[str]()
    try:
        for depth, key in _keys(yaml.parse(read_source(file), Loader=YAML_LOADER)):
            keys.add(key)
            if depth == 1 and key in {_TASK_KEY, *TESTS_KEYS}:
                break
    except (UnreadableError, yaml.YAMLError):
        pass
    return depth, keys


def _keys(events: Iterator[yaml.Event]) -> Iterator[tuple[int, str]]:
    depth, first, is_key = 0, 0, True
    for event in events:
        if first and depth == first and not isinstance(event, yaml.CollectionEndEvent):
            if is_key and isinstance(event, yaml.ScalarEvent):
                yield first, str(event.value)
            is_key = not is_key
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
            if isinstance(event, yaml.MappingStartEvent) and not first and depth <= 2:
                first = depth
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
            if depth < first:
                return


def _line_keys(file: Path) -> Iterator[set[str]]:
    """The keys of the first lines of a JSONL file that are mappings."""
    try:
        with file.open("rb") as stream:
            lines = stream.read(_HEAD_BYTES).splitlines()
    except OSError:
        return
    for line in islice(lines, _HEAD_LINES):
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            yield set(value)
