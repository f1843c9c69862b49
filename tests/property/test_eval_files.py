"""Any eval file gives tests or problems, never a crash."""

import json
from pathlib import Path
from typing import Any

import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from tests.property.documents import nested, paths_of

from passgate.tasks.formats.evals.compose import SuiteWords, raw_tests
from passgate.tasks.formats.evals.documents import Documents, find_ground, interpolate
from passgate.tasks.formats.evals.node import Complaints, JsonError, find_offset, parse_json
from passgate.tasks.formats.evals.prompts import WITH_TEMPLATES
from passgate.tasks.formats.evals.variables import fill_variables, render_template
from passgate.tasks.formats.evals.words import names_by_spelling
from passgate.tasks.formats.folder import file_kind, folder_files

TEXTS = (
    *("", "hi", "x", "./raw.yaml", "./rows.jsonl", "file://table.csv", "./cases/", "*.yaml", "**/*", "../..", "/"),
    *("./EVAL.yaml", "./EVAL.eval.yaml", "suite", "tests", "${{ X }}", "{{ x }}", "{{ env.X }}", "[", "{% if", "~"),
    *("\0", "a" * 300),
)
OTHERS = (
    *("id", "include", "type", "select", "run", "vars", "config", "label", "raw", "prompt", "file", "test_ids", "tags"),
)
keys = st.sampled_from((*names_by_spelling(SuiteWords), *OTHERS)) | st.text(max_size=3)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
texts = st.sampled_from(TEXTS) | st.text(max_size=8)
values = nested(scalars | texts, keys, size=4, most=20)
tests_like = st.lists(texts | st.dictionaries(st.sampled_from(OTHERS), values, max_size=5), max_size=4) | texts
eval_like = st.dictionaries(
    st.sampled_from(("tests", "cases", "prompts", "scenarios", "default_test")), tests_like | values
)
documents = values | eval_like | st.builds(lambda one, two: {**one, **two}, eval_like, st.dictionaries(keys, values))
yaml_like = st.lists(
    st.sampled_from([*"ab:-?![]{}&*<>|%@`\"'#, \n\t\x00", "tests:", "- ", "<<", "${{ A }}", "---"])
).map("".join)


def surroundings(folder: Path) -> None:
    """What the paths among the texts lead to."""
    (folder / ".git").mkdir(exist_ok=True)
    (folder / "raw.yaml").write_text("- {id: r, input: x}\n- ./rows.jsonl\n")
    (folder / "rows.jsonl").write_text('{"id": "j", "input": "${{ X }}"}\n')
    (folder / "table.csv").write_text("q,__expected\nx,contains:y\n")
    (folder / "cases/a").mkdir(parents=True, exist_ok=True)
    (folder / "cases/a/case.yaml").write_text("input: x\n")


def holds(folder: Path, name: str) -> None:
    """The file gives tests, or problems with a place that a person can go to."""
    complaints = Complaints()
    documents = Documents(find_ground(folder / name, folder), complaints, {"A": "1"}, lambda file: file.name)
    tests = raw_tests(folder / name, documents)
    assert tests or complaints.problems
    for problem in (*complaints.problems, *complaints.warnings, *complaints.cannot_run):
        assert problem.line >= 1
        assert problem.column >= 1
        assert problem.message
    for test in tests:
        assert isinstance(test.node.value, dict)
        assert test.node.problem("here").file
        for key in test.node.value:
            assert test.node.child(key).problem("here", at_key=True).line >= 1
    file_kind(folder / name)
    found = folder_files(folder, {})
    assert len({*found.tasks, *found.evals, *found.parts, *found.others}) == sum(
        map(len, (found.tasks, found.evals, found.parts, found.others))
    )


@given(document=documents)
@example(document={"tests": [{"include": "./EVAL.yaml", "type": "tests"}]})
@example(document={"prompts": [[]], "default_test": {"assert": [1]}, "tests": [{"assert": 3, "vars": [1]}]})
def test_any_document_is_tests_or_problems(tmp_path: Path, document: Any) -> None:
    surroundings(tmp_path)
    (tmp_path / "EVAL.yaml").write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
    holds(tmp_path, "EVAL.yaml")
    (tmp_path / "EVAL.eval.json").write_text(json.dumps(document), encoding="utf-8")
    holds(tmp_path, "EVAL.eval.json")


@given(lines=st.lists(st.dictionaries(keys, values) | values | texts, max_size=4), sidecar=documents)
def test_any_lines_are_tests_or_problems(tmp_path: Path, lines: list[Any], sidecar: Any) -> None:
    surroundings(tmp_path)
    text = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
    (tmp_path / "EVAL.jsonl").write_text(text, encoding="utf-8")
    (tmp_path / "EVAL.yaml").write_text(yaml.safe_dump(sidecar), encoding="utf-8")
    holds(tmp_path, "EVAL.jsonl")


@given(
    content=st.binary() | st.text().map(str.encode) | yaml_like.map(str.encode),
    name=st.sampled_from(["EVAL.yaml", "EVAL.jsonl", "a.eval.json"]),
)
def test_any_bytes_are_tests_or_problems(tmp_path: Path, content: bytes, name: str) -> None:
    surroundings(tmp_path)
    (tmp_path / name).write_bytes(content)
    holds(tmp_path, name)


@given(content=st.binary() | st.text().map(str.encode))
def test_any_table_is_tests_or_problems(tmp_path: Path, content: bytes) -> None:
    surroundings(tmp_path)
    (tmp_path / "table.csv").write_bytes(content)
    (tmp_path / "EVAL.yaml").write_text("tests: ./table.csv\n")
    holds(tmp_path, "EVAL.yaml")


@given(value=nested(scalars | st.text(), most=100), indent=st.sampled_from([None, 1]))
def test_every_value_of_a_json_text_is_found(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    try:
        assert parse_json(text) == value
    except JsonError:
        return
    for path in paths_of(value):
        found, _ = json.JSONDecoder().raw_decode(text, find_offset(text, path))
        wanted = value
        for part in path:
            wanted = wanted[part]
        assert found == wanted


def refusal(text: str) -> JsonError | None:
    try:
        parse_json(text)
    except JsonError as error:
        return error
    return None


@given(text=st.text())
def test_any_text_is_json_or_is_told_where_not(text: str) -> None:
    problem = refusal(text)
    assert problem is None or 0 <= problem.offset <= len(text)
    assert 0 <= find_offset(text, ("a", 0, "b"), at_key=True) <= len(text)


@given(value=values, variables=st.dictionaries(st.text(), st.text()))
def test_what_has_no_placeholder_stays_as_it_is(value: Any, variables: dict[str, str]) -> None:
    if "{{" not in json.dumps(value):
        assert interpolate(value, variables, WITH_TEMPLATES) == (value, ())
        assert fill_variables(value, variables) == value


@given(
    text=st.text()
    | st.lists(
        st.sampled_from([*"ab{}%#|.()[]'\" 1*", "{{", "}}", "{%", "%}", "if ", "for x in a", "endif", "| upper"])
    ).map("".join)
)
def test_any_template_is_a_text_or_is_told(text: str) -> None:
    try:
        rendered = render_template(text, {"a": [1, 2], "b": {"a": 1}})
    except ValueError as error:
        rendered = str(error)
    assert isinstance(rendered, str)
