"""`passgate validate`: every problem of every file at once, and nothing run."""

import json
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta

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

BREAKS: list[Callable[[str], str]] = [
    lambda text: text.replace("suite: golden", "suite: goldn"),
    lambda text: text.replace("k: 3", "k: 0"),
    lambda text: text.replace("contains:", "contans:"),
    lambda text: text.replace("max_steps: 10", "max_steps: 21"),
    lambda text: text.replace("type: output_check", "type: outputcheck"),
    lambda text: text.replace("[tokens]", "[]"),
    lambda text: text.replace("inputs: {prompt: Do it.}", "inputs: [a, b]"),
    lambda text: text.replace("description: A task.\n", ""),
    lambda text: text + "suite: golden\n",
    lambda text: text.replace("environment:", "enviroment:"),
    lambda text: text.replace("{prompt: Do it.}", "{prompt: !!python/object:os.system Do it.}"),
    lambda text: text.replace("  - type", " - type: [\n  - type"),
    lambda text: text.replace("contains: [done]", "matches: '('"),
    lambda text: text.replace("pass^k", "pass^2"),
    lambda text: text.replace("max_steps: 10", "max_stepps: 10"),
]

NOTHING_BLOCKS = """
version: 1
suites: {golden: {k: 3, metric: pass^k, max_steps: 10}}
gates:
  nightly: {suites: [golden], blocks_on: [latency], limits: {latency_p95_increase_pct: 15}}
"""


def test_thirty_broken_files_are_listed_in_one_run_each_with_its_place(bare_project: Project) -> None:
    for number in range(30):
        text = GOOD.format(name=f"task_{number}")
        bare_project.write(f"broken/task_{number:02}.yaml", BREAKS[number % len(BREAKS)](text))
    result = bare_project.passgate("validate", "broken")
    assert result.returncode == 2
    assert result.stdout == ""
    problems = [line for line in result.stderr.splitlines() if line.startswith("broken/")]
    assert all(re.match(r"broken/task_\d\d\.yaml:\d+:\d+: .", line) for line in problems)
    assert {line.split(":")[0] for line in problems} == {f"broken/task_{number:02}.yaml" for number in range(30)}
    assert "did you mean 'golden'?" in result.stderr
    assert "did you mean 'contains'?" in result.stderr
    assert f"{len(problems)} problems found" in result.stderr


def test_problems_stand_where_the_mistake_is(bare_project: Project) -> None:
    file = bare_project.write("one.yaml", GOOD.format(name="one").replace("contains:", "contans:"))
    lines = file.read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if "contans" in text)
    column = lines[line - 1].index("contans") + 1
    result = bare_project.passgate("validate", "one.yaml")
    assert f"one.yaml:{line}:{column}: graders[0].contans: unknown key; did you mean 'contains'?" in result.stderr


def test_the_shipped_suites_and_policies_have_no_problems(bare_project: Project) -> None:
    result = bare_project.passgate("validate", str(REPOSITORY / "suites"), str(REPOSITORY / "gates.yaml"))
    assert result.returncode == 0, result.stderr


def test_a_path_that_does_not_exist_is_bad_usage(bare_project: Project) -> None:
    result = bare_project.passgate("validate", "nowhere")
    assert result.returncode == 2
    assert "nowhere" in result.stderr


def test_a_folder_without_tasks_is_not_called_valid(bare_project: Project) -> None:
    (bare_project.path / "empty").mkdir()
    assert bare_project.passgate("validate", "empty").returncode == 2


def test_a_broken_gates_file_is_checked_too(bare_project: Project) -> None:
    text = (REPOSITORY / "gates.yaml").read_text().replace("blocks_on: []", "block_on: []")
    bare_project.write("gates.yaml", text)
    result = bare_project.passgate("validate", "gates.yaml")
    assert result.returncode == 2
    assert "gates.nightly.block_on: unknown key; did you mean 'blocks_on'?" in result.stderr


