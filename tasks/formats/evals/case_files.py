"""Tests that are not items of a YAML list: lines of JSONL, rows of CSV, folders with one test each."""

import csv
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from passgate.tasks.formats.evals.dialects import read_root
from passgate.tasks.formats.evals.documents import FILE_SCHEME, Documents
from passgate.tasks.formats.evals.node import JsonError, Node, TextPlaces, parse_json
from passgate.tasks.formats.evals.raw import EvalRoot
from passgate.tasks.formats.folder import CASE_FILES, LINES_SUFFIX, SIDECARS, TESTS_KEYS, has_tests, sidecar_names
from passgate.tasks.model.json_values import strictly_equal

CSV_SUFFIX = ".csv"
MOST_BROKEN_LINES = 1000  # a file with more of them is of another kind, and a longer list of problems helps nobody
# Keys of a sidecar that change nothing about its tests.
_TELLS_NOTHING = frozenset({"$schema", "name", "description", "version", "author", "license", "requires"})
_CSV_LISTS = frozenset({"contains-any", "contains-all", "icontains-any", "icontains-all"})
_CSV_TYPES = _CSV_LISTS | {
    "contains", "icontains", "starts-with", "ends-with", "regex", "is-json", "equals", "latency", "cost", "llm-rubric",
}  # fmt: skip
_SHORT_GRADER = re.compile(
    r"(?P<negated>not-)?(?P<type>[a-z][a-z-]*)(?:\((?P<limit>\d+(?:\.\d+)?)\))?(?::(?P<value>.*))?", re.DOTALL
)
_PROGRAMS = ("javascript:", "fn:", "eval:", "python:", "file://")
_VARIABLES = "vars."
_CONFIG = "__config:"
_CONFIG_COLUMN = re.compile(r"(__expected\d*):threshold")
_NO_CONFIG = f"expected {_CONFIG}COLUMN:threshold, where COLUMN is one of the row's __expected columns"
_OUTPUT_COLUMNS = ("__provider_output", "__providerOutput")
_NO_OUTPUTS = "an agent gives the answers: play recorded ones with `--agent replay:FOLDER`, and leave this column out"
_UNKNOWN_COLUMN = (
    "a column that passgate does not read; known: vars.NAME, __expected, __expected1 and so on, __description, "
    f"__metadata:NAME, __metric, __threshold, {_CONFIG}COLUMN:threshold, __prefix, __suffix"
)


def read_lines(file: Path, documents: Documents, *, as_written: bool = False) -> Iterator[Node]:
    """Yield the value of every line that is not blank, with its variables filled in unless it is wanted as written.

    A line that is not JSON is a problem; nothing is read behind many of them.
    """
    problems, name, broken = documents.complaints.problems, documents.shown(file), 0
    # Not splitlines(): U+2028 and its like may stand in a JSON text, and only a line feed ends a line of JSONL.
    for number, line in enumerate((documents.text(file) or "").split("\n"), start=1):
        if not line or line.isspace():
            continue
        places = TextPlaces(name, line, number)
        try:
            node = Node(parse_json(line), places, file.parent)
        except JsonError as error:
            problems.append(places.problem_at(error.offset, str(error)))
            broken += 1
            if broken == MOST_BROKEN_LINES:
                documents.refuse_file(
                    file, f"{broken} lines are not JSON: passgate reads no lines after this one", number
                )
                return
        else:
            # Most lines have no placeholder, and a walk through the value costs more than a look at the text.
            is_plain = as_written or not documents.placeholder.search(line)
            yield node if is_plain else documents.interpolated(node)


def find_sidecar(file: Path, documents: Documents) -> EvalRoot | None:
    """Return what a JSONL file's sidecar, `<base>.yaml` or `<base>.eval.yaml`, says of all its tests. A file with tests
    of its own is no sidecar. Two sidecars must say the same.
    """
    documents.ground.looked_at.update(sidecar_names(file))
    read = [read_root(candidate, documents) for candidate in sidecar_names(file) if candidate.is_file()]
    sidecars = [root for root in read if root is not None and _is_sidecar(root.node, file)]
    for other, _ in sidecars[1:]:
        first = sidecars[0].node
        if not strictly_equal(first.value, other.value):
            message = f"{file.name} has two sidecars that differ: {first.places.file} and {other.places.file}"
            documents.refuse(other, message)
    return sidecars[0] if sidecars else None


