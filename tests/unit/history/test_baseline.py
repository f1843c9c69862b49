"""Which earlier runs speak for a task, and what they say together."""

from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from passgate.tasks.history.baseline import COLUMNS, baseline_of, state_of
from passgate.tasks.history.columns import arrow_schema, row
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask, Pins
from passgate.tasks.model.run import Base, Plan, Revision
from passgate.tasks.model.task import EvalTask, Metric, Scoring, SequentialTest, Suite
from passgate.tasks.model.trial import TrialStatus
from tests.builders import a_plan, a_policy, a_task, a_trial, trials_of

TASK = a_task()
PLAN = a_plan(TASK, run_id="20260201T000000Z-now")
KEY = "golden/say-yes"
NO_BASE = Base()
NEW, NONE = BaselineTask(state=BaselineState.NEW), BaselineTask(state=BaselineState.NONE)


def run(run_id: str, statuses: str, task: EvalTask = TASK, *, model: str = "m", **changes: Any) -> pd.DataFrame:
    """The rows of an earlier run on main; `changes` are of its revision, or of its trials' metrics."""
    revision = {name: changes.pop(name) for name in ("branch", "commit", "dirty") if name in changes}
    plan = a_plan(task, run_id=run_id, revision=Revision(**({"branch": "main"} | revision)))
    trials = [one.model_copy(update={"model": model}) for one in trials_of(task, statuses, **changes)]
    return pd.DataFrame([row(trial, plan) for trial in trials], columns=arrow_schema().names)


def of(*runs: pd.DataFrame, plan: Plan = PLAN, models: Any = None) -> Baseline:
    return baseline_of(plan, pd.concat(runs, ignore_index=True)[list(COLUMNS)], models)


def entry(*runs: pd.DataFrame, plan: Plan = PLAN, models: Any = None) -> BaselineTask:
    return of(*runs, plan=plan, models=models).tasks[KEY]


def with_baseline(**changes: Any) -> Plan:
    """The plan under a policy of another baseline."""
    policy = a_policy()
    return PLAN.model_copy(
        update={"policy": policy.model_copy(update={"baseline": policy.baseline.model_copy(update=changes)})}
    )


def pinned(commit: str | None = None, *runs: str, base: Base = NO_BASE) -> Plan:
    return PLAN.model_copy(update={"pins": Pins(commit=commit, runs=runs, reason="why", by="Ann"), "base": base})