def test_agents_and_prices_are_checked_together_with_tasks(bare_project: Project) -> None:
    bare_project.write("agents.yaml", "version: 1\nagents:\n  bot: {agent: 'clj:my-agent'}\n")
    bare_project.write("prices.yaml", "version: 1\nmodels:\n  m: {input: -1, output: 1}\n")
    bare_project.write("task.yaml", GOOD.format(name="one").replace("contains:", "contans:"))
    result = bare_project.passgate("validate", "agents.yaml", "prices.yaml", "task.yaml")
    assert result.returncode == 2
    assert [line.split(":")[0] for line in result.stderr.splitlines() if ".yaml:" in line] == [
        "agents.yaml",
        "prices.yaml",
        "task.yaml",
    ]
    bare_project.write("agents.yaml", "version: 1\nagents:\n  bot: {agent: 'openai:m'}\n")
    bare_project.write("prices.yaml", "version: 1\nmodels:\n  m: {input: 1, output: 1}\n")
    bare_project.write("task.yaml", GOOD.format(name="one"))
    result = bare_project.passgate("validate", "agents.yaml", "prices.yaml", "task.yaml")
    assert (result.returncode, result.stdout) == (0, "3 files, 1 task checked, no problems\n")


def test_eval_files_are_checked_and_counted_with_the_tasks(bare_project: Project) -> None:
    bare_project.write("golden/one.yaml", GOOD.format(name="one"))
    bare_project.write(
        "golden/chat.eval.yaml", "tests:\n- {id: a, input: x, criteria: c}\n- {id: b, input: x, criteria: c}\n"
    )
    result = bare_project.passgate("validate", "golden")
    assert (result.returncode, result.stdout, result.stderr) == (0, "2 files, 3 tasks checked, no problems\n", "")


def test_what_cannot_be_run_is_told_beside_warnings_and_is_exit_2(bare_project: Project) -> None:
    bare_project.write(
        "evals/chat.eval.yaml",
        "experiment: {budget_usd: 2}\n"
        "tests:\n- {id: a, input: x, criteria: c}\n- {id: b, input: x, criteria: c, workspace: {template: ./gone}}\n",
    )
    bare_project.write("evals/results.yaml", "runs: []\n")
    result = bare_project.passgate("validate", "evals")
    assert (result.returncode, result.stdout) == (2, "")
    budget, other, suite, missing, last = result.stderr.splitlines()
    assert budget.startswith("warning: evals/chat.eval.yaml:1:14: experiment.budget_usd: what a run may cost is said")
    assert other == "not an eval file: evals/results.yaml"
    assert suite.startswith("warning: 2 tasks name no suite and are taken as golden: write `suite:`")
    assert missing == "evals/chat.eval.yaml:4:56: tests[1].workspace.template: no file './gone'"
    assert last == "passgate: 1 problem found, nothing was run"


def test_what_a_task_has_of_its_own_is_warned_of_and_recorded(bare_project: Project) -> None:
    free = "environment:\n  reset: {{database: seed.sql}}\n  budgets: {{gpu_minutes: 5, max_steps: 10}}\nowner: Ann\n"
    text = GOOD.replace("environment:\n  budgets: {{max_steps: 10}}\n", free)
    metrics = "[Tool-call accuracy, policy adherence, injection success rate, cleverness]"
    bare_project.write("one.yaml", text.replace("[tokens]", metrics).format(name="one"))
    result = bare_project.passgate("validate", "one.yaml")
    assert (result.returncode, result.stdout) == (0, "1 file, 1 task checked, no problems\n")
    told = [line.partition(": unknown key")[0].partition(": 'clever")[0] for line in result.stderr.splitlines()]
    assert told == [
        "warning: one.yaml:10:1: owner",
        "warning: one.yaml:8:11: environment.reset.database",
        "warning: one.yaml:9:13: environment.budgets.gpu_minutes",
        "warning: one.yaml:14:81: tracked_metrics[3]",
    ]
    shown = bare_project.passgate("show", "one.yaml", "--json")
    (task,) = json.loads(shown.stdout)
    assert [part["path"] for part in task["unknown"]] == [line.rpartition(": ")[2] for line in told]
    assert task["tracked_metrics"] == ["tool_call_accuracy", "policy_adherence", "injection_success_rate"]


def test_a_misspelt_limit_keeps_a_task_from_being_run(bare_project: Project) -> None:
    bare_project.write("suites/golden/one.yaml", GOOD.format(name="one").replace("max_steps", "max_step"))
    bare_project.write("suites/golden/two.yaml", GOOD.format(name="two"))
    for command in (("validate", "suites"), ("run", "ci_merge"), ("try", "golden/one")):
        result = bare_project.passgate(*command)
        assert (result.returncode, result.stdout) == (2, "")
        assert "one.yaml:8:13: environment.budgets.max_step: unknown key; did you mean 'max_steps'?" in result.stderr
    assert bare_project.passgate("try", "golden/two").returncode == 3, "it has no reference, and is not refused"


