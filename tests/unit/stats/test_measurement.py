"""Trials in, states and numbers out."""

import pytest

from passgate.tasks.model.grade import ViolationRule
from passgate.tasks.model.measurement import Interval, Measurement, SuiteMeasurement, TaskMeasurement, TaskState
from passgate.tasks.model.task import Metric, Suite
from passgate.tasks.model.trial import TrialMetrics, TrialStatus
from passgate.tasks.stats.measurement import decide, decide_by, measure_trials
from tests.builders import a_grade, a_task, a_trial, a_violation, measured, trials_of

TASK = a_task()
PASSED, FAILED, UNDECIDED = TaskState.PASSED, TaskState.FAILED, TaskState.UNDECIDED


def task(statuses: str, **changes: object) -> TaskMeasurement:
    made = a_task(**changes)
    (only,) = measured((made, trials_of(made, statuses))).tasks
    return only


def suite(*statuses: str, **changes: object) -> SuiteMeasurement:
    tasks = [a_task(task_id=f"t{number}", **changes) for number in range(len(statuses))]
    (only,) = measured(*((one, trials_of(one, letters)) for one, letters in zip(tasks, statuses, strict=True))).suites
    return only


@pytest.mark.parametrize(
    ("passed", "failed", "planned", "all_must", "one_is_enough"),
    [
        *((3, 0, 3, PASSED, PASSED), (2, 1, 3, FAILED, PASSED), (0, 3, 3, FAILED, FAILED)),
        *((2, 0, 3, UNDECIDED, PASSED), (0, 2, 3, FAILED, UNDECIDED), (1, 1, 3, FAILED, PASSED)),
        *((0, 0, 3, UNDECIDED, UNDECIDED), (0, 1, 1, FAILED, FAILED), (0, 0, 0, UNDECIDED, UNDECIDED)),
    ],
)
def test_what_the_trials_say_of_a_task(
    passed: int, failed: int, planned: int, all_must: TaskState, one_is_enough: TaskState
) -> None:
    assert decide(Metric.PASS_HAT_K, passed=passed, failed=failed, planned=planned) is all_must
    assert decide(Metric.PASS_AT_K, passed=passed, failed=failed, planned=planned) is one_is_enough


@pytest.mark.parametrize(
    ("scores", "planned", "by_mean", "by_interval"),
    [
        *(([0.8, 0.8, 0.8], 3, PASSED, PASSED), ([0.7, 0.8, 1.0], 3, PASSED, FAILED)),
        *(([0.5, 0.8, 1.0], 3, FAILED, FAILED), ([0.0, 0.5], 3, FAILED, UNDECIDED)),
        *(([1.0, 1.0], 3, UNDECIDED, UNDECIDED), ([1.0] * 9, 10, PASSED, UNDECIDED), ([], 3, UNDECIDED, UNDECIDED)),
    ],
)
def test_what_the_scores_say_of_a_task(
    scores: list[float], planned: int, by_mean: TaskState, by_interval: TaskState
) -> None:
    def decided(metric: Metric) -> TaskState:
        return decide(metric, passed=0, failed=len(scores), planned=planned, scores=scores, threshold=0.8)

    assert decided(Metric.MEAN) is by_mean
    assert decided(Metric.CONFIDENCE_INTERVAL) is by_interval


def test_the_state_of_a_task_by_its_trials() -> None:
    task = a_task()
    states = [decide_by(task, trials_of(task, letters)) for letters in ("ppp", "ppe", "fll", "")]
    assert states == [PASSED, UNDECIDED, FAILED, UNDECIDED]
    confirming = [a_trial(task, number, TrialStatus.FAILED) for number in (3, 4)]
    assert decide_by(task, [*trials_of(task, "ppp"), *confirming]) is PASSED
    assert decide_by(task, [*trials_of(task, "pp"), a_trial(task, 3)]) is UNDECIDED
    task = a_task(metric=Metric.MEAN, k=2, scoring={"rule": "weighted_average", "threshold": 0.7})
    assert decide_by(task, [a_trial(task, number, score=score) for number, score in enumerate((0.6, 0.8))]) is PASSED


