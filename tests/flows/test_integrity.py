"""A change that edits what it is judged by: whole runs in real repositories."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from passgate.flows.integrity import RunTrials, judge_integrity, shared_trials
from passgate.tasks.errors import StorageError
from passgate.tasks.history.baseline import COLUMNS
from passgate.tasks.history.journal import read_journal
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.policy import JudgePolicy
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.quotes import Masker
from passgate.tasks.model.run import Base, Edit, Plan, RunRequest
from passgate.tasks.model.task import Budgets
from passgate.tasks.model.transcript import Transcript
from passgate.tasks.model.trial import FinishedTrial, Trial, TrialMetrics
from passgate.tasks.model.verdict import Decision, Integrity, Verdict
from passgate.tasks.planning.baseline import EarlierRuns, Pool
from tests.builders import a_plan, a_policy, a_task, trials_of, verdict_on
from tests.gates import newest_run, verdict_of
from tests.project import Project
from tests.scenarios import Scenarios
from tests.scenarios.integrity import AGENT, commit, gate_on_main, loosened_and_broken, task

NO_RUNS = EarlierRuns(pd.DataFrame(columns=list(COLUMNS)))


@pytest.fixture
def gated(scenario: Scenarios, tmp_path: Path) -> Project:
    """Two tasks and an agent that does both, on main; the branch `change` is checked out."""
    return scenario(gate_on_main).copy(tmp_path / "repository")


def run(project: Project, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """The exit code, the verdict and all that was printed."""
    result = project.passgate("run", "ci_merge", "--agent", AGENT, *arguments)
    return result.returncode, verdict_of(project), result.stdout + result.stderr


def lines(journal: Path) -> dict[tuple[str, int], dict[str, Any]]:
    trials = (json.loads(line)["trial"] for line in journal.read_text().splitlines())
    return {(trial["task_id"], trial["trial"]): trial for trial in trials}


def test_a_change_that_loosens_a_grader_and_breaks_the_task_it_grades_is_blocked(scenario: Scenarios) -> None:
    red = scenario(loosened_and_broken)
    ended, verdict = red.ended(), verdict_of(red)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert verdict["decision"] == "FAIL"
    assert [reason["task_id"] for reason in verdict["reasons"] if reason["blocking"]] == ["a"]
    assert verdict["reasons"][0]["file"] == "suites/golden/a.yaml"
    base = red.git("rev-parse", "main")
    assert verdict["integrity"]["base"] == base
    assert verdict["integrity"]["edits"] == [
        {"path": "suites/golden/a.yaml", "kind": "changed", "what": "tasks and graders", "grades": True}
    ]
    assert verdict["integrity"]["change"]["decision"] == "PASS"
    note = f"this change edits what it is judged by (1 file): this run uses the files of the merge base {base[:12]}"
    assert note in verdict["notes"]
    assert "suites/golden/a.yaml" in ended.stdout + ended.stderr


def test_each_trial_that_is_the_same_for_both_is_run_once_and_only_the_merge_base_s_are_history(
    scenario: Scenarios,
) -> None:
    red = scenario(loosened_and_broken)
    folder = newest_run(red)
    of_base, of_change = lines(folder / "journal.jsonl"), lines(folder / "change/journal.jsonl")
    assert set(of_base) == set(of_change) == {("a", 0), ("a", 1), ("b", 0), ("b", 1)}
    same = {key for key in of_base if of_base[key]["started_at"] == of_change[key]["started_at"]}
    assert same == {("b", 0), ("b", 1)}
    rows = pd.read_parquet(red.path / ".passgate" / "history" / "trials")
    assert (set(rows["run_id"]), len(rows)) == ({folder.name}, 4)


def test_an_interrupted_run_goes_on_and_gives_both_verdicts(scenario: Scenarios, tmp_path: Path) -> None:
    red = scenario(loosened_and_broken).copy(tmp_path / "repository")
    folder = newest_run(red)
    journals = folder / "journal.jsonl", folder / "change/journal.jsonl"
    before = [lines(journal) for journal in journals]
    (folder / "verdict.json").unlink()
    cut(journals[0], lines_left=4)
    cut(journals[1], lines_left=3)
    task(red, "a", "equals: something-else")
    result = red.passgate("run", "ci_merge", "--resume", "last")
    assert result.returncode == 1, result.stdout + result.stderr
    assert verdict_of(red)["integrity"]["change"]["decision"] == "PASS", "of the files as they were planned"
    after = [lines(journal) for journal in journals]
    assert after[0] == before[0]
    kept = [key for key in before[1] if before[1][key] == after[1][key]]
    assert len(kept) == 3


def cut(journal: Path, *, lines_left: int) -> None:
    whole = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(whole[:lines_left]) + '{"trial": {"sui')


@pytest.mark.slow
def test_an_honest_change_passes_both_ways_and_names_its_edits(gated: Project) -> None:
    task(gated, "c", "exists: false")
    commit(gated, "One more task")
    code, verdict, printed = run(gated, "--base", "main")
    assert code == 0, printed
    assert verdict["integrity"]["change"]["headline"] == "ci_merge PASS: 6 of 6 trials passed"
    assert "2 more trials" in printed


def test_a_run_by_hand_shows_beside_its_verdict_what_ci_would_say(gated: Project) -> None:
    task(gated, "a", 'matches: "."')
    gated.write("agent.sh", "printf bad > a.txt; printf ok > b.txt\n")
    code, verdict, printed = run(gated)
    assert (code, verdict["decision"], verdict["integrity"]["judged_by"]) == (0, "PASS", "change"), printed
    assert verdict["integrity"]["at_base"]["decision"] == "FAIL"
    assert "Judged by the files of your working folder, outside of CI: this change edits files that judge it" in printed
    assert "Judged by the files of the merge base, as in CI, the verdict would be:\n│ ci_merge FAIL" in printed
    assert "may have chosen" not in printed


def test_with_a_base_of_ones_own_there_may_be_nothing_to_compare(gated: Project) -> None:
    task(gated, "a", 'matches: "."')
    commit(gated, "Loosen")
    code, verdict, _ = run(gated, "--base", "HEAD")
    assert (code, verdict["integrity"]) == (0, None)
    refused = gated.passgate("run", "ci_merge", "--base", "gone")
    assert refused.returncode == 2
    assert "--base gone: the repository of" in refused.stderr
    resumed = gated.passgate("run", "ci_merge", "--base", "HEAD~1", "--resume", "last")
    assert resumed.returncode == 2
    assert "--base HEAD~1: the run has --base HEAD" in resumed.stderr


A, B, C = (a_task(task_id=name, k=2) for name in ("a", "b", "c"))
BASE = Base(commit="c" * 40, judged_by="base", edits=(Edit(path="gates.yaml", kind="changed", what="policy"),))
ITSELF = BASE.model_copy(update={"judged_by": "change"})


def finished(*trials: Trial) -> list[FinishedTrial]:
    return [FinishedTrial(trial=trial, transcript=Transcript()) for trial in trials]


@pytest.mark.parametrize(
    "other",
    [
        {"task_digest": "u" * 64},
        {"grader_digest": "u" * 64},
        {"k": 3},
        {"budgets": Budgets(max_steps=5)},
        {"metric": "pass@k"},
    ],
)
def test_trials_of_tasks_that_differ_are_not_shared(other: dict[str, Any]) -> None:
    trials = [*trials_of(A, "pf"), *trials_of(B, "pe"), *trials_of(C, "p")]
    shared = shared_trials(a_plan(A, B, C), a_plan(A.model_copy(update=other), B), trials)
    assert [(one.task_id, one.trial) for one in shared] == [("b", 0)], "and none that was not measured"


METERED = AgentSpec(kind=AgentKind.OPENAI, target="gpt-5")


@pytest.mark.parametrize(
    ("here", "there", "edited"),
    [
        ({}, {"policy": a_policy().model_copy(update={"judge": JudgePolicy(votes=3)})}, "gates.yaml"),
        ({}, {}, "suites/_shared/judge/replies.yaml"),
        (
            {"agent": METERED},
            {"agent": METERED, "prices": PriceTable.model_validate({"models": {"a": {"input": 1, "output": 1}}})},
            "prices.yaml",
        ),
    ],
)
def test_with_another_judge_or_other_prices_no_trial_is_the_same(
    here: dict[str, Any], there: dict[str, Any], edited: str
) -> None:
    base = BASE.model_copy(update={"edits": (Edit(path=edited, kind="changed", what="policy"),)})
    trials = trials_of(A, "pp")
    assert shared_trials(a_plan(A, base=base, **here), a_plan(A, **there), trials) == []
    assert len(shared_trials(a_plan(A, base=BASE, **here), a_plan(A, **here), trials)) == 2


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def judged(plan: Plan, trials: list[Trial]) -> Verdict:
    return verdict_on(plan, plan.policy, trials, Baseline(branch="main"), "")


def planned(*tasks: Any, **request: Any) -> Plan:
    """The plan of a run that the merge base judges; the change has only the task `a`."""
    plan = a_plan(*tasks, base=BASE, request=RunRequest(**request))
    RunStore.of(plan.run_id).change.write_plan(a_plan(A, run_id=f"{plan.run_id}/change"), Masker([]))
    return plan


def raising(error: Exception) -> RunTrials:
    async def run(plan: Plan, pool: Pool) -> list[Trial]:
        raise error

    return run


FULL = ExceptionGroup("trials", [StorageError("the disk is full")])


@pytest.mark.usefixtures("working_folder")
async def test_a_change_that_no_other_files_judge_has_one_verdict() -> None:
    plan = a_plan(A, base=ITSELF)
    verdict = judged(plan, [])
    both = await judge_integrity(plan, [], verdict, raising(FULL), NO_RUNS)
    integrity = Integrity(base=ITSELF.commit, judged_by="change", edits=ITSELF.edits)
    assert both == verdict.model_copy(update={"integrity": integrity})


@pytest.mark.usefixtures("working_folder")
async def test_what_goes_wrong_with_the_changes_own_verdict_changes_no_other_but_a_bug_is_no_answer() -> None:
    plan = planned(A)
    trials = trials_of(A, "pp")
    verdict = await judge_integrity(plan, trials, judged(plan, trials), raising(FULL), NO_RUNS)
    assert verdict.decision is judged(plan, trials).decision
    assert verdict.integrity is not None
    assert verdict.integrity.change is None
    assert verdict.notes[-1] == "what this change's own files say is not known: the disk is full"
    with pytest.raises(ZeroDivisionError):
        await judge_integrity(plan, [], judged(plan, []), raising(ZeroDivisionError()), NO_RUNS)


@pytest.mark.usefixtures("working_folder")
@pytest.mark.parametrize(("cap", "left"), [(None, None), (10.0, 7.0), (2.0, 0.0)])
async def test_both_plans_share_one_cost_cap(cap: float | None, left: float | None) -> None:
    """Three of the four trials, a dollar each, are of a task that the change does not have."""
    plan = planned(A, C, max_cost=cap, jobs=2)
    trials = [*trials_of(A, "p", cost=1.0), *trials_of(C.model_copy(update={"k": 3}), "ppp", cost=1.0)]
    await RunStore.of(plan.run_id).take_over(finished(*trials))
    asked: list[Plan] = []

    async def runs(change: Plan, pool: Pool) -> list[Trial]:
        asked.append(change)
        return RunStore.of(change.run_id).read_trials()

    verdict = await judge_integrity(plan, trials, judged(plan, trials), runs, NO_RUNS)
    assert (asked[0].request.max_cost, asked[0].request.jobs) == (left, 2)
    taken = read_journal(RunStore.of(plan.run_id).change.journal)[0]
    assert [(one.trial.task_id, one.trial.metrics) for one in taken] == [("a", TrialMetrics(cost=1.0))]
    assert verdict.integrity is not None
    assert verdict.integrity.change is not None
    assert verdict.integrity.change.decision is Decision.INCONCLUSIVE
