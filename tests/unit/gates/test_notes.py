"""What the reader of a verdict should know beside its reasons."""

from collections.abc import Sequence

import pytest

from passgate.tasks.gates.decide import rule_on
from passgate.tasks.model.baseline import Baseline
from passgate.tasks.model.run import Base, Edit, RunRequest
from passgate.tasks.model.task import EvalTask
from passgate.tasks.model.verdict import Decision
from tests.builders import a_plan, a_task, in_two_runs, measured, trials_of
from tests.unit.gates.rulings import green_before, of, rule


class TestNotes:
    def test_another_k_and_tasks_without_a_baseline_are_noted(self) -> None:
        notes = rule(of("ppp"), request=RunRequest(k=3), baseline=green_before()).notes
        assert "--k 3 replaces the tasks' own k" in notes
        other = a_task(task_id="other")
        (note,) = (note for note in rule(of("ppp"), of("ppp", other), baseline=green_before()).notes if "base" in note)
        assert note.startswith("no baseline for 1 of 2 tasks: the history has no run on main with the same agent")
        assert rule(of("ppp", steps=3), baseline=green_before()).notes == ()

    def test_no_isolation_and_budgets_that_were_not_held_are_noted(self) -> None:
        task, trials = of("ppp", steps=3)
        bare = [trial.model_copy(update={"isolation": "process_group"}) for trial in trials]
        (note,) = rule((task, bare), baseline=green_before()).notes
        assert note.startswith("no isolation: bubblewrap does not work on this machine")
        notes = rule(of("ppp", steps=3), of("ppp", a_task(task_id="blind")), baseline=green_before()).notes
        assert any(
            note.startswith("in 1 task the agent called no model through the meter and reported no transcript")
            for note in notes
        )

    TASKS = [a_task(task_id=f"t{number}") for number in range(8)]
    ENTRIES = [green_before(task, wall_times={f"20260101-a{task.task_id}": (1.0,) * 3}).tasks for task in TASKS]
    OWN_RUNS = Baseline(branch="main", tasks={name: entry for one in ENTRIES for name, entry in one.items()})
    TOO_FEW = "too few tasks have a baseline (1, at least 8 are required)"
    ONE_RUN = "the baseline has one run, which does not show how much runs vary"
    NOTHING_SHARED = "the baseline runs share no tasks, so they do not show how much runs vary"

    @pytest.mark.parametrize(
        ("tasks", "baseline", "why"),
        [
            (TASKS[:1], green_before(TASKS[0], wall_times=in_two_runs(1.0)), TOO_FEW),
            (TASKS, green_before(*TASKS, wall_times={"20260101-ab": (1.0, 1.0, 1.0)}), ONE_RUN),
            (TASKS, OWN_RUNS, NOTHING_SHARED),
        ],
        ids=["too few tasks", "one run", "no task in two runs"],
    )
    def test_what_is_not_compared_is_noted(self, tasks: list[EvalTask], baseline: Baseline, why: str) -> None:
        groups = [of("ppp", task, steps=3, wall_time_seconds=100.0) for task in tasks]
        ruling = rule(*groups, baseline=baseline, limits={"latency_p95_increase_pct": 1})
        assert ruling.decision is Decision.PASS
        assert ruling.notes == (f"latency P95 is not compared: {why}",)

    @pytest.mark.parametrize(
        ("free_before", "dear_now", "noted"),
        [
            (range(10), range(10), "cost is not compared: in 10 tasks the baseline cost is 0"),
            (range(3), range(10), "cost is not compared: in 3 tasks the baseline cost is 0"),
            (range(2), range(10), "cost is not compared in 2 tasks: the baseline cost is 0"),
            *((range(10), (), None), ((), (), None), (range(2), range(2, 10), None)),
        ],
    )
    def test_a_rise_from_nothing_is_noted(
        self, free_before: Sequence[int], dear_now: Sequence[int], noted: str | None
    ) -> None:
        tasks = [a_task(task_id=f"t{number}") for number in range(10)]
        entries = {}
        for number, task in enumerate(tasks):
            entries |= green_before(task, costs=in_two_runs(0.0 if number in free_before else 5.0)).tasks
        groups = [
            of("ppp", task, steps=3, cost=5.0 if number in dear_now else 0.0) for number, task in enumerate(tasks)
        ]
        baseline = Baseline(branch="main", tasks=entries)
        ruling = rule(*groups, baseline=baseline, limits={"cost_increase_pct": 10})
        assert ruling.decision is Decision.PASS
        assert ruling.notes == (() if noted is None else (f"{noted}, so the increase has no ratio",))

    def test_a_cost_that_is_not_reported_any_more_is_noted(self) -> None:
        limits = {"cost_increase_pct": 10}
        baseline = green_before(costs=in_two_runs(1.0))
        assert rule(of("ppp", steps=3), baseline=baseline, limits=limits).notes == (
            "cost is not compared: the agent reported its cost at the baseline but not in this run",
        )
        assert rule(of("ppp", steps=3), baseline=baseline).notes == ()
        assert rule(of("ppp", steps=3), baseline=green_before(), limits=limits).notes == ()


def test_a_policy_that_is_not_the_projects_and_warnings_of_files_are_noted() -> None:
    assert not any("ships" in note for note in rule(of("ppp")).notes)
    note = "gates.yaml does not exist: this run uses the policy that passgate ships"
    assert note in rule(of("ppp"), shipped_policy=True).notes
    warning = "evals/EVAL.yaml:3:9: tests[0].input: the variable MISSING is not set"
    assert warning in rule(of("ppp"), warnings=(warning,)).notes


def test_who_has_judged_a_change_that_edits_its_judges_is_noted() -> None:
    edits = tuple(Edit(path=name, kind="changed", what="policy") for name in ("gates.yaml", "prices.yaml"))
    base = Base(commit="c0ffee" * 7, judged_by="base", edits=edits, note="the clone is shallow")
    assert _noted(base)[:2] == (
        "this change edits what it is judged by (2 files): this run uses the files of the merge base c0ffeec0ffee",
        "the clone is shallow",
    )
    assert "(1 file)" in _noted(base.model_copy(update={"edits": edits[:1]}))[0]
    assert _noted(base.model_copy(update={"judged_by": "change"}))[0] == "the clone is shallow"


def _noted(base: Base) -> tuple[str, ...]:
    plan = a_plan(a_task(), base=base)
    return rule_on(plan, plan.gate_policy, measured((a_task(), trials_of(a_task(), "ppp"))), green_before()).notes