class TestPooling:
    def test_runs_are_pooled_the_newest_first(self) -> None:
        assert entry(run("20260102", "fpp"), run("20260103", "ppp"), run("20260101", "ppp")) == BaselineTask(
            state=BaselineState.GREEN,
            runs=("20260103", "20260102", "20260101"),
            runs_green=2,
            green_in_a_row=1,
            passed=8,
            n=9,
            counts={"20260103": (3, 3), "20260102": (2, 3), "20260101": (3, 3)},
            newest=(True, True, True, True, True, False, True, True, True),
        )

    def test_trials_of_a_run_that_did_not_decide_the_task_are_counted_all_the_same(self) -> None:
        found = entry(run("20260102", "ppe"), run("20260101", "ppp"))
        assert (found.runs, found.runs_green, found.green_in_a_row) == (("20260101",), 1, 1)
        assert (found.passed, found.n, found.newest) == (5, 5, (True,) * 5)

    def test_a_trial_that_was_left_out_decides_nothing_where_it_could_have(self) -> None:
        assert entry(run("20260101", "f--")).runs == ("20260101",)
        assert entry(run("20260101", "pp-")).runs == ()

    def test_where_no_run_has_decided_the_task_there_is_no_baseline(self) -> None:
        found = entry(run("20260101", "ppe"))
        assert (found.state, found.passed, found.n) == (BaselineState.NONE, 2, 2)

    def test_a_run_of_nothing_but_errors_takes_no_place(self) -> None:
        outage, good = run("20260102", "eee"), run("20260101", "ppp")
        assert entry(outage, good, plan=with_baseline(runs=1)).runs == ("20260101",)
        assert entry(outage) == NONE

    @pytest.mark.parametrize(("most", "runs"), [(1, 1), (2, 2), (3, 3), (4, 3)])
    def test_only_the_newest_runs_are_pooled(self, most: int, runs: int) -> None:
        found = entry(*(run(f"2026010{day}", "ppp") for day in (1, 2, 3)), plan=with_baseline(runs=most))
        assert found.runs == ("20260103", "20260102", "20260101")[:runs]
        assert found.n == 3 * runs

    def test_every_task_has_its_own_newest_runs(self) -> None:
        other = a_task(task_id="other")
        plan = with_baseline(runs=1).model_copy(update={"tasks": (TASK, other)})
        found = of(run("20260101", "ppp"), run("20260102", "fff", other), plan=plan)
        assert {name: one.runs for name, one in found.tasks.items()} == {
            KEY: ("20260101",),
            "golden/other": ("20260102",),
        }
        assert found.runs == ("20260101", "20260102")

    def test_confirming_trials_do_not_count(self) -> None:
        """They are run because a trial has failed, so that what they say is not of the task as such."""
        confirming = [
            row(
                a_trial(TASK, number, TrialStatus.FAILED),
                a_plan(TASK, run_id="20260101", revision=Revision(branch="main")),
            )
            for number in (3, 4)
        ]
        found = entry(run("20260101", "ppp"), pd.DataFrame(confirming, columns=arrow_schema().names))
        assert (found.state, found.passed, found.n) == (BaselineState.GREEN, 3, 3)

    def test_what_trials_took_and_cost_comes_with_them_the_newest_first(self) -> None:
        found = entry(
            run("20260101", "ppp", wall_time_seconds=1.5, cost=0.25),
            run("20260102", "pe", wall_time_seconds=9.0),
        )
        assert list(found.wall_times.items()) == [("20260102", (9.0,)), ("20260101", (1.5, 1.5, 1.5))]
        assert found.costs == {"20260101": (0.25, 0.25, 0.25)}

    def test_one_pass_decides_where_one_is_enough(self) -> None:
        task = a_task(metric=Metric.PASS_AT_K)
        found = entry(run("20260101", "pee", task), plan=a_plan(task, run_id="20260201"))
        assert (found.state, found.runs_green, found.passed, found.n) == (BaselineState.GREEN, 1, 1, 1)

    @pytest.mark.parametrize(("score", "green"), [(0.9, 1), (0.7, 0)])
    def test_scores_decide_where_the_task_goes_by_them(self, score: float, green: int) -> None:
        task = a_task(metric=Metric.MEAN, scoring=Scoring(threshold=0.8))
        rows = run("20260101", "ppp", task)
        rows["score"] = score
        found = entry(rows, plan=a_plan(task, run_id="20260201"))
        assert (found.runs, found.runs_green) == (("20260101",), green)

    def test_a_sequential_test_decides_where_the_task_goes_by_one(self) -> None:
        """What stopped it early counts, and one failure of ten is no red run."""
        task = a_task(k=10, sequential=SequentialTest(accept=0.95, reject=0.5))
        plan = a_plan(task, run_id="20260201")
        runs = {"20260101": "fppppppppp", "20260102": "pppppp", "20260103": "ff", "20260104": "p"}
        found = entry(*(run(*one, task) for one in runs.items()), plan=plan)
        assert (found.runs, found.runs_green) == (("20260103", "20260102", "20260101"), 2)
        assert (found.passed, found.n) == (16, 19)


class TestStates:
    @pytest.mark.parametrize(
        ("greens", "state"),
        [
            ("", BaselineState.NONE),
            ("g", BaselineState.GREEN),
            ("r", BaselineState.RED),
            ("gr", BaselineState.UNRELIABLE),
            ("grg", BaselineState.GREEN),
            ("grr", BaselineState.RED),
            ("rrggggg", BaselineState.GREEN),
            ("rgrgrgggg", BaselineState.GREEN),
            ("rgrgrgrgg", BaselineState.UNRELIABLE),
            ("grgrgrgrr", BaselineState.UNRELIABLE),
            ("grgrgrrrr", BaselineState.RED),
            ("rrr" + "g" * 17, BaselineState.RED),
            ("rrg" + "g" * 17, BaselineState.GREEN),
            ("grrr" + "g" * 17, BaselineState.GREEN),
            ("ggg" + "r" * 17, BaselineState.RED),
        ],
    )
    def test_two_thirds_are_green_and_one_third_or_three_in_a_row_red(self, greens: str, state: BaselineState) -> None:
        assert state_of([letter == "g" for letter in greens]) is state

    @given(greens=st.lists(st.booleans(), min_size=1), position=st.integers(0, 30))
    def test_a_run_more_that_passed_never_makes_it_worse(self, greens: list[bool], position: int) -> None:
        better = [green or number == position for number, green in enumerate(greens)]
        order = [BaselineState.RED, BaselineState.UNRELIABLE, BaselineState.GREEN]
        assert order.index(state_of(better)) >= order.index(state_of(greens))

    def test_the_state_is_that_of_the_runs(self) -> None:
        days = {"20260101": "ppp", "20260102": "ppp", "20260103": "ppp", "20260104": "ppp"}
        fallen = {"20260105": "fpp", "20260106": "fpp"}
        assert entry(*(run(*one) for one in (days | fallen).items())).state is BaselineState.GREEN
        found = entry(*(run(*one) for one in (days | fallen | {"20260107": "ppf"}).items()))
        assert (found.state, found.runs_green, found.green_in_a_row) == (BaselineState.RED, 4, 0)

    def test_how_many_newest_runs_in_a_row_were_green(self) -> None:
        days = ["ppp", "ppp", "fff", "ppp", "ppp", "ppp"]
        found = entry(*(run(f"2026010{number}", statuses) for number, statuses in enumerate(days)))
        assert (found.green_in_a_row, found.runs_green) == (3, 5)


