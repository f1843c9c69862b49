from pathlib import Path

import pytest

from passgate.tasks.formats.evals.read.case_files import MOST_BROKEN_LINES
from tests.unit.formats.evals.eval_files import read, write


def test_a_sidecar_says_what_all_lines_have(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "data.jsonl": '{"id": "a", "input": "hi"}\n\n{"id": "b", "input": "hi"}\n',
            "data.eval.yaml": "name: big\nassertions: [{type: contains, value: x}]\n",
        },
    )
    for name in ("data.jsonl", "data.eval.yaml"):
        answer = read(tmp_path, name)
        assert (answer.problems, answer.ids) == ([], ["a", "b"]), name
        assert answer.tests[1].context.root.value["assertions"] == [{"type": "contains", "value": "x"}]
        assert answer.tests[1].runtime is answer.tests[1].context
        assert answer.tests[1].node.problem("x").line == 3


def test_lines_need_no_sidecar(tmp_path: Path) -> None:
    write(tmp_path, {"data.jsonl": '{"id": "a"}', "data.yaml": "tests: [{id: other}]"})
    answer = read(tmp_path, "data.jsonl")
    assert (answer.problems, answer.ids) == ([], ["a"])
    assert answer.tests[0].context.root.value == {}


def test_a_sidecar_may_name_its_lines(tmp_path: Path) -> None:
    files = {"data.jsonl": '{"id": "a"}', "data.eval.yaml": "input: all\ntests: ./data.jsonl\n"}
    write(tmp_path, files)
    for name in files:
        answer = read(tmp_path, name)
        assert (answer.problems, answer.ids) == ([], ["a"]), name
        assert answer.tests[0].context.root.value["input"] == "all"


def test_two_sidecars_must_say_the_same(tmp_path: Path) -> None:
    write(tmp_path, {"d.jsonl": '{"id": "a"}', "d.yaml": "name: x\n", "d.eval.yaml": "name: x\n"})
    assert read(tmp_path, "d.jsonl").problems == []
    write(tmp_path, {"d.eval.yaml": "name: y\n"})
    assert read(tmp_path, "d.jsonl").problems == [
        "d.eval.yaml:1:1: d.jsonl has two sidecars that differ: d.yaml and d.eval.yaml"
    ]


def test_a_sidecar_is_not_lost_where_its_lines_are_taken_in(tmp_path: Path) -> None:
    write(tmp_path, {"d.jsonl": '{"id": "a"}', "d.yaml": "assert: [{type: contains, value: x}]\n"})
    write(tmp_path, {"path.yaml": "tests: ./d.jsonl\n"})
    assert read(tmp_path, "path.yaml").problems == [
        (
            "path.yaml:1:8: tests: 'd.jsonl' is an eval file of its own: "
            "`{include: ..., type: suite}` takes it in whole, `type: tests` its cases alone"
        )
    ]
    write(tmp_path, {"suite.yaml": "tests: [{include: d.jsonl, type: suite}]\n"})
    assert "assert" in read(tmp_path, "suite.yaml").tests[0].context.root.value
    write(tmp_path, {"cases.yaml": "tests: [{include: d.jsonl, type: tests}]\n"})
    assert "assert" not in read(tmp_path, "cases.yaml").tests[0].context.root.value


def test_a_line_that_is_no_json_is_told_and_the_others_are_read(tmp_path: Path) -> None:
    write(tmp_path, {"d.jsonl": '{"id": "a"}\n{"id": }\n{"id": "c"}\n[1]\n'})
    answer = read(tmp_path, "d.jsonl")
    assert answer.ids == ["a", "c"]
    assert answer.problems == [
        "d.jsonl:2:8: not valid JSON: Expecting value",
        "d.jsonl:4:1: expected a test: a mapping, or the path of a file with tests",
    ]
    write(tmp_path, {"d.jsonl": "\n  \n"})
    assert read(tmp_path, "d.jsonl").problems == ["d.jsonl:1:1: there are no tests in this file"]


