"""Tests as the documents of files: one EVAL.yaml, or the lines and the sidecar of a JSONL file."""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from passgate.tasks.formats.evals.write.tests import written_test
from passgate.tasks.formats.evals.write.yaml_text import yaml_text
from passgate.tasks.model.json_values import strictly_equal

Said = Mapping[str, Any]
"""A task as task files have it, its paths as the file writes them."""

_SHARED = ("suite", "execution", "run", "workspace", "environment")
_LONGEST_NAME = 64
_NO_NAME = "tests"


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
    keys = [key for key in _SHARED if _is_shared(key, tests)]
    modes = {task.get("scoring", {}).get("compat") for task in tasks}
    compat = {"compat": mode} if len(modes) == 1 and (mode := modes.pop()) else {}
    shared = {key: tests[0][key] for key in keys}
    apart = [{key: value for key, value in test.items() if key not in keys} for test in tests]
    return {**({"suite": shared.pop("suite")} if "suite" in shared else {}), **compat, **shared}, apart


def _is_shared(key: str, tests: Sequence[Said]) -> bool:
    if key == "suite" and any("suite" in test.get("metadata", {}) for test in tests):
        return False  # a test's metadata go before what its file says
    first = tests[0].get(key)
    said = first is not None and (len(tests) > 1 or key == "suite")
    return said and all(strictly_equal(test.get(key), first) for test in tests[1:])