class TestWhichRows:
    def test_only_runs_before_this_one_count(self) -> None:
        assert entry(run("20260201T000000Z-now", "ppp"), run("20260202", "ppp")) == NEW

    def test_a_task_that_no_run_of_the_baseline_knows_is_new(self) -> None:
        plan = PLAN.model_copy(update={"tasks": (TASK, a_task(task_id="new"))})
        assert of(run("20260101", "ppp"), plan=plan).tasks["golden/new"] == NEW

    def test_a_task_of_another_suite_is_another_task(self) -> None:
        moved = a_task(suite=Suite.FAILURE_REPLAYS)
        found = of(run("20260101", "ppp", moved))
        assert found.tasks == {KEY: NEW}

    @pytest.mark.parametrize(
        "change",
        [{"task_digest": "another"}, {"grader_digest": "another"}, {"k": 4}, {"metric": Metric.PASS_AT_K}],
    )
    def test_a_task_known_only_as_it_was_before_has_no_baseline(self, change: dict[str, Any]) -> None:
        found = entry(run("20260101", "ppp", a_task(**change)))
        assert found.model_copy(update={"restart": None}) == NONE

    def test_a_change_of_the_task_leaves_the_other_runs_behind(self) -> None:
        changed = a_task(task_digest="another")
        runs = run("20260101", "ppp", changed), run("20260102", "fff")
        found = entry(*runs, plan=with_baseline(runs=1).model_copy(update={"tasks": (changed,)}))
        assert (found.state, found.runs) == (BaselineState.GREEN, ("20260101",))

    def test_a_task_known_only_of_another_agent_has_no_baseline(self) -> None:
        other = PLAN.model_copy(update={"agent": AgentSpec(kind=AgentKind.CLI, target="my-agent --fast")})
        assert entry(run("20260101", "ppp"), plan=other) == NONE

    def test_a_task_of_which_there_are_only_confirming_trials_has_no_baseline(self) -> None:
        assert entry(run("20260101", "---p")) == NONE

    def test_without_rows_every_task_is_new(self) -> None:
        plan = PLAN.model_copy(update={"base": Base(commit="c" * 40, ancestors=("c" * 40,))})
        empty = arrow_schema().empty_table().to_pandas()
        assert baseline_of(plan, empty) == Baseline(branch="main", commit="c" * 40, tasks={KEY: NEW})

    def test_a_plan_without_tasks_has_an_empty_baseline(self) -> None:
        assert of(run("20260101", "ppp"), plan=a_plan(run_id="20260201")).tasks == {}


class TestModels:
    RUNS = (run("20260101", "fff", model="old"), run("20260102", "ppp", model="new"))

    @pytest.mark.parametrize("models", [None, {}, {KEY: ()}, {"golden/other": ("old",)}])
    def test_where_no_models_are_known_every_row_counts(self, models: Any) -> None:
        assert entry(*self.RUNS, models=models).n == 6

    @pytest.mark.parametrize(
        ("models", "runs"),
        [
            (("new",), ("20260102",)),
            ({"old"}, ("20260101",)),
            (("old", "new"), ("20260102", "20260101")),
        ],
    )
    def test_rows_of_other_models_do_not_count(self, models: Any, runs: tuple[str, ...]) -> None:
        found = entry(*self.RUNS, models={KEY: models})
        assert (found.runs, found.n) == (runs, 3 * len(runs))

    def test_a_task_known_only_of_other_models_has_no_baseline_but_keeps_its_admission(self) -> None:
        found = entry(*self.RUNS, models={KEY: ("newer",)})
        assert found == NONE.model_copy(update={"newest": (True,) * 3 + (False,) * 3})

    def test_a_run_in_which_a_model_had_a_part_counts_whole(self) -> None:
        half = run("20260103", "ppp").assign(model=["big, small", "big", ""])
        for models in (("big",), ("small",), ("big, small",), ("huge, small",)):
            found = entry(*self.RUNS, half, models={KEY: models})
            assert (found.runs, found.n, found.runs_green) == (("20260103",), 3, 1)

    def test_runs_of_other_models_take_no_place(self) -> None:
        assert entry(*self.RUNS, plan=with_baseline(runs=1), models={KEY: ("old",)}).runs == ("20260101",)