def test_the_counts_and_the_estimates_of_a_task() -> None:
    one = task("ppf")
    assert (one.passed, one.failed, one.errors, one.n, one.planned, one.k) == (2, 1, 0, 3, 3, 3)
    assert (one.pass_at_k, one.pass_hat_k, one.pass_rate) == (1.0, 0.0, pytest.approx(2 / 3))
    assert (one.state, one.value, task("ppf", metric=Metric.PASS_AT_K).value) == (TaskState.FAILED, 0.0, 1.0)
    assert (one.failed_trials, one.error_trials) == ((2,), ())
    assert (one.failure, one.error) == ("it failed", "")


def test_errors_and_trials_that_are_not_there_are_missing_data() -> None:
    one = task("pep")
    assert (one.passed, one.failed, one.errors, one.n) == (2, 0, 1, 2)
    assert (one.pass_at_k, one.pass_hat_k, one.value) == (None, None, None)
    assert one.pass_rate == 1.0
    assert (one.state, one.error, one.error_trials) == (TaskState.UNDECIDED, "it error", (1,))
    one = task("p-p")
    assert (one.n, one.errors, one.planned, one.state) == (2, 0, 3, TaskState.UNDECIDED)
    one = task("---")
    assert (one.n, one.pass_rate, one.pass_rate_interval) == (0, None, Interval(low=0.0, high=1.0))


def test_the_order_of_the_trials_does_not_matter() -> None:
    trials = [
        trial.model_copy(update={"reason": f"reason {trial.trial}", "metrics": TrialMetrics(cost=float(trial.trial))})
        for trial in trials_of(TASK, "ffe")
    ]
    assert measure_trials([TASK], trials[::-1]) == measure_trials([TASK], trials)


def test_the_first_reason_of_each_kind_is_kept_and_violations_with_their_trial() -> None:
    grade = a_grade(violations=(a_violation(ViolationRule.FORBIDDEN_TOOL, "called rm"), a_violation()))
    trials = [
        a_trial(TASK, 0, TrialStatus.FAILED, reason="first"),
        a_trial(TASK, 1, TrialStatus.FAILED, reason="second", grades=(a_grade(), grade)),
        a_trial(TASK, 2, TrialStatus.ERROR, reason="third"),
    ]
    (one,) = measure_trials([TASK], trials).tasks
    assert (one.failure, one.error) == ("first", "third")
    found = [(hit.trial, hit.rule, hit.message) for hit in one.violations]
    assert found == [(1, "forbidden_tool", "called rm"), (1, "safety_violation", "it leaked")]


def test_means_are_over_the_trials_in_which_a_metric_was_measured() -> None:
    trials = [
        a_trial(TASK, number, metrics=TrialMetrics(steps=steps, cost=cost, wall_time_seconds=seconds))
        for number, (steps, cost, seconds) in enumerate([(2, 0.5, 1.0), (5, None, 2.0), (None, 0.25, None)])
    ]
    (one,) = measure_trials([TASK], trials).tasks
    assert (one.metrics.steps, one.metrics.cost, one.metrics.wall_time_seconds) == (3.5, 0.375, 1.5)
    assert one.metrics.total_tokens is None
    assert (one.wall_times, one.costs) == ((1.0, 2.0), (0.5, 0.25))


def test_a_suite_is_the_mean_of_its_tasks_if_all_are_measured() -> None:
    one = suite("ppp", "ppf", "ppp", "fff")
    assert (one.tasks, one.tasks_passed, one.tasks_undecided) == (4, 2, 0)
    assert (one.trials_passed, one.trials_measured, one.trials_error) == (8, 12, 0)
    assert (one.value, one.metric, one.k) == (0.5, "pass^k", "3")
    assert one.interval is not None
    assert 0.1 < one.interval.low < 0.5 < one.interval.high < 0.9
    one = suite("ppp", "pe-")
    assert (one.value, one.interval) == (None, None)
    assert (one.tasks_passed, one.tasks_undecided, one.trials_error) == (1, 1, 2)