def lines_beside(sidecar: Path) -> Path | None:
    """Return the JSONL file that an eval file without tests is the sidecar of."""
    for suffix in reversed(SIDECARS):  # the longer ones first: `.yaml` is the end of `.eval.yaml` too
        if sidecar.name.endswith(suffix):
            lines = sidecar.with_name(sidecar.name.removesuffix(suffix) + LINES_SUFFIX)
            return lines if lines.is_file() else None
    return None


def says_something(sidecar: Node) -> bool:
    """Return whether a sidecar's tests are others without it."""
    return any(key not in _TELLS_NOTHING and key not in TESTS_KEYS for key in sidecar.value)


def _is_sidecar(root: Node, lines: Path) -> bool:
    if not isinstance(root.value, dict) or "task_id" in root.value or "id" in root.value:
        return False
    # A file whose tests are in the JSONL file is its sidecar, one with other tests only has a name like it.
    named = [root.value[key] for key in TESTS_KEYS if isinstance(root.value.get(key), str)]
    leads_to = {os.path.normpath(root.folder / name.removeprefix(FILE_SCHEME)) for name in named}
    return not has_tests(root.value) or os.path.normpath(lines) in leads_to


def read_table(file: Path, documents: Documents) -> Iterator[Node]:
    """Yield the test of every row, as a mapping with `id`, `vars` and `assert`."""
    name, line = documents.shown(file), 1
    reader = csv.DictReader(io.StringIO(documents.text(file) or "", newline=""), restkey="", restval="", strict=True)
    try:
        line += reader.line_num if reader.fieldnames else 0
        for number, row in enumerate(reader, start=1):
            node = Node(row, TextPlaces(name, line=line), file.parent)
            yield documents.interpolated(node.with_value(_row_test(node, number, documents)))
            line = reader.line_num + 1  # a quoted cell may hold line feeds, so a row may take several lines
    except csv.Error as error:
        documents.refuse_file(file, f"not a CSV table: {error}", line)


def _row_test(row: Node, number: int, documents: Documents) -> dict[str, Any]:
    test: dict[str, Any] = {"id": f"row-{number}", "vars": {}, "assert": [], "metadata": {}}
    graders: dict[str, list[dict[str, Any]]] = {}  # by their columns
    for column, cell in row.value.items():
        if column == "" and cell:
            documents.refuse(row, "a cell without a column")
        elif column.strip().startswith("__expected"):
            expected = row.child(column).with_value(cell.strip())
            graders[column.strip()] = _graders(expected, documents) if cell.strip() else []
        elif column != "":
            _add(test, row.child(column), column.strip(), cell, documents)
    for column, cell in row.value.items():
        if column.strip().startswith(_CONFIG) and cell.strip():
            _configure(graders, row.child(column), column.strip().removeprefix(_CONFIG), documents)
    metric, variables = row.value.get("__metric", "").strip(), test["vars"]
    if "description" in test and not any(graders.values()):
        test["criteria"] = test["description"]
    test["assert"] = [grader for listed in graders.values() for grader in listed]
    for number, grader in enumerate(test["assert"] if metric else (), start=1):
        grader["name"] = metric if len(test["assert"]) == 1 else f"{metric}-{number}"
    if "input" in variables:
        variables["input"] = f"{row.value.get('__prefix', '')}{variables['input']}{row.value.get('__suffix', '')}"
    return {key: value for key, value in test.items() if value not in ({}, [])}


def _configure(graders: dict[str, list[dict[str, Any]]], node: Node, name: str, documents: Documents) -> None:
    """Give the grader of another column the threshold of this cell."""
    of_column = _CONFIG_COLUMN.fullmatch(name)
    wanted = of_column[1] if of_column is not None else ""
    # The first of several columns may be called `__expected` or `__expected1`.
    names = (wanted, {"__expected": "__expected1", "__expected1": "__expected"}.get(wanted))
    found = next((graders[column] for column in names if column in graders), None)
    if found is None:
        documents.refuse(node, _NO_CONFIG)
        return
    for grader in found:
        grader |= {"min_score": threshold} if (threshold := _number(node, documents)) is not None else {}


def _number(node: Node, documents: Documents) -> float | None:
    try:
        return float(node.value)
    except ValueError:
        documents.refuse(node, f"{node.value[:60]!r} is not a number")
        return None