class TestCommits:
    BASE = Base(commit="b" * 40, ancestors=("b" * 40, "a" * 40))

    @property
    def plan(self) -> Plan:
        return PLAN.model_copy(update={"base": self.BASE})

    def test_runs_of_the_merge_base_and_its_ancestors_count_whatever_their_branch(self) -> None:
        found = of(
            run("20260101", "ppp", commit="a" * 40, branch="renamed"),
            run("20260102", "ppp", commit="b" * 40, branch=""),
            run("20260103", "fff", commit="c" * 40),
            run("20260104", "fff", commit=""),
            plan=self.plan,
        )
        assert found.tasks[KEY].runs == ("20260102", "20260101")
        assert (found.branch, found.commit, found.pinned) == ("main", "b" * 40, False)

    def test_runs_of_changed_files_are_of_no_commit(self) -> None:
        assert entry(run("20260101", "ppp", commit="a" * 40, dirty=True), plan=self.plan) == NEW

    def test_without_git_the_runs_of_the_branch_count(self) -> None:
        found = of(
            run("20260101", "ppp", branch="main", commit="a" * 40),
            run("20260102", "fff", branch="feature"),
            run("20260103", "fff", branch="main2"),
            run("20260104", "fff", branch=""),
            run("20260105", "fff", branch="main", dirty=True),
        )
        assert found.tasks[KEY].runs == ("20260101",)
        assert (found.branch, found.commit, found.pinned) == ("main", "", False)

    def test_the_branch_is_the_policys(self) -> None:
        found = of(run("20260101", "ppp", branch="trunk"), run("20260102", "ppp"), plan=with_baseline(branch="trunk"))
        assert (found.branch, found.tasks[KEY].runs) == ("trunk", ("20260101",))


class TestPins:
    RUNS = tuple(
        run(
            f"2026010{number}T000000Z-nightly-{number}", "ppp", branch=f"b{number}", commit=f"{number}" * 40, dirty=True
        )
        for number in (1, 2, 3)
    )

    def test_the_pinned_runs_are_the_baseline_wherever_they_come_from(self) -> None:
        base = Base(commit="3" * 40, ancestors=("3" * 40,))
        found = of(*self.RUNS, plan=pinned(None, "20260101T000000Z-nightly-1", "20260102", base=base))
        assert found.tasks[KEY].runs == ("20260102T000000Z-nightly-2", "20260101T000000Z-nightly-1")
        assert (found.commit, found.pinned) == ("3" * 40, True)

    def test_a_pinned_run_that_is_not_before_this_one_does_not_count(self) -> None:
        assert entry(run("20260202", "ppp"), plan=pinned(None, "20260202")) == NEW

    def test_runs_that_no_history_has_leave_every_task_new(self) -> None:
        assert entry(*self.RUNS, plan=pinned(None, "1999")) == NEW

    def test_a_pinned_commit_has_the_ancestors_that_the_base_holds(self) -> None:
        base = Base(commit="9" * 40, ancestors=("2" * 40, "1" * 40))
        rows = [run(f"2026010{number}", "ppp", commit=f"{number}" * 40) for number in (1, 2, 3)]
        found = of(*rows, run("20260104", "fff", commit="1" * 40, dirty=True), plan=pinned("2" * 7, base=base))
        assert found.tasks[KEY].runs == ("20260102", "20260101")
        assert (found.commit, found.pinned) == ("2" * 40, True)

    def test_of_a_pinned_commit_that_git_does_not_know_its_own_runs_count(self) -> None:
        rows = [run(f"2026010{number}", "ppp", commit=f"{number}" * 40) for number in (1, 2, 3)]
        found = of(*rows, run("20260104", "fff", commit="2" * 40, dirty=True), plan=pinned("2" * 7))
        assert found.tasks[KEY].runs == ("20260102",)
        assert (found.commit, found.pinned) == ("2" * 7, True)