class TestStopped:
    """Tasks of which trials were left out, because they could not change the verdict any more."""

    def test_decided_tasks_have_the_value_that_all_their_trials_would_have_given(self) -> None:
        one = task("pfl")
        assert (one.state, one.passed, one.failed, one.n, one.planned) == (TaskState.FAILED, 1, 1, 2, 3)
        assert (one.not_run, one.stopped_early, one.errors, one.error, one.error_trials) == (1, True, 0, "", ())
        assert (one.pass_hat_k, one.value) == (0.0, 0.0)
        assert {task(f"pf{last}").value for last in "pf"} == {0.0}
        one = task("fpl", metric=Metric.PASS_AT_K)
        assert (one.state, one.stopped_early, one.pass_at_k, one.value) == (TaskState.PASSED, True, 1.0, 1.0)
        assert {task(f"fp{last}", metric=Metric.PASS_AT_K).value for last in "pf"} == {1.0}

    def test_the_other_estimates_and_errors_leave_no_value(self) -> None:
        one, other = task("pfl"), task("fpl", metric=Metric.PASS_AT_K)
        assert (one.pass_at_k, other.pass_hat_k) == (None, None)
        assert (one.pass_rate, one.pass_rate_interval) == (None, Interval(low=0.0, high=1.0))
        assert (other.pass_rate, other.score) == (None, None)
        one = task("efl")
        assert (one.state, one.value, one.errors, one.not_run) == (TaskState.FAILED, None, 1, 1)
        assert (one.error, one.error_trials) == ("it error", (0,))

    def test_the_suite_counts_what_was_run(self) -> None:
        one = suite("ppp", "pfl", "fll")
        assert (one.trials_passed, one.trials_measured, one.trials_error, one.trials_not_run) == (4, 6, 0, 3)
        assert (one.tasks_passed, one.tasks_undecided, one.value) == (1, 0, pytest.approx(1 / 3))
        one = task("ppf")
        assert (one.not_run, one.stopped_early, one.pass_rate) == (0, False, pytest.approx(2 / 3))

    def test_what_trials_without_money_would_have_been_is_not_known_unless_it_is_decided(self) -> None:
        one = task("pnn")
        assert (one.state, one.value, one.n) == (TaskState.UNDECIDED, None, 1)
        assert (one.not_run, one.stopped_early, one.errors) == (2, False, 0)
        assert (one.error, one.error_trials, one.pass_rate) == ("it not_run", (), 1.0)
        assert (task("fnn").value, task("pnn", metric=Metric.PASS_AT_K).value) == (0.0, 1.0)
        assert task("ne-").error == "it error"
        one = suite("ppp", "pnn", "pe-")
        assert (one.trials_error, one.trials_not_run, one.value) == (2, 2, None)


class TestConfirming:
    """Trials beyond the first k."""

    def confirmed(self, *statuses: TrialStatus, **changes: object) -> TaskMeasurement:
        more = [a_trial(TASK, 3 + number, status, **changes) for number, status in enumerate(statuses)]
        return measured((TASK, [*trials_of(TASK, "ppf"), *more])).tasks[0]

    def test_they_are_counted_by_themselves(self) -> None:
        one = self.confirmed(TrialStatus.PASSED, TrialStatus.PASSED, TrialStatus.FAILED, TrialStatus.ERROR)
        assert (one.confirming_passed, one.confirming_failed, one.confirming_errors) == (2, 1, 1)
        assert one.model_copy(update={"confirming": (), "confirming_errors": 0}) == task("ppf")
        # Of those not run only the ones without money are missing.
        assert self.confirmed(TrialStatus.NOT_RUN, left_out=True).confirming_errors == 0
        assert self.confirmed(TrialStatus.NOT_RUN).confirming_errors == 1

    def test_their_vetoes_are_vetoes_and_their_money_was_spent(self) -> None:
        grade = a_grade(violations=(a_violation(),))
        assert [hit.trial for hit in self.confirmed(TrialStatus.FAILED, grades=(grade,)).violations] == [3]
        more = a_trial(TASK, 3, metrics=TrialMetrics(cost=0.5, wall_time_seconds=9.0))
        run = measure_trials([TASK], [*trials_of(TASK, "ppf", cost=0.25, wall_time_seconds=1.0), more])
        assert (run.cost, run.latency_p95_seconds) == (1.25, 1.0)


