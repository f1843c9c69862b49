"""Tests as a table."""

from pathlib import Path

import pytest

from tests.unit.formats.evals.eval_files import read, write


def table(tmp_path: Path, text: str) -> tuple[list[object], list[str]]:
    write(tmp_path, {"EVAL.yaml": "tests: ./rows.csv\n", "rows.csv": text})
    answer = read(tmp_path, "EVAL.yaml")
    return answer.values, answer.problems


def test_columns_are_variables(tmp_path: Path) -> None:
    rows, problems = table(tmp_path, 'id,question,note\nq1,"What, is\n""it""?",\n,Two,x\n')
    assert problems == []
    assert rows == [
        {"id": "q1", "vars": {"question": 'What, is\n"it"?', "note": ""}},
        {"id": "row-2", "vars": {"question": "Two", "note": "x"}},
    ]


@pytest.mark.parametrize(
    ("cell", "grader"),
    [
        ("Paris", {"type": "equals", "value": "Paris"}),
        ("Paris: the city", {"type": "equals", "value": "Paris: the city"}),
        ("equals:Paris", {"type": "equals", "value": "Paris"}),
        ("contains: Paris ", {"type": "contains", "value": "Paris"}),
        ("not-contains:Rome", {"type": "contains", "value": "Rome", "negate": True}),
        ('"contains-any:a, b"', {"type": "contains-any", "value": ["a", "b"]}),
        ("is-json", {"type": "is-json"}),
        ("cost(0.5)", {"type": "cost", "budget": 0.5}),
        ("latency(500)", {"type": "latency", "threshold": 500.0}),
        ("regex:a:b", {"type": "regex", "value": "a:b"}),
        ("grade: is kind", {"type": "llm-rubric", "value": "is kind"}),
        ("llm-rubric:is kind", {"type": "llm-rubric", "value": "is kind"}),
        ("similar", {"type": "equals", "value": "similar"}),
    ],
)
def test_expected_columns_are_graders(tmp_path: Path, cell: str, grader: dict[str, object]) -> None:
    rows, problems = table(tmp_path, f"q,__expected\nx,{cell}\n")
    assert problems == []
    assert rows == [{"id": "row-1", "vars": {"q": "x"}, "assert": [grader]}]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("q,__expected\nx,similar(0.8):y\n", "rows.csv:2:1: __expected: unknown grader 'similar'; known: contains"),
        ("q,__expected\nx,javascript:1\n", "rows.csv:2:1: __expected: a program in a table"),
        ("q,__threshold\nx,many\n", "rows.csv:2:1: __threshold: 'many' is not a number"),
        ("q,__config\nx,y\n", "rows.csv:2:1: __config: a column that passgate does not read"),
        ("q\nx,y\n", "rows.csv:2:1: a cell without a column"),
        ('q\n"x\n', "rows.csv:2:1: not a CSV table: unexpected end of data"),
        ("q\n", "rows.csv:1:1: there are no tests in this file"),
        ("", "rows.csv:1:1: there are no tests in this file"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_row(tmp_path: Path, text: str, problem: str) -> None:
    _, problems = table(tmp_path, text)
    assert problems[0].startswith(problem)


def test_the_other_columns(tmp_path: Path) -> None:
    rows, problems = table(
        tmp_path,
        "input,__prefix,__suffix,__description,__threshold,__metadata:area,__metadata:tags[],__expected1,__expected2\n"
        'ask,<,>,told,0.5,x,"a,b\\,c",contains:1,contains:2\n',
    )
    assert problems == []
    assert rows == [
        {
            "id": "row-1",
            "vars": {"input": "<ask>"},
            "description": "told",
            "threshold": 0.5,
            "metadata": {"area": "x", "tags": ["a", "b,c"]},
            "assert": [{"type": "contains", "value": "1"}, {"type": "contains", "value": "2"}],
        }
    ]


def test_a_short_row_has_empty_cells(tmp_path: Path) -> None:
    assert table(tmp_path, "a,b\nx\n") == ([{"id": "row-1", "vars": {"a": "x", "b": ""}}], [])
