"""Tests line by line, and what stands beside them."""

from pathlib import Path

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


def test_a_file_without_lines_is_a_problem(tmp_path: Path) -> None:
    write(tmp_path, {"d.jsonl": "\n  \n"})
    assert read(tmp_path, "d.jsonl").problems == ["d.jsonl:1:1: there are no tests in this file"]


def test_of_a_file_that_is_no_jsonl_only_the_first_lines_are_told(tmp_path: Path) -> None:
    write(tmp_path, {"data.jsonl": '{"id": "a"}\n' + "- x\n" * 300_000})
    answer = read(tmp_path, "data.jsonl")
    assert len(answer.problems) == MOST_BROKEN_LINES + 1
    assert answer.problems[-1] == "data.jsonl:1001:1: 1000 lines are no JSON: what stands behind this one is not read"
