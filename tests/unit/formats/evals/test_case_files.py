from pathlib import Path

import pytest

from passgate.tasks.formats.evals.case_files import MOST_BROKEN_LINES
from tests.unit.formats.evals.eval_files import read, read_first, write

NO_TEST = "expected a test: a mapping, or the path of a file with tests"


LINE = '{"id": "a"}'


@pytest.mark.parametrize("name", ["data.jsonl", "data.eval.yaml"])
@pytest.mark.parametrize("tests", ["", "tests: ./data.jsonl\n"])
def test_a_sidecar_says_what_all_lines_have(tmp_path: Path, name: str, tests: str) -> None:
    write(tmp_path, {"data.jsonl": f'{LINE}\n\n{{"id": "b"}}\n', "data.eval.yaml": f"input: all\n{tests}"})
    answer = read(tmp_path, name)
    assert (answer.problems, answer.ids) == ([], ["a", "b"])
    assert answer.tests[1].context.root.node.value["input"] == "all"
    assert answer.tests[1].runtime is answer.tests[1].context
    assert answer.tests[1].node.problem("x").line == 3


def test_lines_need_no_sidecar(tmp_path: Path) -> None:
    answer = read_first(tmp_path, {"data.jsonl": LINE, "data.yaml": "tests: [{id: other}]"})
    assert (answer.problems, answer.ids) == ([], ["a"])
    assert answer.tests[0].context.root.node.value == {}


def test_a_sidecar_is_not_lost_where_its_lines_are_taken_in(tmp_path: Path) -> None:
    write(tmp_path, {"d.jsonl": LINE, "d.yaml": "assert: [{type: contains, value: x}]\n"})
    whole = read_first(tmp_path, {"suite.yaml": "tests: [{include: d.jsonl, type: suite}]\n"})
    assert "assert" in whole.tests[0].context.root.node.value
    cases = read_first(tmp_path, {"cases.yaml": "tests: [{include: d.jsonl, type: tests}]\n"})
    assert "assert" not in cases.tests[0].context.root.node.value


def test_a_line_that_is_no_json_is_told_and_the_others_are_read(tmp_path: Path) -> None:
    answer = read_first(tmp_path, {"d.jsonl": f'{LINE}\n{{"id": }}\n{{"id": "c"}}\n[1]\n'})
    assert answer.ids == ["a", "c"]
    assert answer.problems == ["d.jsonl:2:8: not valid JSON: Expecting value", f"d.jsonl:4:1: {NO_TEST}"]


def test_of_a_file_that_is_no_jsonl_only_the_first_lines_are_told(tmp_path: Path) -> None:
    answer = read_first(tmp_path, {"data.jsonl": f"{LINE}\n" + "- x\n" * 300_000})
    assert len(answer.problems) == MOST_BROKEN_LINES + 1
    assert answer.problems[-1] == "data.jsonl:1001:1: 1000 lines are not JSON: passgate reads no lines after this one"


def table(tmp_path: Path, text: str) -> tuple[list[object], list[str]]:
    answer = read_first(tmp_path, {"EVAL.yaml": "tests: ./rows.csv\n", "rows.csv": text})
    return answer.values, answer.problems


def test_columns_are_variables_and_short_rows_have_empty_cells(tmp_path: Path) -> None:
    rows, problems = table(tmp_path, 'id,question,note\nq1,"What, is\n""it""?",\n,Two\n')
    assert problems == []
    assert rows == [
        {"id": "q1", "vars": {"question": 'What, is\n"it"?', "note": ""}},
        {"id": "row-2", "vars": {"question": "Two", "note": ""}},
    ]


