from pathlib import Path

import pytest

from tests.unit.formats.evals.eval_files import read_first
from tests.unit.formats.reading import beginnings

CHILD = """\
tags: [all]
metadata: {area: core, tags: [deep]}
tests:
  - {id: a-1, metadata: {priority: high}}
  - {id: a-2, metadata: {priority: low, tags: [slow]}}
  - {id: b-1, metadata: {priority: [high, low], area: edge}}
"""
CASES = """\
name: child
tags: [regression]
input: shared
experiment: {threshold: 0.1}
tests:
  - {id: c1, input: x, metadata: {priority: high}}
  - {id: c2, input: y}
"""


def chosen(tmp_path: Path, select: str, kind: str = "suite") -> tuple[list[str | None], list[str]]:
    entry = f"tests: [{{include: ./child.yaml, type: {kind}, select: {select}}}]\n"
    answer = read_first(tmp_path, {"w.yaml": entry, "child.yaml": CHILD})
    return answer.ids, answer.problems


@pytest.mark.parametrize(
    ("select", "ids"),
    [
        ("a-*", ["a-1", "a-2"]),
        ("[b-1, a-2]", ["a-2", "b-1"]),
        ("{test_ids: '*-1'}", ["a-1", "b-1"]),
        ("{test_ids: '*-1', metadata: {priority: low}}", ["b-1"]),
        ("{metadata: {priority: [low, none]}}", ["a-2", "b-1"]),
        ("{metadata: {area: core}}", ["a-1", "a-2"]),
        ("{tags: slow}", ["a-2"]),
        ("{tags: [slow, all]}", ["a-1", "a-2", "b-1"]),
        ("{tags: deep, test_ids: b*}", ["b-1"]),
    ],
)
def test_what_holds_is_taken_in_the_order_of_the_file(tmp_path: Path, select: str, ids: list[str]) -> None:
    assert chosen(tmp_path, select) == (ids, [])


def test_the_tags_of_a_suite_whose_cases_alone_are_taken_do_not_count(tmp_path: Path) -> None:
    assert chosen(tmp_path, "{tags: slow}", "tests") == (["a-2"], [])
    assert chosen(tmp_path, "{tags: all}", "tests")[0] == []


@pytest.mark.parametrize(
    ("select", "problem"),
    [
        ("c-*", "no test is selected"),
        ("a1", "no test is selected; did you mean 'a-1'?"),
        ("3", "expected a pattern of ids, a list of them, or a mapping"),
        ("{ids: a}", "unknown key"),
        ("[1]", "test_ids[0]: expected a text, not 1"),
        ("{metadata: 1}", "expected a mapping"),
    ],
)
def test_a_select_that_selects_nothing_is_a_problem(tmp_path: Path, select: str, problem: str) -> None:
    ids, (found,) = chosen(tmp_path, select)
    assert problem in found
    assert found.startswith("w.yaml:1:")
    assert ids in ([], ["a-1", "a-2", "b-1"])


def test_a_suite_keeps_its_words_but_not_its_runtime_policy(tmp_path: Path) -> None:
    include = "{include: ./inc/child.eval.yaml, type: suite, run: {threshold: 1.0}}"
    wrapper = f"experiment: {{threshold: 0.8}}\ntests: [{{id: inline}}, {include}]\n"
    answer = read_first(tmp_path, {"wrap.eval.yaml": wrapper, "inc/child.eval.yaml": CASES})
    assert answer.problems == []
    assert answer.ids == ["c1", "c2", "inline"], "imported suites come first"
    imported, own = answer.tests[0], answer.tests[2]
    assert imported.context.root.node.value["input"] == "shared"
    assert imported.runtime.root.node.value["experiment"] == {"threshold": 0.8}
    assert ([run.value for run in imported.runs], own.runs) == ([{"threshold": 1.0}], ())


def test_the_cases_of_a_suite_are_taken_without_its_words(tmp_path: Path) -> None:
    wrapper = "name: w\nworkspace: ./w\ntests: [{include: ./c.yaml, type: tests}]\n"
    answer = read_first(tmp_path, {"w.yaml": wrapper, "c.yaml": CASES})
    assert (answer.problems, answer.ids) == ([], ["c1", "c2"])
    assert {test.context.root.node.value["name"] for test in answer.tests} == {"w"}


