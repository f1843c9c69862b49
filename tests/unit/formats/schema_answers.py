"""What the shipped schemas of eval files say of documents."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from passgate.tasks.formats.document import Document, read_document
from passgate.tasks.formats.schema_check import check_schema
from tests.builders import REPOSITORY

CORPUS = REPOSITORY.parent / "shared/corpus"
_TESTS = ("tests", "evalcases", "eval_cases", "cases")


def _schema(name: str) -> Any:
    return json.loads((REPOSITORY / f"schema/{name}.schema.json").read_text(encoding="utf-8"))


def answers(name: str, said: Any) -> list[str]:
    """What a schema refuses in a document or a file, as `path: message`."""
    document = read_document(said, said.name) if isinstance(said, Path) else Document("file", said)
    assert document.problems == []
    found = check_schema(document, Draft202012Validator(_schema(name)))
    return [f"{problem.path}: {problem.message}" for problem in found]


def described_everywhere(name: str) -> list[str]:
    """The keys of files, tests and graders that say nothing of what they mean."""
    schema = _schema(name)
    places = {"": schema, **schema["$defs"]}
    return [
        f"{place}.{key}"
        for place, value in places.items()
        for key, inner in value.get("properties", {}).items()
        if "description" not in inner | places.get(inner.get("$ref", "-").rsplit("/", 1)[-1], {})
    ]


def files_below(pattern: str) -> Iterator[Path]:
    """The eval files of a part of the corpus that are YAML as passgate reads it."""
    for folder in sorted(CORPUS.glob(pattern)):
        for file in sorted(folder.rglob("*.y*ml")):
            document = read_document(file, file.name)
            if not document.problems and isinstance(document.data, dict) and set(_TESTS) & set(document.data):
                yield file
