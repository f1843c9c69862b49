"""From an eval file to its tests."""

from pathlib import Path

import pytest

from tests.unit.formats.evals.eval_files import read, read_first


def test_unknown_keys_and_missing_files_are_problems(tmp_path: Path) -> None:
    text = "assertion: []\nx-own: 1\nzzz: 1\ntests: [{id: x}]\ncases: [{id: y}]\n"
    assert read_first(tmp_path, {"EVAL.yaml": text}).problems == [
        "EVAL.yaml:1:1: assertion: unknown key; did you mean 'assertions'?",
        "EVAL.yaml:3:1: zzz: unknown key; keys of your own begin with `x-`",
        "EVAL.yaml:5:1: cases: 'tests' and 'cases' mean the same and differ; keep one of them",
    ]
    assert read(tmp_path, "gone.yaml").problems == ["gone.yaml:1:1: this is not a file"]
    answer = read_first(tmp_path, {"EVAL.yaml": "tests: [{id: x}]\nevalcases: [{id: x}]\n"})
    assert (answer.problems, answer.ids) == ([], ["x"])


def test_a_test_stands_where_the_file_has_it_also_in_json(tmp_path: Path) -> None:
    test = read_first(tmp_path, {"EVAL.yaml": "tests:\n  - id: x\n    input: hi\n"}).tests[0]
    assert str(test.node.child("input").problem("wrong")) == "EVAL.yaml:3:12: tests[0].input: wrong"
    json = '{\n\t"name": "a",\n\t"tests": [{"id": "\\ud83d\\ude00", "threshold": 1e-1}]\n}'
    answer = read_first(tmp_path, {"a.eval.json": json})
    assert answer.values == [{"id": "\N{GRINNING FACE}", "threshold": 0.1}]
    assert str(answer.tests[0].node.child("threshold").problem("x")) == "a.eval.json:3:48: tests[0].threshold: x"


NO_EVAL = "expected an eval file: a mapping with `tests`, or a list of tests"
OF_ITS_OWN = (
    "is an eval file of its own: `{include: ..., type: suite}` takes it in whole, `type: tests` its cases alone"
)
NO_TEST_FILE = "is not a file of tests that passgate reads; write its tests into a YAML or JSONL file"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("name: a\n", "1:1: there are no tests: the key 'tests' is missing"),
        ("name: a\ntest: []\n", "2:1: test: unknown key; did you mean 'tests'?"),
        ("tests:\n", "1:1: tests: there are no tests"),
        ("tests: []\n", "1:8: tests: has no tests"),
        ("tests: 3\n", "1:8: tests: expected a list of tests, or a path of one"),
        ("tests: [3]\n", "1:9: tests[0]: expected a test: a mapping, or the path of a file with tests"),
        ("hello\n", f"1:1: {NO_EVAL}"),
        ("", f"1:1: {NO_EVAL}"),
        ("tests: [\n", "2:1: not valid YAML: while parsing a flow node, did not find expected node content"),
        ("tests: ./gone.yaml\n", "1:8: tests: no file './gone.yaml'"),
        ("tests: ./*.gone\n", "1:8: tests: no file matches './*.gone'"),
        ("tests: ../../gone.yaml\n", "1:8: tests: '../../gone.yaml' leaves the repository"),
        ("tests: file://tests.py\n", f"1:8: tests: 'tests.py' {NO_TEST_FILE}"),
        ("tests: [./child.yaml]\n", f"1:9: tests[0]: 'child.yaml' {OF_ITS_OWN}"),
        ("tests: ./other.yaml\n", "1:8: tests: 'other.yaml' holds no tests: expected a list of tests"),
    ],
)
def test_a_file_without_tests_is_a_problem(tmp_path: Path, content: str, problem: str) -> None:
    others = {"tests.py": "", "child.yaml": "input: all\ntests: [{id: x}]\n", "other.yaml": "template: ./x\n"}
    answer = read_first(tmp_path, {"EVAL.yaml": content, **others})
    assert (answer.problems, answer.tests) == ([f"EVAL.yaml:{problem}"], ())


def test_a_path_stands_for_the_tests_of_its_file_and_what_is_wrong_is_told_there(tmp_path: Path) -> None:
    files = {"evals/EVAL.yaml": "name: a\ntests: ./cases.yaml\n", "evals/cases.yaml": "- {id: x}\n- 3\n"}
    answer = read_first(tmp_path, files)
    assert answer.ids == ["x"]
    assert answer.problems == [
        "evals/cases.yaml:2:3: [1]: expected a test: a mapping, or the path of a file with tests"
    ]
    assert answer.tests[0].node.problem("here").file == "evals/cases.yaml"
    assert answer.tests[0].context.root.node.value["name"] == "a"


def test_paths_patterns_and_tests_may_stand_in_one_list(tmp_path: Path) -> None:
    files = {
        "EVAL.yaml": "tests: [./one.yaml, 'file://many/*.cases.yaml', {id: own}, /rows.jsonl]\n",
        "one.yaml": "[{id: one}]",
        "many/b.cases.yaml": "[{id: b}]",
        "many/a.cases.yaml": "[{id: a}]",
        "many/other.yaml": "[{id: other}]",
        "rows.jsonl": '{"id": "row"}',
    }
    answer = read_first(tmp_path, files)
    assert (answer.problems, answer.ids) == ([], ["one", "a", "b", "own", "row"])


def test_a_list_or_a_single_test_is_read_by_itself(tmp_path: Path) -> None:
    assert read_first(tmp_path, {"list.yaml": "- {id: x}\n- {id: y}\n"}).ids == ["x", "y"]
    answer = read_first(tmp_path, {"single.yaml": "id: z\ninput: hi\n"})
    assert (answer.problems, answer.values) == ([], [{"id": "z", "input": "hi"}])
    assert answer.tests[0].context.root.node.value == {}


def test_a_text_that_is_too_long_for_a_path_is_a_problem(tmp_path: Path) -> None:
    answer = read_first(tmp_path, {"EVAL.yaml": f"tests: ['{'[x]' * 200}']\n"})
    assert answer.problems[0].startswith("EVAL.yaml:1:9: tests[0]: no file matches ")
