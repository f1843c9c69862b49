"""What the schemas of eval files say of names, versions, descriptions and time-outs is what the loader says."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.builders import SHIPPED

from passgate.tasks.errors import Problem
from passgate.tasks.formats.evals.reader import EvalReader
from passgate.tasks.formats.schema_check import schema_validator

Problems = Callable[[dict[str, Any]], list[Problem]]
SCHEMAS = [schema_validator(name) for name in ("eval", "agentv")]
TESTS = [{"id": "a", "input": "Say yes.", "criteria": "It says yes."}]

scalars = st.none() | st.booleans() | st.integers(-10, 4000) | st.sampled_from([0.5, 1.0, 3600.0, 1e9]) | st.just([])
names = st.text("ab0-_A é", max_size=6) | st.integers(60, 70).map("a".__mul__) | scalars
versions = st.text("019.-+ab v", max_size=8) | st.sampled_from(["1.0", "1.2.3", "1.0.0-beta.1", "2"]) | scalars
descriptions = (
    st.integers(2040, 2055).map("d".__mul__) | st.text(st.characters(exclude_categories=["C"]), max_size=10) | scalars
)


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Problems:
    folder: Path = tmp_path_factory.mktemp("suites")
    reader = EvalReader(folder, SHIPPED, {}, lambda file: file.name)

    def _problems(document: dict[str, Any]) -> list[Problem]:
        file = folder / "EVAL.yaml"
        file.write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")
        return list(reader.read(file).problems)

    return _problems


@given(name=names, version=versions, description=descriptions, timeout=scalars)
@example(name="code-review", version="1.0", description="", timeout=3600)
@example(name="a--b", version="1.0", description="", timeout=1)
def test_schemas_and_loader_agree(problems: Problems, name: Any, version: Any, description: Any, timeout: Any) -> None:
    whole = {"name": "code-review", "tests": TESTS}
    for change in (
        {"name": name},
        {"version": version},
        {"description": description},
        {"execution": {"timeout_seconds": timeout}},
    ):
        document = whole | change
        said = problems(document)
        for schema in SCHEMAS:
            assert schema.is_valid(document) == (said == []), (change, said)
        for problem in said:
            assert (problem.file, problem.line) == ("EVAL.yaml", 1)
            assert problem.column > 1
