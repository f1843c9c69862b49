"""From an eval file to its tests."""

from pathlib import Path

import pytest

from tests.unit.formats.evals.eval_files import read, write


@pytest.mark.parametrize("key", ["tests", "evalcases", "eval_cases", "cases"])
def test_the_list_of_tests_may_have_any_of_its_names(tmp_path: Path, key: str) -> None:
    write(tmp_path, {"EVAL.yaml": f"name: a\n{key}:\n  - {{id: x, input: hi}}\n  - {{id: y, input: ho}}\n"})
    answer = read(tmp_path, "EVAL.yaml")
    assert answer.problems == []
    assert answer.ids == ["x", "y"]
    assert answer.tests[0].context.root.value["name"] == "a"
    assert answer.tests[0].context is answer.tests[0].runtime


def test_two_names_of_the_tests_must_say_the_same(tmp_path: Path) -> None:
    write(tmp_path, {"EVAL.yaml": "tests: [{id: x}]\ncases: [{id: y}]\n"})
    assert read(tmp_path, "EVAL.yaml").problems == [
        "EVAL.yaml:2:1: cases: 'tests' and 'cases' are two names of one key, and differ"
    ]
    write(tmp_path, {"EVAL.yaml": "tests: [{id: x}]\nevalcases: [{id: x}]\n"})
    answer = read(tmp_path, "EVAL.yaml")
    assert (answer.problems, answer.ids) == ([], ["x"])


def test_unknown_keys_and_missing_files_are_problems(tmp_path: Path) -> None:
    write(tmp_path, {"EVAL.yaml": "assertion: []\nx-own: 1\nzzz: 1\ntests: [{id: x}]\n"})
    assert read(tmp_path, "EVAL.yaml").problems == [
        "EVAL.yaml:1:1: assertion: unknown key; did you mean 'assertions'?",
        "EVAL.yaml:3:1: zzz: unknown key; keys of your own begin with `x-`",
    ]
    assert read(tmp_path, "gone.yaml").problems == ["gone.yaml:1:1: this is no file"]


def test_a_test_stands_where_the_file_has_it_also_in_json(tmp_path: Path) -> None:
    write(tmp_path, {"EVAL.yaml": "tests:\n  - id: x\n    input: hi\n"})
    test = read(tmp_path, "EVAL.yaml").tests[0]
    problem = test.node.child("input").problem("wrong")
    assert (problem.file, problem.line, problem.column, problem.path) == ("EVAL.yaml", 3, 12, "tests[0].input")
    write(tmp_path, {"a.eval.json": '{\n\t"name": "a",\n\t"tests": [{"id": "\\ud83d\\ude00", "threshold": 1e-1}]\n}'})
    answer = read(tmp_path, "a.eval.json")
    assert answer.values == [{"id": "\N{GRINNING FACE}", "threshold": 0.1}]
    assert str(answer.tests[0].node.child("threshold").problem("x")) == "a.eval.json:3:48: tests[0].threshold: x"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("name: a\n", "EVAL.yaml:1:1: there are no tests: the key 'tests' is missing"),
        ("name: a\ntest: []\n", "EVAL.yaml:2:1: test: unknown key; did you mean 'tests'?"),
        ("tests:\n", "EVAL.yaml:1:1: tests: there are no tests"),
        ("tests: []\n", "EVAL.yaml:1:8: tests: has no tests"),
        ("tests: 3\n", "EVAL.yaml:1:8: tests: expected a list of tests, or a path of one"),
        ("tests: [3]\n", "EVAL.yaml:1:9: tests[0]: expected a test: a mapping, or the path of a file with tests"),
        ("hello\n", "EVAL.yaml:1:1: expected an eval file: a mapping with `tests`, or a list of tests"),
        ("", "EVAL.yaml:1:1: expected an eval file: a mapping with `tests`, or a list of tests"),
        ("tests: [\n", "EVAL.yaml:2:1: not valid YAML: while parsing a flow node, did not find expected node content"),
        ("tests: ./gone.yaml\n", "EVAL.yaml:1:8: tests: no file './gone.yaml'"),
        ("tests: ./*.gone\n", "EVAL.yaml:1:8: tests: no file matches './*.gone'"),
        ("tests: ../../gone.yaml\n", "EVAL.yaml:1:8: tests: '../../gone.yaml' leaves the repository"),
        (
            "tests: file://tests.py\n",
            (
                "EVAL.yaml:1:8: tests: 'tests.py' is not a file of tests that passgate reads; "
                "write its tests into a YAML or JSONL file"
            ),
        ),
    ],
)
def test_a_file_without_tests_is_a_problem(tmp_path: Path, content: str, problem: str) -> None:
    write(tmp_path, {"EVAL.yaml": content, "tests.py": ""})
    answer = read(tmp_path, "EVAL.yaml")
    assert answer.problems == [problem]
    assert answer.tests == ()