def test_of_many_files_that_are_no_evals_only_some_are_named(bare_project: Project) -> None:
    bare_project.write("evals/chat.eval.yaml", "tests:\n- {id: a, input: x, criteria: c}\n")
    for number in range(25):
        bare_project.write(f"evals/results_{number:02}.yaml", "runs: []\n")
    lines = bare_project.passgate("validate", "evals").stderr.splitlines()
    told = [line for line in lines if line.startswith("not an eval file")]
    assert (len(told), told[-1]) == (21, "not an eval file: 5 more")


def test_the_problems_of_an_eval_file_stand_where_the_mistakes_are(bare_project: Project) -> None:
    bare_project.write(
        "golden/chat.eval.yaml",
        "tests:\n  - id: a\n    input: x\n    criteria: c\n    assert:\n      - type: contians\n        value: x\n",
    )
    bare_project.write("golden/many.jsonl", '{"id": "a", "input": "x", "criteria": "c"}\n{"id": "a", "input": 3}\n')
    result = bare_project.passgate("validate", "golden")
    assert result.returncode == 2
    assert "golden/chat.eval.yaml:6:15: tests[0].assert[0].type: unknown evaluator 'contians'" in result.stderr
    assert "golden/many.jsonl:2:22: input: expected a text, a message or messages, not 3" in result.stderr


ENTRY = "task: {task}, owner: Ann, reason: flaky, issue: 'https://host/1', expires: {expires}"
IN_A_WEEK = datetime.now(UTC).date() + timedelta(days=7)


def quarantine(*tasks: str, expires: date = IN_A_WEEK) -> str:
    return "tasks:\n" + "".join(f"- {{{ENTRY.format(task=task, expires=expires)}}}\n" for task in tasks)


def test_a_quarantine_is_checked_alone(bare_project: Project) -> None:
    bare_project.write("quarantine.yaml", quarantine("say-yes"))
    result = bare_project.passgate("validate", "quarantine.yaml")
    assert (result.returncode, result.stdout) == (0, "1 file checked, no problems\n")
    bare_project.write("quarantine.yaml", quarantine("say-yes", expires=IN_A_WEEK + timedelta(days=300)))
    result = bare_project.passgate("validate", "quarantine.yaml")
    assert result.returncode == 2
    assert "quarantine.yaml:2:" in result.stderr
    assert "tasks[0].expires: further ahead than `most_days: 90`" in result.stderr


def test_a_quarantine_is_held_against_the_tasks_where_all_are_given(bare_project: Project) -> None:
    bare_project.write("suites/golden/one.yaml", GOOD.format(name="one"))
    bare_project.write("quarantine.yaml", quarantine("one", "golden/two"))
    for paths in (
        ["quarantine.yaml"],
        ["quarantine.yaml", "suites/golden"],
        ["suites/golden/one.yaml", "quarantine.yaml"],
    ):
        result = bare_project.passgate("validate", *paths)
        assert result.returncode == 0, result.stderr
    result = bare_project.passgate("validate", "quarantine.yaml", "suites")
    assert result.returncode == 2
    assert "quarantine.yaml:3:10: tasks[1].task: no task of the suites has this name; did you mean" in result.stderr
    bare_project.write("quarantine.yaml", quarantine("one"))
    result = bare_project.passgate("validate", "quarantine.yaml", "suites")
    assert (result.returncode, result.stdout) == (0, "2 files, 1 task checked, no problems\n")


def test_broken_tasks_hide_no_problem_of_the_quarantine_and_make_none(bare_project: Project) -> None:
    bare_project.write("suites/golden/one.yaml", GOOD.format(name="one").replace("contains:", "contans:"))
    bare_project.write("quarantine.yaml", quarantine("one", "one"))
    result = bare_project.passgate("validate", "quarantine.yaml", "suites")
    assert result.returncode == 2
    assert "did you mean 'contains'?" in result.stderr
    assert "the task stands here a second time" in result.stderr
    assert "no task of the suites has this name" not in result.stderr


def test_a_grader_that_cannot_fail_is_found_where_a_gate_would_block_on_it(bare_project: Project) -> None:
    bare_project.write("suites/golden/one.yaml", GOOD.format(name="one").replace("contains: [done]", "matches: '.*'"))
    refused = bare_project.passgate("validate", "suites")
    assert refused.returncode == 2
    assert "suites/golden/one.yaml:10:5: graders[0]: the grader 'output_check' cannot fail: every" in refused.stderr
    bare_project.write("gates.yaml", NOTHING_BLOCKS)
    assert bare_project.passgate("validate", "suites").returncode == 0