def test_runs_come_from_the_inside_out_and_includes_are_only_so_deep(tmp_path: Path) -> None:
    files = {
        "outer.yaml": "tests: [{include: ./middle.yaml, type: suite, run: {threshold: 0.1}}]",
        "middle.yaml": "tests: [{include: ./inner.yaml, type: suite, run: {threshold: 0.2}}]",
        "inner.yaml": "name: inner\ntests: [{id: x}]",
    }
    (test,) = read_first(tmp_path, files).tests
    assert [run.value["threshold"] for run in test.runs] == [0.2, 0.1]
    assert (test.context.file, test.runtime.file) == (tmp_path / "inner.yaml", tmp_path / "outer.yaml")
    files = {f"{n}.yaml": f"tests: [{{include: ./{n + 1}.yaml, type: suite}}]\n" for n in range(12)}
    assert read_first(tmp_path, files).problems == [
        "7.yaml:1:19: tests[0].include: files that include files, more than 8 deep"
    ]


NO_EVAL = "is not an eval file; for raw cases write `type: tests`"


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("include: ./c.yaml", "1:9: tests[0]: the key 'type' is missing"),
        ("include: ./c.yaml, type: suit", '1:35: tests[0].type: "suit" is not one of the allowed values; did you '),
        ("include: 3, type: suite", "1:19: tests[0].include: expected a text, not 3"),
        ("include: ./gone.json, type: suite", "1:19: tests[0].include: no file './gone.json'"),
        ("include: ./cc.yaml, type: suite", "1:19: tests[0].include: no file './cc.yaml'; did you mean 'c.yaml'?"),
        ("include: ./c.yaml, type: suite, selct: a", "1:42: tests[0].selct: unknown key; did you mean 'select'?"),
        ("include: ./c.yaml, type: suite, run: 1", "1:47: tests[0].run: expected a mapping"),
        ("include: ./raw.yaml, type: suite", f"1:19: tests[0].include: 'raw.yaml' {NO_EVAL}"),
        ("include: ./folder, type: suite", f"1:19: tests[0].include: 'folder' {NO_EVAL}"),
    ],
)
def test_an_include_that_cannot_be_used_is_a_problem(tmp_path: Path, entry: str, problem: str) -> None:
    files = {"w.yaml": f"tests: [{{{entry}}}]\n", "c.yaml": CASES, "raw.yaml": "[{id: x}]", "folder/a": ""}
    answer = read_first(tmp_path, files)
    assert beginnings(answer.problems, [f"w.yaml:{problem}"]) == [f"w.yaml:{problem}"]
    assert answer.tests == ()


@pytest.mark.parametrize(
    ("parent", "place"),
    [
        ("workspace: {template: ./w}", "1:1: workspace"),
        ("experiment: {workspace: {mode: temp}}", "1:14: experiment.workspace"),
        ("execution: {workspace: x}", "1:13: execution.workspace"),
    ],
)
def test_who_imports_suites_has_no_workspace(tmp_path: Path, parent: str, place: str) -> None:
    files = {"w.yaml": f"{parent}\ntests: [{{include: ./c.yaml, type: suite}}]\n", "c.yaml": CASES}
    assert read_first(tmp_path, files).problems == [
        f"w.yaml:{place}: a file that includes suites (`type: suite`) has no workspace; put it into the suites"
    ]


def test_a_file_may_be_included_twice(tmp_path: Path) -> None:
    includes = [f"{{include: ./c.yaml, type: suite, select: {name}}}" for name in ("c1", "c2")]
    answer = read_first(tmp_path, {"w.yaml": f"tests: [{', '.join(includes)}]\n", "c.yaml": CASES})
    assert (answer.problems, answer.ids) == ([], ["c1", "c2"])


@pytest.mark.parametrize("kind", ["suite", "tests"])
def test_a_circle_is_told_where_it_closes(tmp_path: Path, kind: str) -> None:
    b = f"tests:\n  - {{id: x}}\n  - {{include: ./a.yaml, type: {kind}}}\n"
    files = {"a.yaml": f"tests: [{{include: ./b.yaml, type: {kind}}}]\n", "b.yaml": b}
    assert read_first(tmp_path, files).problems == [
        "b.yaml:3:15: tests[1].include: this include closes a circle: a.yaml -> b.yaml -> a.yaml"
    ]
