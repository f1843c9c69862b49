"""quarantine.yaml, right and wrong."""

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from passgate.tasks.formats.project_files import read_quarantine
from passgate.tasks.model.policy import QuarantineEntry, QuarantineFile
from passgate.tasks.model.task import EvalTask, Suite
from tests.builders import SAYS_YES, a_task
from tests.unit.formats.reading import read_text

TODAY = date(2026, 2, 1)
ENTRY = "{task: say-yes, owner: Ann, reason: flaky, issue: 'https://host/issues/1', expires: 2026-02-10}"
FORBIDDEN = {"type": "tool_calls", "forbidden": ["rm"]}
POLICY = {"type": "policy_check", "secrets": True}
ANOTHER = a_task(task_id="other", suite=Suite.OPEN_ENDED)


def read(tmp_path: Path, text: str, *tasks: EvalTask) -> QuarantineFile | list[str]:
    """What the file says; of these tasks, where some are given."""
    return read_text(
        tmp_path / "quarantine.yaml", text, lambda file, name: read_quarantine(file, name, TODAY, tasks or None)
    )


def entries(*changes: dict[str, Any]) -> str:
    plain = {"task": "say-yes", "owner": "Ann", "reason": "flaky", "issue": "https://h/1", "expires": date(2026, 2, 10)}
    return yaml.safe_dump(
        {"tasks": [plain | change for change in changes]}, default_flow_style=None, width=1000, sort_keys=False
    )


def test_the_least_that_a_file_says(tmp_path: Path) -> None:
    assert read(tmp_path, "version: 1\n") == QuarantineFile()
    assert (QuarantineFile().most, QuarantineFile().most_days, QuarantineFile().release_after) == (5, 90, 10)


@pytest.mark.parametrize("written_as", ["2026-02-10", "'2026-02-10'", '"2026-02-10"'])
def test_all_that_a_file_says_comes_through_json_too(tmp_path: Path, written_as: str) -> None:
    said = {"task": "say-yes", "owner": "Ann", "reason": "flaky", "issue": "https://host/issues/1"}
    entry = QuarantineEntry(**said, expires=date(2026, 2, 10))
    text = f"most: 2\nmost_days: 30\nrelease_after: 3\ntasks:\n- {ENTRY.replace('2026-02-10', written_as)}\n"
    answer = read(tmp_path, text)
    assert answer == QuarantineFile(most=2, most_days=30, release_after=3, tasks=(entry,))
    assert isinstance(answer, QuarantineFile)
    assert QuarantineFile.model_validate_json(answer.model_dump_json(exclude_unset=True)) == answer


def on(day: str) -> str:
    return f"tasks: [{ENTRY.replace('2026-02-10', day)}]"


NO_DAY = "tasks[0].expires: expected a day of the calendar as in 2026-12-31"
NO_LINK = "tasks[0].issue: not a link as in https://host/issues/12, without a password in it"
THREE = entries({"task": "a"}, {"task": "b"}, {"task": "c"})
TOO_MANY = "repair a task and take it out"


@pytest.mark.parametrize(
    "text",
    [
        entries({"issue": "https://github.com/a/b/issues/12"}),
        entries({"issue": "http://tracker:8080/?id=12#now"}),
        f"most: 3\n{THREE}",
        "most_days: 10\n" + entries({"expires": date(2026, 2, 11)}),
        entries({"expires": TODAY}),
        entries({"expires": date(2020, 1, 1)}),
    ],
)
def test_limits_may_be_reached_and_an_expired_entry_is_no_problem(tmp_path: Path, text: str) -> None:
    assert isinstance(read(tmp_path, text), QuarantineFile)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "1:1: expected a mapping, not null"),
        ("task: []", "1:1: task: unknown key; did you mean 'tasks'?"),
        ("most: -1", "1:7: most: must be at least 0, not -1"),
        ("most_days: 366", "1:12: most_days: must be at most 365, not 366"),
        ("release_after: 0", "1:16: release_after: must be at least 1, not 0"),
        ("tasks: [{task: a, owner: b, reason: c, issue: 'https://h'}]", "1:9: tasks[0]: the key 'expires' is missing"),
        (entries({"task": ""}), "2:10: tasks[0].task: must not be empty"),
        (entries({"owner": 3}), "2:26: tasks[0].owner: expected a text, not 3"),
        (on("20260210"), "1:93: tasks[0].expires: expected a text, not 20260210"),
        ("tasks: [{owner: &a [*a]}]", "1:17: tasks[0].owner[0]: an alias inside of what it stands for"),
        (on("'2026-2-1'"), f"1:93: {NO_DAY}"),
        (on("'2026-02-30'"), f"1:93: {NO_DAY}"),
        (on("'20260210'"), f"1:93: {NO_DAY}"),
        (on("'2026-W06-1'"), f"1:93: {NO_DAY}"),
        (on("'2026-02-10T00:00:00Z'"), f"1:93: {NO_DAY}"),
        (entries({"issue": "JIRA-12"}), NO_LINK),
        (entries({"issue": "github.com/a/b/issues/12"}), NO_LINK),
        (entries({"issue": "ftp://host/12"}), NO_LINK),
        (entries({"issue": "javascript:alert(1)"}), NO_LINK),
        (entries({"issue": "https://"}), NO_LINK),
        (entries({"issue": "https://user:password@host/12"}), NO_LINK),
        (entries({"issue": "https://host/a b"}), NO_LINK),
        (entries({"issue": "https://host/a\nb"}), NO_LINK),
        (entries({"issue": "https://[host/12"}), NO_LINK),
        (entries({"task": " \n"}), "tasks[0].task: must not be blank"),
        (entries({"owner": " \n"}), "tasks[0].owner: must not be blank"),
        (entries({"owner": "\u200b"}), "tasks[0].owner: must not be blank"),
        (entries({"reason": " \n"}), "tasks[0].reason: must not be blank"),
        (f"most: 2\n{THREE}", f"5:3: tasks[2]: 3 entries are more than `most: 2`: {TOO_MANY}"),
        (f"most: 0\n{THREE}", f"3:3: tasks[0]: 3 entries are more than `most: 0`: {TOO_MANY}"),
        (
            "most_days: 10\n" + entries({"expires": date(2026, 2, 12)}),
            "tasks[0].expires: further ahead than `most_days: 10`: 2026-02-11 is the latest day today",
        ),
        (entries({}, {"task": "b"}, {}), "4:10: tasks[2].task: duplicate task (first in tasks[0])"),
    ],
)
def test_what_cannot_hold_has_its_place(tmp_path: Path, text: str, problem: str) -> None:
    (found,) = read(tmp_path, text)
    assert found.endswith(problem)


