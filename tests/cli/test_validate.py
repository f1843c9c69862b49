"""`passgate validate`: every problem of every file at once, and nothing run."""

import json
import os
import re
from datetime import UTC, date, datetime, timedelta

import pytest

from tests.cli.commands import Here, exits, refused, told
from tests.project import REPOSITORY, Project

GOOD = """
task_id: {name}
suite: golden
description: A task.
inputs: {{prompt: Do it.}}
trials: {{k: 3, metric: pass^k}}
environment:
  budgets: {{max_steps: 10}}
graders:
  - type: output_check
    contains: [done]
tracked_metrics: [tokens]
"""
MISSPELT = ("contains:", "contans:")
BREAKS = [
    ("suite: golden", "suite: goldn"),
    ("k: 3", "k: 0"),
    MISSPELT,
    ("max_steps: 10", "max_steps: 21"),
    ("[tokens]\n", "[tokens]\nsuite: golden\n"),
    ("{prompt: Do it.}", "{prompt: !!python/object:os.system Do it.}"),
    ("  - type", " - type: [\n  - type"),
]
NOTHING_BLOCKS = """
version: 1
suites: {golden: {k: 3, metric: pass^k, max_steps: 10}}
gates:
  nightly: {suites: [golden], blocks_on: [latency], limits: {latency_p95_increase_pct: 15}}
"""
NO_EVAL = "runs: []\n"


def write_task(project: Project, file: str, old: str = "", new: str = "") -> None:
    """Write a task that is named as its file and has no problem until `old` becomes `new`."""
    text = GOOD.format(name=file.rpartition("/")[2].partition(".")[0])
    project.write(file, text.replace(old, new) if old else text)


def test_thirty_broken_files_are_listed_in_one_run_each_with_its_place(here: Here) -> None:
    for number in range(30):
        write_task(here, f"broken/task_{number:02}.yaml", *BREAKS[number % len(BREAKS)])
    said = refused(here, "validate", "broken")
    problems = [line for line in said.splitlines() if line.startswith("broken/")]
    assert all(re.match(r"broken/task_\d\d\.yaml:\d+:\d+: .", line) for line in problems)
    assert {line.split(":")[0] for line in problems} == {f"broken/task_{number:02}.yaml" for number in range(30)}
    assert "did you mean 'golden'?" in said
    assert "broken/task_02.yaml:11:5: graders[0].contans: unknown key; did you mean 'contains'?" in said
    assert f"{len(problems)} problems found" in said


def test_the_shipped_suites_and_policies_have_no_problems(here: Here) -> None:
    told(here, "validate", str(REPOSITORY / "suites"), str(REPOSITORY / "gates.yaml"))


def test_agents_prices_and_gates_are_checked_together_with_tasks(here: Here) -> None:
    gates = (REPOSITORY / "gates.yaml").read_text()
    files = ("agents.yaml", "prices.yaml", "task.yaml")

    def write(agent: str, price: int, *broken: str) -> None:
        here.write("agents.yaml", f"version: 1\nagents:\n  bot: {{agent: '{agent}:m'}}\n")
        here.write("prices.yaml", f"version: 1\nmodels:\n  m: {{input: {price}, output: 1}}\n")
        write_task(here, "task.yaml", *broken)

    write("clj", -1, *MISSPELT)
    said = refused(here, "validate", *files)
    assert [line.split(":")[0] for line in said.splitlines() if ".yaml:" in line] == [*files]
    write("openai", 1)
    here.write("gates.yaml", gates)
    assert told(here, "validate", *files, "gates.yaml") == "4 files, 1 task checked, no problems\n"
    here.write("gates.yaml", gates.replace("blocks_on: []", "block_on: []"))
    said = refused(here, "validate", *files, "gates.yaml")
    assert "gates.nightly.block_on: unknown key; did you mean 'blocks_on'?" in said