def test_of_a_file_that_is_no_jsonl_only_the_first_lines_are_told(tmp_path: Path) -> None:
    write(tmp_path, {"data.jsonl": '{"id": "a"}\n' + "- x\n" * 300_000})
    answer = read(tmp_path, "data.jsonl")
    assert len(answer.problems) == MOST_BROKEN_LINES + 1
    assert answer.problems[-1] == "data.jsonl:1001:1: 1000 lines are no JSON: what stands behind this one is not read"


def table(tmp_path: Path, text: str) -> tuple[list[object], list[str]]:
    write(tmp_path, {"EVAL.yaml": "tests: ./rows.csv\n", "rows.csv": text})
    answer = read(tmp_path, "EVAL.yaml")
    return answer.values, answer.problems


def test_columns_are_variables_and_short_rows_have_empty_cells(tmp_path: Path) -> None:
    rows, problems = table(tmp_path, 'id,question,note\nq1,"What, is\n""it""?",\n,Two,x\n')
    assert problems == []
    assert rows == [
        {"id": "q1", "vars": {"question": 'What, is\n"it"?', "note": ""}},
        {"id": "row-2", "vars": {"question": "Two", "note": "x"}},
    ]
    assert table(tmp_path, "a,b\nx\n") == ([{"id": "row-1", "vars": {"a": "x", "b": ""}}], [])


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


def test_each_folder_is_a_test_named_as_it_is(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "EVAL.yaml": "name: a\ntests: ./cases/\n",
            "cases/b-second/case.yml": "input: hi\n",
            "cases/a-first/case.yaml": "id: own\ninput: hi\n",
            "cases/a-first/workspace/file.txt": "",
            "cases/notes/README.md": "",
        },
    )
    answer = read(tmp_path, "EVAL.yaml")
    assert answer.problems == []
    assert answer.ids == ["own", "b-second"]
    assert [test.workspace for test in answer.tests] == [tmp_path / "cases/a-first/workspace", None]
    assert answer.warnings == ["EVAL.yaml:2:8: tests: the folder 'notes' has no case.yaml: skipped"]
    write(tmp_path, {"fix-it/case.yaml": "input: hi\n", "fix-it/workspace/a": ""})
    answer = read(tmp_path, "fix-it/case.yaml")
    assert (answer.problems, answer.ids) == ([], ["fix-it"])
    assert answer.tests[0].workspace == tmp_path / "fix-it/workspace"


def test_a_folder_without_cases_or_with_two_is_a_problem(tmp_path: Path) -> None:
    write(tmp_path, {"EVAL.yaml": "tests: ./cases/\n", "cases/a.yaml": "[{id: x}]"})
    assert read(tmp_path, "EVAL.yaml").problems == [
        (
            "EVAL.yaml:1:8: tests: no folder of './cases/' has a case.yaml; "
            "for files of tests write a pattern, as './cases/*.yaml'"
        )
    ]
    write(tmp_path, {"EVAL.yaml": "tests: ./c\n", "c/x/case.yaml": "input: a", "c/x/case.yml": "input: b"})
    assert read(tmp_path, "EVAL.yaml").problems == [
        "EVAL.yaml:1:8: tests: the folder 'x' has both case.yaml and case.yml"
    ]


def test_a_case_that_leaves_the_repository_is_a_problem(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"repo/EVAL.yaml": "tests: ./c\n", "elsewhere/case.yaml": "input: a", "repo/c/x/case.yaml": "input: b"},
    )
    (tmp_path / "repo/c/link").symlink_to(tmp_path / "elsewhere")
    answer = read(tmp_path / "repo", "EVAL.yaml")
    assert answer.problems == ["EVAL.yaml:1:8: tests: 'link' in it leaves the repository"]
    assert answer.ids == ["x"]
