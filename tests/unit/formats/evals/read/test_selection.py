"""Which tests an include takes."""

from pathlib import Path

import pytest

from tests.unit.formats.evals.eval_files import read, write

CHILD = """\
tags: [all]
metadata: {area: core, tags: [deep]}
tests:
  - {id: a-1, metadata: {priority: high}}
  - {id: a-2, metadata: {priority: low, tags: [slow]}}
  - {id: b-1, metadata: {priority: [high, low], area: edge}}
"""


def chosen(tmp_path: Path, select: str, kind: str = "suite") -> tuple[list[str | None], list[str]]:
    entry = f"tests: [{{include: ./child.yaml, type: {kind}, select: {select}}}]\n"
    write(tmp_path, {"w.yaml": entry, "child.yaml": CHILD})
    answer = read(tmp_path, "w.yaml")
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
        ("[1]", "test_ids: expected a text or a list of texts"),
        ("{metadata: 1}", "expected a mapping"),
    ],
)
def test_a_select_that_selects_nothing_is_a_problem(tmp_path: Path, select: str, problem: str) -> None:
    ids, problems = chosen(tmp_path, select)
    assert len(problems) == 1
    assert problem in problems[0]
    assert "w.yaml:1:" in problems[0]
    assert ids in ([], ["a-1", "a-2", "b-1"])