class TestRawCases:
    def test_a_path_stands_for_the_tests_of_its_file(self, tmp_path: Path) -> None:
        write(tmp_path, {"evals/EVAL.yaml": "name: a\ntests: ./cases.yaml\n", "evals/cases.yaml": "- {id: x}\n"})
        answer = read(tmp_path, "evals/EVAL.yaml")
        assert (answer.problems, answer.ids) == ([], ["x"])
        assert answer.tests[0].node.problem("here").file == "evals/cases.yaml"
        assert answer.tests[0].context.root.value["name"] == "a"

    def test_paths_patterns_and_tests_may_stand_in_one_list(self, tmp_path: Path) -> None:
        write(
            tmp_path,
            {
                "EVAL.yaml": "tests: [./one.yaml, 'file://many/*.cases.yaml', {id: own}, /rows.jsonl]\n",
                "one.yaml": "[{id: one}]",
                "many/b.cases.yaml": "[{id: b}]",
                "many/a.cases.yaml": "[{id: a}]",
                "many/other.yaml": "[{id: other}]",
                "rows.jsonl": '{"id": "row"}',
            },
        )
        answer = read(tmp_path, "EVAL.yaml")
        assert (answer.problems, answer.ids) == ([], ["one", "a", "b", "own", "row"])

    def test_a_list_or_a_single_test_is_read_by_itself(self, tmp_path: Path) -> None:
        write(tmp_path, {"list.yaml": "- {id: x}\n- {id: y}\n", "single.yaml": "id: z\ninput: hi\n"})
        assert read(tmp_path, "list.yaml").ids == ["x", "y"]
        answer = read(tmp_path, "single.yaml")
        assert (answer.problems, answer.values) == ([], [{"id": "z", "input": "hi"}])
        assert answer.tests[0].context.root.value == {}

    def test_a_whole_eval_file_as_a_path_is_refused_with_the_remedy(self, tmp_path: Path) -> None:
        write(tmp_path, {"EVAL.yaml": "tests: [./child.yaml]\n", "child.yaml": "input: all\ntests: [{id: x}]\n"})
        answer = read(tmp_path, "EVAL.yaml")
        assert answer.tests == ()
        assert answer.problems == [
            (
                "EVAL.yaml:1:9: tests[0]: 'child.yaml' is an eval file of its own: "
                "`{include: ..., type: suite}` takes it in whole, `type: tests` its cases alone"
            )
        ]

    def test_a_file_that_is_something_else_or_wrong_is_told_there(self, tmp_path: Path) -> None:
        write(tmp_path, {"EVAL.yaml": "tests: ./other.yaml\n", "other.yaml": "template: ./x\n"})
        assert read(tmp_path, "EVAL.yaml").problems == [
            "EVAL.yaml:1:8: tests: 'other.yaml' holds no tests: expected a list of tests"
        ]
        write(tmp_path, {"EVAL.yaml": "tests: ./cases.yaml\n", "cases.yaml": "- {id: x}\n- 3\n"})
        answer = read(tmp_path, "EVAL.yaml")
        assert answer.ids == ["x"]
        assert answer.problems == ["cases.yaml:2:3: [1]: expected a test: a mapping, or the path of a file with tests"]