def test_what_cannot_be_run_is_told_beside_warnings_and_is_exit_2(here: Here) -> None:
    here.write(
        "evals/chat.eval.yaml",
        "experiment: {budget_usd: 2}\n"
        "tests:\n- {id: a, input: x, criteria: c}\n- {id: b, input: x, criteria: c, workspace: {template: ./gone}}\n",
    )
    here.write("evals/results.yaml", NO_EVAL)
    budget, other, suite, missing, last = refused(here, "validate", "evals").splitlines()
    assert budget.startswith("warning: evals/chat.eval.yaml:1:14: experiment.budget_usd: what a run may cost is said")
    assert other == "not an eval file: evals/results.yaml"
    assert suite.startswith("warning: 2 tasks name no suite and are taken as golden: write `suite:`")
    assert missing == "evals/chat.eval.yaml:4:56: tests[1].workspace.template: no file './gone'"
    assert last == "passgate: 1 problem found, nothing was run"


def test_what_a_task_has_of_its_own_is_warned_of_and_recorded(here: Here) -> None:
    free = "environment:\n  reset: {{database: seed.sql}}\n  budgets: {{gpu_minutes: 5, max_steps: 10}}\nowner: Ann\n"
    text = GOOD.replace("environment:\n  budgets: {{max_steps: 10}}\n", free)
    metrics = "[Tool-call accuracy, policy adherence, injection success rate, cleverness]"
    here.write("one.yaml", text.replace("[tokens]", metrics).format(name="one"))
    result = exits(here, 0, "validate", "one.yaml")
    assert result.stdout == "1 file, 1 task checked, no problems\n"
    warned = [line.partition(": unknown key")[0].partition(": 'clever")[0] for line in result.stderr.splitlines()]
    assert warned == [
        "warning: one.yaml:10:1: owner",
        "warning: one.yaml:8:11: environment.reset.database",
        "warning: one.yaml:9:13: environment.budgets.gpu_minutes",
        "warning: one.yaml:14:81: tracked_metrics[3]",
    ]
    (task,) = json.loads(told(here, "show", "one.yaml", "--json"))
    assert [part["path"] for part in task["unknown"]] == [line.rpartition(": ")[2] for line in warned]
    assert task["tracked_metrics"] == ["tool_call_accuracy", "policy_adherence", "injection_success_rate"]


@pytest.mark.parametrize("command", [("validate", "suites"), ("run", "ci_merge"), ("try", "golden/one")], ids=" ".join)
def test_a_misspelt_limit_keeps_a_task_from_being_run(here: Here, command: tuple[str, ...]) -> None:
    write_task(here, "suites/golden/one.yaml", "max_steps", "max_step")
    write_task(here, "suites/golden/two.yaml")
    misspelt = "one.yaml:8:13: environment.budgets.max_step: unknown key; did you mean 'max_steps'?"
    assert misspelt in refused(here, *command)
    exits(here, 3, "try", "golden/two")  # It has no reference, and is not refused


def test_of_many_files_that_are_no_evals_only_some_are_named(here: Here) -> None:
    here.write("evals/chat.eval.yaml", "tests:\n- {id: a, input: x, criteria: c}\n")
    for number in range(25):
        here.write(f"evals/results_{number:02}.yaml", NO_EVAL)
    lines = exits(here, 0, "validate", "evals").stderr.splitlines()
    named = [line for line in lines if line.startswith("not an eval file")]
    assert (len(named), named[-1]) == (21, "not an eval file: 5 more")


IN_A_WEEK = datetime.now(UTC).date() + timedelta(days=7)


def write_quarantine(project: Project, *tasks: str, expires: date = IN_A_WEEK) -> None:
    known = f"owner: Ann, reason: flaky, issue: 'https://host/1', expires: {expires}"
    entries = "".join(f"- {{task: {task}, {known}}}\n" for task in tasks)
    project.write("quarantine.yaml", f"tasks:\n{entries}")


