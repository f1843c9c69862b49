"""Tests as the documents of files: one EVAL.yaml, or the lines and the sidecar of a JSONL file."""

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

import yaml

from passgate.tasks.formats.evals.read.case_files import CASE_FILES
from passgate.tasks.formats.evals.write.tests import Said, written_test
from passgate.tasks.model.json_values import strictly_equal

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST = 120
# Names of files that are no tasks.
_MEANT_OTHERWISE = frozenset({*(name.partition(".")[0] for name in CASE_FILES), "eval", "gates", "agents", "prices"})
_WIDTH = 2**31  # no line is broken: a text of one line stays in one
# What some version of YAML takes for a number or a truth value, of which PyYAML knows only its own.
_LOOKS_OTHERWISE = re.compile(
    r"[-+]?(0o?[0-7_]+|0x[0-9a-f_]+|0b[01_]+|(\.\d+|\d[\d_]*(\.\d*)?)(e[-+]?\d+)?|\.(inf|nan))|y|n|null|true|false",
    re.IGNORECASE,
)
_OTHER_BREAKS = re.compile("[\r\x85\u2028\u2029]")
_SHARED = ("suite", "execution", "run", "workspace", "environment")
_LONGEST_NAME = 64  # of a suite, in AgentEvals
_NO_NAME = "tests"


def file_names(ids: Iterable[str]) -> list[str]:
    """A name for each id, without a suffix, like it: safe in every file system, and of no two the same, case aside."""
    taken: set[str] = set()
    names = []
    for task_id in ids:
        # A name that begins with a dot or an underscore is not looked at.
        wanted = _UNSAFE.sub("-", task_id)[:_LONGEST].lstrip("._-").rstrip(".-") or "task"
        lower = wanted.lower()
        if lower in _MEANT_OTHERWISE or lower.endswith(".eval") or lower.startswith("dataset"):
            wanted = f"{wanted}-task"
        name, number = wanted, 2
        while name.lower() in taken:
            name, number = f"{wanted}-{number}", number + 1
        taken.add(name.lower())
        names.append(name)
    return names


def yaml_text(document: Any) -> str:
    """A document of JSON values as YAML, keys in their order. Reading it gives the same document."""
    return yaml.dump(
        document, Dumper=_BlockDumper, sort_keys=False, allow_unicode=True, width=_WIDTH, default_flow_style=False
    )


class _BlockDumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        """Items of lists are indented, as in the files that people write."""
        super().increase_indent(flow, False)


def _style(text: str) -> str | None:
    if _OTHER_BREAKS.search(text):  # only between double quotes they can be escaped
        return '"'
    if "\n" in text:
        return "|" if text.strip() else '"'
    return "'" if _LOOKS_OTHERWISE.fullmatch(text) else None


_BlockDumper.add_representer(
    str, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style=_style(text))
)


def eval_document(name: str, tasks: Sequence[Said]) -> dict[str, Any]:
    """An EVAL.yaml with the tests of tasks; what all of them say stands above them, once."""
    shared, tests = _apart(tasks)
    return {"name": suite_name(name), **shared, "tests": tests}


def eval_text(document: Said, schema: str | None) -> str:
    """The text of an EVAL.yaml. `schema` is the path or URL of its JSON Schema, for editors."""
    head = f"# yaml-language-server: $schema={schema}\n" if schema is not None else ""
    return head + yaml_text(document)


def lines_texts(name: str, tasks: Sequence[Said]) -> tuple[str, str]:
    """The text of a JSONL file, one test a line, and that of its sidecar."""
    shared, tests = _apart(tasks)
    lines = "".join(json.dumps(test, ensure_ascii=False, allow_nan=False) + "\n" for test in tests)
    return lines, yaml_text({"name": suite_name(name), **shared})


def suite_name(name: str) -> str:
    """A name as AgentEvals has them: 2 to 64 small letters, digits and hyphens, a letter first."""
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    plain = plain if plain[:1].isalpha() else f"{_NO_NAME}-{plain}".strip("-")
    plain = plain[:_LONGEST_NAME].strip("-")
    return plain if len(plain) > 1 else _NO_NAME


def _apart(tasks: Sequence[Said]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What all tests say, and the tests without it."""
    tests = [written_test(task) for task in tasks]
    shared: dict[str, Any] = {key: tests[0][key] for key in _SHARED if _is_shared(key, tests)}
    modes = {task.get("scoring", {}).get("compat") for task in tasks}
    compat = {"compat": mode} if len(modes) == 1 and (mode := modes.pop()) else {}
    apart = [{key: value for key, value in test.items() if key not in shared} for test in tests]
    suite = {"suite": shared.pop("suite")} if "suite" in shared else {}
    return {**suite, **compat, **shared}, apart


def _is_shared(key: str, tests: Sequence[Said]) -> bool:
    if key == "suite" and any("suite" in test.get("metadata", {}) for test in tests):
        return False  # a test's metadata go before what its file says
    first = tests[0].get(key)
    # One test alone says all itself, but for the suite, which files have at the top.
    said = first is not None and (len(tests) > 1 or key == "suite")
    return said and all(strictly_equal(test.get(key), first) for test in tests[1:])