def test_models_and_isolations_are_named_once_and_trials_of_an_earlier_run_say_so() -> None:
    models, isolations = ("b, a", "a", ""), ("process_group", "bubblewrap", "")
    trials = [
        a_trial(TASK, number, model=model, isolation=isolation, reused_from="run-1")
        for number, (model, isolation) in enumerate(zip(models, isolations, strict=True))
    ]
    run = measure_trials([TASK], trials)
    assert (run.tasks[0].models, run.isolation) == (("a", "b"), ("bubblewrap", "process_group"))
    assert (run.tasks[0].reused_from, task("ppp").reused_from) == ("run-1", "")


def figures(cost: float | None) -> Measurement:
    trials = [
        a_trial(TASK, number, metrics=TrialMetrics(wall_time_seconds=float(number + 1), cost=cost, steps=number))
        for number in range(3)
    ]
    return measure_trials([TASK], trials)


def test_the_figures_of_a_run() -> None:
    run = figures(0.5)
    assert (run.latency_p95_seconds, run.cost, run.isolation) == (3.0, 1.5, ("bubblewrap",))
    assert (run.suites[0].cost, run.suites[0].wall_time_seconds, run.suites[0].steps) == (1.5, 6.0, 1.0)
    assert (figures(None).cost, figures(None).suites[0].cost) == (None, None)
    assert figures(0.0).cost == 0.0


def test_suites_come_in_their_order_and_one_of_mixed_tasks_says_so() -> None:
    replay, golden = a_task(task_id="r", suite=Suite.FAILURE_REPLAYS), TASK
    run = measured((replay, trials_of(replay, "ppp")), (golden, trials_of(golden, "ppp")))
    assert [one.suite for one in run.suites] == [Suite.GOLDEN, Suite.FAILURE_REPLAYS]
    assert measure_trials([], []) == Measurement(suites=(), tasks=(), latency_p95_seconds=None, cost=None, isolation=())
    first, second = a_task(k=1), a_task(task_id="b", k=10, metric=Metric.PASS_AT_K)
    (one,) = measured((first, trials_of(first, "p")), (second, trials_of(second, "p" * 10))).suites
    assert (one.metric, one.k, one.value) == ("pass@k, pass^k", "1-10", 1.0)


class TestScores:
    """Tasks that their trials' scores decide."""

    def scored(self, *scores: float | None, metric: Metric = Metric.MEAN) -> TaskMeasurement:
        made = a_task(metric=metric, k=len(scores), scoring={"rule": "weighted_average", "threshold": 0.7})
        trials = [
            a_trial(made, number, TrialStatus.ERROR if score is None else TrialStatus.FAILED, score=score)
            for number, score in enumerate(scores)
        ]
        return measured((made, trials)).tasks[0]

    @pytest.mark.parametrize(
        ("scores", "metric", "value", "state"),
        [
            ((0.5, 0.7, 0.9), Metric.MEAN, 0.7, TaskState.PASSED),
            ((0.5, 0.6, 0.9), Metric.MEAN, 2 / 3, TaskState.FAILED),
            ((0.5, 1.0, 1.0), Metric.CONFIDENCE_INTERVAL, 0.1162245, TaskState.FAILED),
            ((0.5,), Metric.CONFIDENCE_INTERVAL, None, TaskState.UNDECIDED),
            ((1.0, 1.0, None), Metric.MEAN, None, TaskState.UNDECIDED),
            ((0.0, 0.5, None), Metric.MEAN, None, TaskState.FAILED),
        ],
    )
    def test_the_mean_or_the_lower_end_of_the_interval_against_the_tasks_own_threshold(
        self, scores: tuple[float | None, ...], metric: Metric, value: float | None, state: TaskState
    ) -> None:
        one = self.scored(*scores, metric=metric)
        assert one.state is state
        assert one.value == (value if value is None else pytest.approx(value, abs=1e-6))

    def test_the_suite_takes_the_mean_of_such_values_too(self) -> None:
        made = a_task(metric=Metric.MEAN, k=1, scoring={"rule": "weighted_average"})
        (only,) = measured((made, [a_trial(made, 0, TrialStatus.FAILED, score=0.75)])).suites
        assert (only.metric, only.value) == ("mean", 0.75)