@pytest.mark.parametrize(
    ("cell", "grader"),
    [
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
    rows = [{"id": "row-1", "vars": {"q": "x"}, "assert": [grader]}]
    assert table(tmp_path, f"q,__expected\nx,{cell}\n") == (rows, [])


def test_the_other_columns(tmp_path: Path) -> None:
    names = "__prefix,__suffix,__description,__threshold,__metadata:area,__metadata:tags[],__expected1,__expected2"
    row = {
        "id": "row-1",
        "vars": {"input": "<ask>"},
        "description": "told",
        "threshold": 0.5,
        "metadata": {"area": "x", "tags": ["a", "b,c"]},
        "assert": [{"type": "contains", "value": "1"}, {"type": "contains", "value": "2"}],
    }
    text = f'input,{names}\nask,<,>,told,0.5,x,"a,b\\,c",contains:1,contains:2\n'
    assert table(tmp_path, text) == ([row], [])


def test_a_row_without_graders_is_graded_by_its_description(tmp_path: Path) -> None:
    row = {"id": "row-1", "vars": {"q": "x"}, "description": "Is kind", "criteria": "Is kind"}
    assert table(tmp_path, "q,__description,__expected\nx,Is kind,\n") == ([row], [])


def test_columns_may_name_nested_variables_and_the_threshold_of_a_grader(tmp_path: Path) -> None:
    names = "vars.input,vars.order.id,vars.order.to,__prefix,__expected1,__expected2,__config:__expected2:threshold"
    row = {
        "id": "row-1",
        "vars": {"input": "<ask", "order": {"id": "7", "to": "Ada"}},
        "assert": [{"type": "llm-rubric", "value": "kind"}, {"type": "llm-rubric", "value": "short", "min_score": 0.6}],
    }
    plain = {**row, "assert": [row["assert"][0]]}
    cells = "ask,7,Ada,<,grade:kind"
    text = f"{names}\n{cells},grade:short,0.6\n{cells},,0.6\n{cells},,\n"
    assert table(tmp_path, text) == ([row, plain | {"id": "row-2"}, plain | {"id": "row-3"}], [])
    first = "q,__expected,__config:__expected1:threshold\nx,grade:kind,1\n"
    assert table(tmp_path, first)[0][0]["assert"] == [{"type": "llm-rubric", "value": "kind", "min_score": 1.0}]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("q,__expected\nx,similar(0.8):y\n", "rows.csv:2:1: __expected: unknown grader 'similar'; known: contains"),
        ("q,__expected\nx,javascript:1\n", "rows.csv:2:1: __expected: a program in a table"),
        ("q,__threshold\nx,many\n", "rows.csv:2:1: __threshold: 'many' is not a number"),
        ("q,__config\nx,y\n", "rows.csv:2:1: __config: a column that passgate does not read"),
        ("q,__config:__expected:score\nx,1\n", "rows.csv:2:1: __config:__expected:score: expected __config:COLUMN:thr"),
        ("q,__config:__expected2:threshold\nx,1\n", "rows.csv:2:1: __config:__expected2:threshold: expected __config:"),
        (
            "q,__expected,__config:__expected:threshold\nx,is-json,no\n",
            "rows.csv:2:1: __config:__expected:threshold: 'no' is not a number",
        ),
        ("q,__provider_output\nx,y\n", "rows.csv:2:1: __provider_output: an agent gives the answers: play recorded"),
        ("q,__providerOutput\nx,y\n", "rows.csv:2:1: __providerOutput: an agent gives the answers: play recorded"),
        ("vars.a,vars.a.b\nx,y\n", "rows.csv:2:1: vars.a.b: this variable has a value from another column"),
        ("vars.a.b,a\nx,y\n", "rows.csv:2:1: a: this variable has a value from another column"),
        ("vars.\nx\n", "rows.csv:2:1: vars.: this variable has a value from another column, or no name"),
        ("q\nx,y\n", "rows.csv:2:1: a cell without a column"),
        ('q\n"x\n', "rows.csv:2:1: not a CSV table: unexpected end of data"),
        ("q\n", "rows.csv:1:1: there are no tests in this file"),
        ("", "rows.csv:1:1: there are no tests in this file"),
    ],
)
def test_what_cannot_be_read_is_told_with_its_row(tmp_path: Path, text: str, problem: str) -> None:
    _, problems = table(tmp_path, text)
    assert problems[0].startswith(problem)


def test_each_folder_is_a_test_named_as_it_is(tmp_path: Path) -> None:
    files = {
        "EVAL.yaml": "name: a\ntests: ./cases/\n",
        "cases/b-second/case.yml": "input: hi\n",
        "cases/a-first/case.yaml": "id: own\ninput: hi\n",
        "cases/a-first/workspace/file.txt": "",
        "cases/notes/README.md": "",
    }
    answer = read_first(tmp_path, files)
    assert (answer.problems, answer.ids) == ([], ["own", "b-second"])
    assert [test.workspace for test in answer.tests] == [tmp_path / "cases/a-first/workspace", None]
    assert answer.warnings == ["EVAL.yaml:2:8: tests: the folder 'notes' has no case.yaml: skipped"]
    answer = read_first(tmp_path, {"fix-it/case.yaml": "input: hi\n", "fix-it/workspace/a": ""})
    assert (answer.problems, answer.ids) == ([], ["fix-it"])
    assert answer.tests[0].workspace == tmp_path / "fix-it/workspace"


NO_CASE = "no folder of './c/' has a case.yaml; for files of tests write a pattern, as './cases/*.yaml'"
TWO_CASES = "the folder 'x' has both case.yaml and case.yml"
WHOLE = "`{include: ..., type: suite}` takes it in whole, `type: tests` its cases alone"
SIDECARS = {"d.jsonl": LINE, "d.yaml": "name: x\n", "d.eval.yaml": "name: x\n"}


@pytest.mark.parametrize(
    ("files", "problems"),
    [
        (SIDECARS, []),
        (
            SIDECARS | {"d.yaml": "name: y\n"},
            ["d.eval.yaml:1:1: d.jsonl has two sidecars that differ: d.yaml and d.eval.yaml"],
        ),
        (
            {"p.yaml": "tests: ./d.jsonl", "d.jsonl": LINE, "d.yaml": "input: x"},
            [f"p.yaml:1:8: tests: 'd.jsonl' is an eval file of its own: {WHOLE}"],
        ),
        ({"d.jsonl": "\n  \n"}, ["d.jsonl:1:1: there are no tests in this file"]),
        ({"E.yaml": "tests: ./c/\n", "c/a.yaml": "[{id: x}]"}, [f"E.yaml:1:8: tests: {NO_CASE}"]),
        (
            {"E.yaml": "tests: ./c\n", "c/x/case.yaml": "a: b", "c/x/case.yml": "a: b"},
            [f"E.yaml:1:8: tests: {TWO_CASES}"],
        ),
    ],
)
def test_what_is_wrong_with_files_and_folders_is_a_problem(
    tmp_path: Path, files: dict[str, str], problems: list[str]
) -> None:
    assert read_first(tmp_path, files).problems == problems


def test_a_case_that_leaves_the_repository_is_a_problem(tmp_path: Path) -> None:
    write(tmp_path, {"elsewhere/case.yaml": "input: a", "repo/c/x/case.yaml": "input: b"})
    (tmp_path / "repo/c/link").symlink_to(tmp_path / "elsewhere")
    answer = read_first(tmp_path / "repo", {"EVAL.yaml": "tests: ./c\n"})
    assert answer.problems == ["EVAL.yaml:1:8: tests: 'link' in it leaves the repository"]
    assert answer.ids == ["x"]
