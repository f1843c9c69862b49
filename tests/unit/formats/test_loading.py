from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from passgate.tasks.errors import InputError, UsageError
from passgate.tasks.formats.loading import (
    load_paths,
    load_pins,
    load_policy,
    load_prices,
    load_quarantine,
    load_tasks,
    policy_or_default,
)
from passgate.tasks.model.baseline import Pins
from passgate.tasks.model.policy import QuarantineFile
from passgate.tasks.model.task import GateName, Suite
from tests.builders import SHIPPED, a_task, write_task
from tests.unit.formats.reading import beginnings
from tests.unit.suite_files import add, add_all, begin_project

TASK, TALK = a_task(), a_task(task_id="talk", suite=Suite.OPEN_ENDED)
ATTACK = a_task(task_id="attack", suite=Suite.ADVERSARIAL)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository to work in, with a suites folder and the shipped gates."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".git").mkdir()
    return begin_project(tmp_path)


EVAL = """
tests:
  - {id: one, input: Hi, criteria: Is kind.}
  - {id: two, input: Hi, criteria: Is kind., assert: [{type: llm_judge, prompt: ./gone.md}]}
"""
TODAY = datetime.now(UTC).date()


def write(name: str, text: str) -> Path:
    file = Path(name)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


def refused(load: Callable[[], object]) -> list[str]:
    with pytest.raises(InputError) as caught:
        load()
    return [str(problem) for problem in caught.value.problems]


def test_the_problems_of_all_files_come_together() -> None:
    add("golden/a", tags="x")
    add("golden/b")
    add("golden/c", inputs=3, tracked_metrics=[])
    write("suites/golden/chat.eval.yaml", EVAL.replace("Is kind., assert", "1, assert"))
    problems = refused(lambda: load_tasks(Path("suites"), SHIPPED))
    assert [(problem.split(":")[0], problem.split(": ")[1]) for problem in problems] == [
        ("suites/golden/a.yaml", "tags"),
        ("suites/golden/c.yaml", "inputs"),
        ("suites/golden/c.yaml", "tracked_metrics"),
        ("suites/golden/chat.eval.yaml", "tests[1].criteria"),
    ]


def test_a_task_id_that_stands_twice_is_a_problem_of_the_second_file() -> None:
    add_all("golden/a", "adversarial/a")
    (problem,) = refused(lambda: load_tasks(Path("suites"), SHIPPED))
    assert problem == "suites/golden/a.yaml:9:1: task_id: 'a' is also the task_id of suites/adversarial/a.yaml:9"


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="no suites folder gone: name one with --suites"):
        load_tasks(Path("gone"), SHIPPED)
    with pytest.raises(UsageError, match=r"no gates file gone\.yaml: name one with --gates"):
        load_policy(Path("gone.yaml"))
    loaded = load_paths([Path("gone.yaml")], SHIPPED)
    (problem,) = loaded.problems
    assert loaded.tasks == ()
    assert "cannot be read" in problem.message


def test_the_shipped_policy_stands_in_where_no_gates_file_is_named() -> None:
    assert policy_or_default(Path("gates.yaml")) == SHIPPED
    with pytest.raises(UsageError, match=r"no gates file gone\.yaml"):
        policy_or_default(Path("gone.yaml"))
    write("own.yaml", "suites: {golden: {k: 1, metric: mean, max_steps: 1}}\ngates: {nightly: {suites: [golden]}}\n")
    assert list(policy_or_default(Path("own.yaml")).gates) == [GateName.NIGHTLY]


def test_files_and_folders_can_be_validated_alone() -> None:
    good, bad = add("golden/a"), add("golden/b", inputs=3)
    one = load_paths([good], SHIPPED)
    assert ([task.task_id for task in one.tasks], one.problems) == (["a"], ())
    both = load_paths([Path("suites")], SHIPPED)
    assert ([task.task_id for task in both.tasks], [problem.file for problem in both.problems]) == (["a"], [str(bad)])


def test_a_file_that_is_named_twice_is_one_and_files_of_two_worlds_may_have_the_same_id() -> None:
    file = add("golden/a")
    loaded = load_paths([file, Path("suites"), file], SHIPPED)
    assert (len(loaded.tasks), loaded.problems, loaded.files) == (1, (), 1)
    first, second = write_task(Path("one/golden/a.yaml")), write_task(Path("two/golden/a.yaml"))
    loaded = load_paths([first, second], SHIPPED)
    assert (len(loaded.tasks), loaded.problems) == (2, ())


def test_prices_beside_the_gates_file_go_before_the_shipped_ones() -> None:
    write("policies/prices.yaml", "models: {gpt-5*: {input: 7, output: 8}, mine: {input: 0, output: 0}}\n")
    prices, shipped = load_prices(Path("policies/gates.yaml")), load_prices(Path("gates.yaml"))
    assert [price and price.input for price in map(prices.price, ("gpt-5-mini", "mine"))] == [7, 0]
    assert prices.price("gpt-4o") == shipped.price("gpt-4o")
    price = shipped.price("gpt-5-mini")
    assert price is not None
    assert price.input > 0


