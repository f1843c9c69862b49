"""Which suite a test belongs to, what it is called among all tasks, and what is known of it besides."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.formats.evals.map.labels import merged
from passgate.tasks.formats.evals.read.paths import Ground, full_id
from passgate.tasks.model.task import Suite
from tests.builders import SHIPPED
from tests.unit.formats.evals.eval_tasks import SOUND, read_file, read_test, read_tests


@pytest.mark.parametrize(
    ("top", "said", "suite"),
    [
        ({"suite": "adversarial"}, {}, Suite.ADVERSARIAL),
        ({"metadata": {"suite": "open_ended"}}, {}, Suite.OPEN_ENDED),
        ({"tags": ["x", "failure_replays"]}, {}, Suite.FAILURE_REPLAYS),
        ({"suite": "adversarial"}, {"metadata": {"suite": "golden"}}, Suite.GOLDEN),
    ],
)
def test_a_file_or_a_test_names_its_suite(
    tmp_path: Path, top: dict[str, Any], said: dict[str, Any], suite: Suite
) -> None:
    task = read_test(tmp_path, top, **said).one
    assert (task.suite, task.suite_assumed) == (suite, False)


def test_else_the_folder_does(tmp_path: Path) -> None:
    task = read_tests(tmp_path, SOUND, name="adversarial/chat/EVAL.yaml").one
    assert (task.suite, task.suite_assumed, task.k) == (Suite.ADVERSARIAL, False, 10)


def test_without_any_it_is_assumed_to_be_golden(tmp_path: Path) -> None:
    task = read_test(tmp_path).one
    assert (task.suite, task.suite_assumed) == (Suite.GOLDEN, True)


def test_a_suite_of_another_name_is_the_other_tools(tmp_path: Path) -> None:
    task = read_test(tmp_path, {"suite": "math-tests"}).one
    assert (task.suite_assumed, task.metadata) == (True, {"suite": "math-tests"})


def test_a_file_in_the_folder_of_another_suite_is_a_problem(tmp_path: Path) -> None:
    answer = read_tests(tmp_path, SOUND, top={"suite": "golden"}, name="adversarial/EVAL.yaml")
    assert answer.problems == [
        "tests[0]: the file lies in the folder of adversarial; move it or write `suite: adversarial`"
    ]


def test_a_suite_that_the_policy_does_not_know_is_a_problem(tmp_path: Path) -> None:
    policy = SHIPPED.model_copy(update={"suites": {Suite.ADVERSARIAL: SHIPPED.suites[Suite.ADVERSARIAL]}})
    (problem,) = read_tests(tmp_path, SOUND, policy=policy).problems
    assert problem == "tests[0]: the gates file says nothing of the suite golden under `suites:`"


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("golden/chat.eval.yaml", "chat/t"),
        ("golden/deep/chat.eval.yml", "deep/chat/t"),
        ("golden/review/EVAL.yaml", "review/t"),
        ("EVAL.yaml", "t"),
        ("review/dataset.jsonl", "review/dataset/t"),
        ("a.b.EVAL.yaml", "a.b/t"),
        ("../outside/x.yaml", "outside/x/t"),
    ],
)
def test_a_test_is_named_by_its_file(tmp_path: Path, file: str, name: str) -> None:
    ground = Ground(tmp_path / "suites", tmp_path)
    assert full_id("t", (tmp_path / "suites" / file), ground) == name
    assert full_id("t", (tmp_path / "suites" / file), ground, "short") == f"{name}#short"


def test_tests_of_an_include_are_named_by_the_file_that_is_run(tmp_path: Path) -> None:
    files = {"cases.yaml": "- {id: a, input: x, criteria: c}\n"}
    (task,) = read_file(
        tmp_path,
        {"tests": ["./cases.yaml"]},
        name="golden/all.eval.yaml",
        files=files | {"golden/cases.yaml": files["cases.yaml"]},
    ).tasks
    assert (task.task_id, task.file, task.line) == ("all/a", "golden/cases.yaml", 1)


def test_metadata_of_the_file_lies_under_that_of_the_test(tmp_path: Path) -> None:
    top = {
        "metadata": {"tags": ["a", "b"], "owner": {"team": "x", "since": 1}, "level": 1},
        "governance": {"risk_tier": "high"},
        "tags": ["top"],
    }
    own = {"tags": ["b", "c"], "owner": {"team": "y"}, "level": 2}
    task = read_test(tmp_path, top, metadata=own, governance={"owner": "me"}).one
    assert task.metadata == {
        "tags": ["a", "b", "c"],
        "owner": {"team": "y", "since": 1},
        "level": 2,
        "governance": {"risk_tier": "high", "owner": "me"},
    }
    assert task.tags == ("top", "a", "b", "c")


def test_tags_may_have_values(tmp_path: Path) -> None:
    assert read_test(tmp_path, {"tags": {"experiment": "x", "n": 1}}).one.tags == ("experiment=x", "n=1")


def test_lists_are_joined_without_repeating() -> None:
    assert merged({"a": [1, True, {"b": 1}]}, {"a": [True, 1.0, {"b": 1}, 2]}) == {"a": [1, True, {"b": 1}, 2]}