def _add(test: dict[str, Any], node: Node, column: str, cell: str, documents: Documents) -> None:
    if column == "id":
        test["id"] = cell.strip() or test["id"]
    elif column == "__description":
        test["description"] = cell
    elif column == "__threshold":
        number = _number(node, documents) if cell.strip() else None
        test |= {} if number is None else {"threshold": number}
    elif column.startswith("__metadata:"):
        name = column.removeprefix("__metadata:")
        listed = [item.strip().replace("\\,", ",") for item in re.split(r"(?<!\\),", cell)]
        value = {name.removesuffix("[]"): listed} if name.endswith("[]") else {name: cell}
        test["metadata"] |= value if cell.strip() else {}
    elif not column.startswith("__"):
        _add_variable(test["vars"], node, column.removeprefix(_VARIABLES), documents)
    elif column in _OUTPUT_COLUMNS:
        documents.refuse(node, _NO_OUTPUTS)
    elif column not in {"__metric", "__prefix", "__suffix"} and not column.startswith(_CONFIG):
        documents.refuse(node, _UNKNOWN_COLUMN)


def _add_variable(variables: dict[str, Any], node: Node, name: str, documents: Documents) -> None:
    """Set a variable; `vars.order.id` is one of a mapping."""
    is_nested = str(node.path[-1]).strip().startswith(_VARIABLES)
    *outer, last = (part.strip() for part in name.split(".")) if is_nested else (name,)
    for part in outer:
        variables = variables.setdefault(part, {})
        if not isinstance(variables, dict):
            break
    if not isinstance(variables, dict) or last in variables or not all((*outer, last)):
        documents.refuse(node, "this variable has a value from another column, or no name")
        return
    variables[last] = node.value


def _graders(expected: Node, documents: Documents) -> list[dict[str, Any]]:
    """Return the grader of an `__expected` cell: `type:value` or `type(limit):value`; any other text must be equal."""
    text = expected.value
    for prefix in ("llm-rubric:", "grade:"):
        if text.startswith(prefix):
            return [{"type": "llm-rubric", "value": text.removeprefix(prefix).strip()}]
    if text.startswith(_PROGRAMS):
        message = "a program in a table; write the test in a YAML file, with a `script` grader"
        documents.refuse(expected, message)
        return []
    short = _SHORT_GRADER.fullmatch(text)
    if short is None or (short["type"] not in _CSV_TYPES and short["limit"] is None and short["value"] is None):
        return [{"type": "equals", "value": text}]
    if short["type"] not in _CSV_TYPES:
        documents.refuse(expected, f"unknown grader {short['type']!r}; known: {', '.join(sorted(_CSV_TYPES))}")
        return []
    kind, value, limit = short["type"], short["value"], short["limit"]
    grader: dict[str, Any] = {"type": kind}
    if kind in _CSV_LISTS:
        grader["value"] = [item.strip() for item in (value or "").split(",")]
    elif value is not None:
        grader["value"] = value.strip()
    if limit is not None:
        grader[{"latency": "threshold", "cost": "budget"}.get(kind, "min_score")] = float(limit)
    return [grader | ({"negate": True} if short["negated"] else {})]


def case_files(folder: Path, at: Node, documents: Documents) -> list[Path]:
    """Return the case files of the folders in a folder, by name; a folder without one is a warning."""
    repository = documents.ground.repository.resolve()
    found: list[Path] = []
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        documents.refuse(at, f"the folder cannot be read: {error.strerror}")
        entries = []
    for entry in entries:
        if entry.name.startswith(".") or entry.name == "node_modules" or not entry.is_dir():
            continue
        if not entry.resolve().is_relative_to(repository):
            documents.refuse(at, f"{entry.name!r} in it leaves the repository")
            continue
        candidates = [entry / name for name in CASE_FILES]
        documents.ground.looked_at.update(candidates)
        files = [file for file in candidates if file.is_file()]
        if not files:
            message = f"the folder {entry.name!r} has no {CASE_FILES[0]}: skipped"
            documents.warn(at, message)
        if len(files) > 1:
            documents.refuse(at, f"the folder {entry.name!r} has both {' and '.join(CASE_FILES)}")
        found += files[:1]
    if not found:
        remedy = "for files of tests write a pattern, as './cases/*.yaml'"
        documents.refuse(at, f"no folder of {at.value!r} has a {CASE_FILES[0]}; {remedy}")
    return found