def test_pins_stand_beside_the_gates_file() -> None:
    write("policies/baseline.yaml", "commit: abc\nreason: why\n")
    assert load_pins(Path("policies/gates.yaml")) == Pins(commit="abc", reason="why")
    assert load_pins(Path("gates.yaml")) is None


def quarantine_of(*tasks: str, days: int) -> str:
    entry = f"owner: Ann, reason: flaky, issue: 'https://host/1', expires: {TODAY + timedelta(days)}"
    return "tasks:\n" + "".join(f"- {{task: {task}, {entry}}}\n" for task in tasks)


@pytest.mark.parametrize(
    ("name", "text", "load", "places"),
    [
        ("gates.yaml", "version: 2\n", load_policy, ["1:1: the key", "1:1: the key", "1:10: version"]),
        ("prices.yaml", "models: {a: {input: 1}, b: {output: 1}}\n", load_prices, ["1:13: models.a", "1:28: models.b"]),
        ("baseline.yaml", "commit: abc\nruns: [a]\nreason: why\n", load_pins, ["2:1: runs"]),
        (
            "quarantine.yaml",
            quarantine_of("gone", "attack", days=400),
            lambda gates: load_quarantine(gates, [TASK, ATTACK]),
            ["2:10: tasks[0].task", "2:77: tasks[0].expires", "3:10: tasks[1].task", "3:79: tasks[1].expires"],
        ),
    ],
)
def test_a_broken_project_file_is_refused_with_its_places(
    name: str, text: str, load: Callable[[Path], object], places: list[str]
) -> None:
    write(name, text)
    problems = refused(lambda: load(Path("gates.yaml")))
    assert beginnings(problems, [f"{name}:{place}" for place in places]) == [f"{name}:{place}" for place in places]


def test_tasks_and_evals_of_a_folder_are_read_together() -> None:
    assert load_tasks(Path("suites"), SHIPPED) == ()
    add("golden/a")
    write("suites/adversarial/chat/EVAL.yaml", EVAL)
    write("suites/golden/many.jsonl", '{"id": "x", "input": "Hi", "criteria": "c"}\n')
    names = [(task.suite, task.task_id) for task in load_tasks(Path("suites"), SHIPPED)]
    assert names == [("adversarial", "chat/one"), ("adversarial", "chat/two"), ("golden", "a"), ("golden", "many/x")]


def test_the_same_test_in_two_files_of_one_name_is_a_problem_of_the_second() -> None:
    write("suites/golden/chat.eval.yaml", EVAL)
    write("suites/adversarial/chat.eval.yaml", EVAL)
    assert [problem.message for problem in load_paths([Path("suites")], SHIPPED).problems] == [
        f"'chat/{name}' is also the task_id of suites/adversarial/chat.eval.yaml:{line}"
        for name, line in (("one", 3), ("two", 4))
    ]


def test_what_there_is_to_say_of_files_beside_their_problems() -> None:
    write("evals/chat.eval.yaml", "experiment: {budget_usd: 1}\n" + EVAL)
    write("evals/results.yaml", "runs: [1]\n")
    loaded = load_paths([Path("evals")], SHIPPED)
    (warning,) = loaded.warnings
    assert str(warning).startswith("evals/chat.eval.yaml:1:14: experiment.budget_usd: what a run may cost is said")
    assert [problem.message for problem in loaded.cannot_run] == ["no file './gone.md'"]
    assert ([task.task_id for task in loaded.tasks], loaded.files) == (["chat/one", "chat/two"], 1)
    assert loaded.others == (Path("evals/results.yaml"),)


def test_a_folder_outside_of_suites_is_what_its_files_are_named_in() -> None:
    write("evals/deep/chat.eval.yaml", EVAL)
    (one, _) = load_paths([Path("evals")], SHIPPED).tasks
    (alone, _) = load_paths([Path("evals/deep/chat.eval.yaml")], SHIPPED).tasks
    assert (one.task_id, alone.task_id) == ("deep/chat/one", "chat/one")


def test_quarantine_stands_beside_the_gates_file() -> None:
    write("policies/quarantine.yaml", quarantine_of("say-yes", "open_ended/talk", days=7))
    quarantine = load_quarantine(Path("policies/gates.yaml"), [ATTACK, TALK, TASK])
    assert [entry.task for entry in quarantine.tasks] == ["golden/say-yes", "open_ended/talk"]
    assert load_quarantine(Path("gates.yaml"), [TASK]) == QuarantineFile()
    write("quarantine.yaml", quarantine_of("say-yes", days=-400))
    assert len(load_quarantine(Path("gates.yaml"), [TASK]).tasks) == 1


def test_folders_in_the_place_of_files_are_refused(folder: Path) -> None:
    for name in ("baseline.yaml", "quarantine.yaml"):
        (folder / name).mkdir()
    assert "not a regular file" in refused(lambda: load_pins(Path("gates.yaml")))[0]
    assert "not a regular file" in refused(lambda: load_quarantine(Path("gates.yaml"), []))[0]
