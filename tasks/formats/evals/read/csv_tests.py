"""Tests as a CSV table: a column for each variable, and columns with graders in short."""

import csv
import io
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from passgate.tasks.formats.evals.node import Node
from passgate.tasks.formats.evals.read.documents import Documents, LinePlaces

CSV_SUFFIX = ".csv"
_LISTS = frozenset({"contains-any", "contains-all", "icontains-any", "icontains-all"})
_TYPES = _LISTS | {
    "contains", "icontains", "starts-with", "ends-with", "regex", "is-json", "equals", "latency", "cost", "llm-rubric",
}  # fmt: skip
_RUBRICS = ("llm-rubric:", "grade:")
_SHORT = re.compile(
    r"(?P<negated>not-)?(?P<type>[a-z][a-z-]*)(?:\((?P<limit>\d+(?:\.\d+)?)\))?(?::(?P<value>.*))?", re.DOTALL
)
_PROGRAMS = ("javascript:", "fn:", "eval:", "python:", "file://")
_UNREADABLE = (
    "a column that passgate does not read; known: __expected, __expected1 and so on, __description, __metadata:NAME, "
    "__metric, __threshold, __prefix, __suffix"
)


def read_table(file: Path, documents: Documents) -> Iterator[Node]:
    """The test of every row, as a mapping with `id`, `vars` and `assert`."""
    name, line = documents.shown(file), 1
    reader = csv.DictReader(io.StringIO(documents.text(file) or "", newline=""), restkey="", restval="", strict=True)
    try:
        line += reader.line_num if reader.fieldnames else 0
        for number, row in enumerate(reader, start=1):
            node = Node(row, LinePlaces(name, line), file.parent)
            yield documents.interpolated(node.with_value(_test(node, number, documents)))
            line = reader.line_num + 1
    except csv.Error as error:
        documents.refuse(LinePlaces(name, line).problem((), f"not a CSV table: {error}"))


def _test(row: Node, number: int, documents: Documents) -> dict[str, Any]:
    test: dict[str, Any] = {"id": f"row-{number}", "vars": {}, "assert": [], "metadata": {}}
    for column, cell in row.value.items():
        if column == "":
            if cell:
                documents.refuse(row.problem("a cell without a column"))
        else:
            _add(test, row.child(column), column.strip(), cell, documents)
    _name(test["assert"], row.value.get("__metric", "").strip())
    _surround(test["vars"], row.value)
    return {key: value for key, value in test.items() if value not in ({}, [])}


def _add(test: dict[str, Any], node: Node, column: str, cell: str, documents: Documents) -> None:
    """Put one cell of a row where it belongs."""
    if column == "id":
        test["id"] = cell.strip() or test["id"]
    elif column.startswith("__expected"):
        if cell.strip():
            test["assert"] += _graders(node.with_value(cell.strip()), documents)
    elif column == "__description":
        test["description"] = cell
    elif column == "__threshold":
        test |= _threshold(node, cell, documents)
    elif column.startswith("__metadata:"):
        test["metadata"] |= _metadata(column.removeprefix("__metadata:"), cell)
    elif not column.startswith("__"):
        test["vars"][column] = cell
    elif column not in {"__metric", "__prefix", "__suffix"}:
        documents.refuse(node.problem(_UNREADABLE))


def _name(graders: list[dict[str, Any]], metric: str) -> None:
    """Call the graders of a row as its `__metric` does: several of them by their numbers too."""
    for number, grader in enumerate(graders if metric else (), start=1):
        grader["name"] = metric if len(graders) == 1 else f"{metric}-{number}"


def _surround(variables: dict[str, Any], row: Mapping[str, str]) -> None:
    if "input" in variables:
        variables["input"] = f"{row.get('__prefix', '')}{variables['input']}{row.get('__suffix', '')}"


def _metadata(name: str, cell: str) -> dict[str, Any]:
    if not cell.strip():
        return {}
    if name.endswith("[]"):
        return {name.removesuffix("[]"): [item.strip().replace("\\,", ",") for item in re.split(r"(?<!\\),", cell)]}
    return {name: cell}


def _threshold(node: Node, cell: str, documents: Documents) -> dict[str, Any]:
    if not cell.strip():
        return {}
    try:
        return {"threshold": float(cell)}
    except ValueError:
        documents.refuse(node.problem(f"{cell[:60]!r} is not a number"))
    return {}


def _graders(expected: Node, documents: Documents) -> list[dict[str, Any]]:
    """The grader of an `__expected` cell: `type:value` or `type(limit):value`; any other text must be equal."""
    text = expected.value
    for prefix in _RUBRICS:
        if text.startswith(prefix):
            return [{"type": "llm-rubric", "value": text.removeprefix(prefix).strip()}]
    if text.startswith(_PROGRAMS):
        documents.refuse(
            expected.problem("a program in a table; write the test in a YAML file, with a `script` grader")
        )
        return []
    short = _SHORT.fullmatch(text)
    if short is None or (short["type"] not in _TYPES and short["limit"] is None and short["value"] is None):
        return [{"type": "equals", "value": text}]
    if short["type"] not in _TYPES:
        documents.refuse(expected.problem(f"unknown grader {short['type']!r}; known: {', '.join(sorted(_TYPES))}"))
        return []
    return [_grader(short)]


def _grader(short: re.Match[str]) -> dict[str, Any]:
    kind, value, limit = short["type"], short["value"], short["limit"]
    grader: dict[str, Any] = {"type": kind}
    if kind in _LISTS:
        grader["value"] = [item.strip() for item in (value or "").split(",")]
    elif value is not None:
        grader["value"] = value.strip()
    if limit is not None:
        grader[{"latency": "threshold", "cost": "budget"}.get(kind, "min_score")] = float(limit)
    return grader | ({"negate": True} if short["negated"] else {})
