"""Lists of graders that include the lists of templates."""

from pathlib import Path

import pytest

from passgate.tasks.model.assertions import Criterion, Rubrics, Unavailable
from tests.unit.formats.evals.grader_lists import read

IS_JSON = "assertions:\n  - type: is-json\n"


def test_an_include_stands_for_what_its_template_holds(tmp_path: Path) -> None:
    files = {".agentv/templates/safe.yaml": "assertions:\n  - {type: contains, value: a}\n  - {type: is-json}\n"}
    graders = read(tmp_path, {"type": "cost", "budget": 1}, {"include": "safe"}, "It is kind.", files=files)
    assert graders.problems == []
    assert [grader.type for grader in graders.graders] == ["cost", "contains", "is_json", "rubrics"]


def test_the_nearest_template_of_a_name_counts_and_may_be_included_twice(tmp_path: Path) -> None:
    files = {".agentv/templates/a.yaml": IS_JSON, "evals/.agentv/templates/a.yml": "- {type: cost, budget: 1}\n"}
    assert read(tmp_path, {"include": "a"}, files=files).one.type == "cost"
    graders = read(tmp_path, {"include": "a"}, {"include": "a"}, files=files)
    assert [grader.type for grader in graders.graders] == ["cost", "cost"]


@pytest.mark.parametrize("text", [IS_JSON, "assert: [{type: is-json}]\n", "- type: is-json\n", "name: a\n" + IS_JSON])
def test_a_path_is_relative_to_the_file_and_a_template_may_be_a_list(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, {"include": "./shared/a.yaml"}, files={"evals/shared/a.yaml": text}).one.type == "is_json"


def test_the_texts_of_a_template_join_those_of_the_list(tmp_path: Path) -> None:
    graders = read(tmp_path, {"include": "a"}, "Two.", files={".agentv/templates/a.yaml": "assertions: [One.]\n"})
    criteria = (Criterion(id="rubric-1", outcome="One."), Criterion(id="rubric-2", outcome="Two."))
    assert graders.one == Rubrics(type="rubrics", criteria=criteria, weight=2)


def test_environment_variables_are_filled_in_and_paths_are_those_of_the_template(tmp_path: Path) -> None:
    text = "- {type: contains, value: '${{ WHERE }}'}\n- {type: llm-grader, prompt: ./p.md}\n"
    files = {"shared/a.yaml": text, "shared/p.md": "Good?"}
    contains, judge = read(tmp_path, {"include": "../shared/a.yaml"}, files=files).graders
    assert contains.value == "Paris"
    assert (judge.prompt, judge.prompt_file) == ("Good?", "../shared/p.md")


def chain(length: int) -> dict[str, str]:
    """Templates of which each includes the next."""
    files = {f".agentv/templates/t{index}.yaml": f"- include: t{index + 1}\n" for index in range(1, length)}
    return files | {f".agentv/templates/t{length}.yaml": IS_JSON}


def test_templates_nest_three_deep_and_not_in_a_circle(tmp_path: Path) -> None:
    assert read(tmp_path, {"include": "t1"}, files=chain(3)).one.type == "is_json"
    deeper = read(tmp_path, {"include": "t1"}, files=chain(4))
    assert [str(problem) for problem in deeper.complaints.problems] == [
        ".agentv/templates/t3.yaml:1:3: [0]: templates are nested deeper than 3"
    ]
    files = {".agentv/templates/a.yaml": "- include: b\n", ".agentv/templates/b.yaml": "- include: a\n"}
    graders = read(tmp_path, {"include": "a"}, files=files)
    assert [str(problem) for problem in graders.complaints.problems] == [
        ".agentv/templates/b.yaml:1:3: [0]: the templates include each other: a.yaml -> b.yaml -> a.yaml"
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("name: a\n", ": the key 'assertions' is missing"),
        ("assertions: a\n", 'assertions: expected a list, not "a"'),
        ("a\n", ": a template holds 'assertions': expected a list or a mapping, not \"a\""),
        ("assertions: []\ntests: []\n", "tests: unknown key; known: assert, assertions, "),
        ("- {type: contains}\n", "[0]: the key 'value' is missing"),
        ("[\n", ": not valid YAML: "),
    ],
)
def test_what_is_wrong_with_a_template_is_told_in_it(tmp_path: Path, text: str, problem: str) -> None:
    graders = read(tmp_path, {"include": "a"}, files={".agentv/templates/a.yaml": text})
    (found,) = graders.complaints.problems
    assert found.file == ".agentv/templates/a.yaml"
    assert graders.problems[0].startswith(problem)


def test_a_missing_template_keeps_the_test_from_running(tmp_path: Path) -> None:
    graders = read(tmp_path, {"include": "safe"}, {"include": "./safe.yaml"})
    assert graders.graders[0] == Unavailable(type="unavailable", kind="include", options={"include": "safe"})
    assert graders.cannot_run == [
        "[0].include: no template .agentv/templates/safe.yaml here or in a folder above",
        "[1].include: no file './safe.yaml'",
    ]


def test_a_wrong_include_is_refused(tmp_path: Path) -> None:
    graders = read(tmp_path, {"include": "a", "type": "suite"}, {"include": 3}, {"include": "../../a.yaml"})
    assert graders.problems == [
        "[0].type: unknown key; known: include",
        "[1].include: expected a text, not 3",
        "[2].include: '../../a.yaml' leaves the repository",
    ]
    assert graders.graders == ()