def test_a_quarantine_is_checked_alone_and_against_the_tasks_where_all_are_given(here: Here) -> None:
    write_quarantine(here, "one", expires=IN_A_WEEK + timedelta(days=300))
    too_far = "quarantine.yaml:2:76: tasks[0].expires: further ahead than `most_days: 90`"
    assert too_far in refused(here, "validate", "quarantine.yaml")
    write_task(here, "suites/golden/one.yaml")
    write_quarantine(here, "one", "golden/two")
    for paths in ((), ("suites/golden",), ("suites/golden/one.yaml",)):
        told(here, "validate", "quarantine.yaml", *paths)
    said = refused(here, "validate", "quarantine.yaml", "suites")
    assert "quarantine.yaml:3:10: tasks[1].task: no task of the suites has this name; did you mean" in said
    write_quarantine(here, "one")
    said = told(here, "validate", "quarantine.yaml", "suites")
    assert said == "2 files, 1 task checked, no problems\n"


def test_broken_tasks_hide_no_problem_of_the_quarantine_and_make_none(here: Here) -> None:
    write_task(here, "suites/golden/one.yaml", *MISSPELT)
    write_quarantine(here, "one", "one")
    said = refused(here, "validate", "quarantine.yaml", "suites")
    assert "did you mean 'contains'?" in said
    assert "duplicate task" in said
    assert "no task of the suites has this name" not in said


def test_a_grader_that_cannot_fail_is_found_where_a_gate_would_block_on_it(here: Here) -> None:
    write_task(here, "suites/golden/one.yaml", "contains: [done]", "matches: '.*'")
    said = refused(here, "validate", "suites")
    assert "suites/golden/one.yaml:10:5: graders[0]: the grader 'output_check' cannot fail: every" in said
    here.write("gates.yaml", NOTHING_BLOCKS)
    told(here, "validate", "suites")


@pytest.mark.parametrize(
    "names",
    [
        ("gates.yaml", "agents.yaml", "prices.yaml", "quarantine.yaml", "baseline.yaml"),
        ("/dev/null", "/dev/zero", "pipe.yaml"),
    ],
    ids=["folders", "devices and a pipe"],
)
def test_what_is_no_regular_file_is_refused_without_a_look_into_it(here: Here, names: tuple[str, ...]) -> None:
    os.mkfifo(here.path / "pipe.yaml")
    if "pipe.yaml" not in names:
        for name in names:
            (here.path / name).mkdir()
    said = refused(here, "validate", *names)
    for name in names:
        assert re.search(rf"{name}:1:1: (cannot be read: it is not a regular file|this is not a file)", said), said


@pytest.mark.parametrize("command", ["validate", "show", "try", "check-graders"])
@pytest.mark.parametrize(
    ("gates", "message"),
    [
        ("gone.yaml", "no gates file gone.yaml: name one with --gates"),
        ("suites", "suites:1:1: cannot be read: it is not a regular file"),
        ("/dev/null", "/dev/null:1:1: cannot be read: it is not a regular file"),
    ],
)
def test_named_gates_that_are_no_file_are_refused(here: Here, command: str, gates: str, message: str) -> None:
    write_task(here, "suites/golden/one.yaml")
    assert message in refused(here, command, "suites/golden/one.yaml", "--gates", gates)


def test_github_is_told_why_there_is_no_verdict(here: Here) -> None:
    write_task(here, "suites/golden/a.yaml", *MISSPELT)
    summary = here.path.parent / "summary.md"
    told_to = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    line = "::error file=suites/golden/a.yaml,line=11,title=passgate%3A no verdict::"
    assert line in exits(here, 2, "run", "ci_merge", **told_to).stderr
    assert "**passgate: no verdict.** " in summary.read_text()
    assert "suites/golden/a.yaml" in summary.read_text()
    assert "::error title=passgate%3A no verdict::" in exits(here, 2, "run", "ci_merg", **told_to).stderr
    assert summary.read_text().count("no verdict") == 2
    assert "::error" not in exits(here, 2, "run", "ci_merge").stderr