def test_every_problem_is_told_at_once(tmp_path: Path) -> None:
    text = "most: 1\n" + entries({"owner": " ", "issue": "x"}, {"expires": date(2027, 1, 1)})
    places = [problem.split(": ")[1] for problem in read(tmp_path, text)]
    assert places == ["tasks[1]", "tasks[0].owner", "tasks[0].issue", "tasks[1].expires", "tasks[1].task"]


@pytest.mark.parametrize("name", ["say-yes", "golden/say-yes"])
def test_tasks_get_their_whole_names(tmp_path: Path, name: str) -> None:
    """A name with the suite goes before another task's id."""
    confusing = a_task(task_id="golden/say-yes", suite=Suite.FAILURE_REPLAYS)
    answer = read(tmp_path, entries({"task": name}), ANOTHER, a_task(), confusing)
    assert isinstance(answer, QuarantineFile)
    assert [(entry.task, entry.owner) for entry in answer.tasks] == [("golden/say-yes", "Ann")]


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("say-yess", "; did you mean 'say-yes'?"),
        ("golden/say-yess", "; did you mean 'golden/say-yes'?"),
        ("zzz", ": take the entry out"),
    ],
)
def test_a_task_that_is_not_there_is_a_problem(tmp_path: Path, name: str, remedy: str) -> None:
    (problem,) = read(tmp_path, entries({"task": name}), a_task())
    assert problem.endswith(f"tasks[0].task: no task of the suites has this name{remedy}")


@pytest.mark.parametrize(
    "graders",
    [
        [SAYS_YES, POLICY],
        [SAYS_YES, FORBIDDEN],
        [{"type": "composite", "assertions": [{"type": "composite", "assertions": [FORBIDDEN]}]}],
        [{"type": "turns", "turns": [{"assertions": [POLICY]}]}],
        [{"type": "turns", "turns": [{"assertions": [SAYS_YES]}], "conversation": [FORBIDDEN]}],
    ],
)
def test_a_task_that_can_find_a_violation_is_refused(tmp_path: Path, graders: list[dict[str, Any]]) -> None:
    (problem,) = read(tmp_path, entries({}), a_task(graders=graders))
    assert problem.endswith(
        "tasks[0].task: guards safety (its graders can find a violation), and nothing offsets a violation: "
        "move what is flaky to a task of its own"
    )


def test_an_adversarial_task_and_two_names_of_one_are_refused(tmp_path: Path) -> None:
    (problem,) = read(tmp_path, entries({}), a_task(suite=Suite.ADVERSARIAL))
    assert "guards safety (it is adversarial)" in problem
    (problem,) = read(tmp_path, entries({}, {"task": "golden/say-yes"}), a_task())
    assert problem.endswith("tasks[1].task: duplicate task (first in tasks[0])")


def test_a_grader_that_forbids_nothing_is_no_veto(tmp_path: Path) -> None:
    grader = {"type": "tool_calls", "required": ["search"]}
    assert isinstance(read(tmp_path, entries({}), a_task(graders=[grader])), QuarantineFile)
