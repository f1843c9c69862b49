"""One task in one run: how often it blocks, and what that takes."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Final, NamedTuple

from passgate.tasks.forecasts.assumptions import Setting, TaskAssumptions
from passgate.tasks.forecasts.first_trials import FirstTrials, Possible, TrialShares, first_trials
from passgate.tasks.forecasts.unblocked_tasks import TaskTest
from passgate.tasks.gates.decide import failed_tasks
from passgate.tasks.gates.evidence import alpha_of_one, least_red_failures
from passgate.tasks.gates.exemptions import not_admitted, quarantined
from passgate.tasks.gates.guards import guarding_counts, is_guarded, is_weighed, run_drift, suites_of
from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask
from passgate.tasks.model.measurement import TaskMeasurement
from passgate.tasks.model.policy import GatePolicy, Rule
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import Confirmation, Finding
from passgate.tasks.stats.expected_rates import Counts
from passgate.tasks.stats.regression import Before, Operation, RegressionTest, regression_tests

_NEGLIGIBLE: Final = 1e-12
# Whether a failure blocks depends on what was found, not on how many trials it took.
_ANY_TRIALS: Final = Confirmation(
    task="", finding=Finding.FALLEN, passed=0, n=0, confirming=0, baseline_passed=0, baseline_n=0, alpha=0.0
)


class Against(NamedTuple):
    """The arguments of a test; see `regression_test`."""

    before: Before
    k: int
    red_from: int
    most: int
    alpha: float


class RegressionTests:
    """Makes tests and remembers them: they take long, and policies that are compared share most of them."""

    def __init__(self) -> None:
        self._tests: dict[Against, RegressionTest] = {}
        self._operations: dict[tuple[Against, float], Operation] = {}

    def make(self, keys: Iterable[Against]) -> None:
        """Make all of these together, which takes a fraction of the time that they take one by one."""
        groups: dict[tuple[int, int, int], list[Against]] = defaultdict(list)
        for key in sorted(set(keys) - self._tests.keys()):
            groups[key.k, key.red_from, key.most].append(key)
        for (k, red_from, most), wanted in groups.items():
            baselines, alphas = [key.before for key in wanted], [key.alpha for key in wanted]
            made = regression_tests(baselines, alphas, k=k, red_from=red_from, most=most)
            self._tests.update(zip(wanted, made, strict=True))

    def test(self, key: Against) -> RegressionTest:
        """One test."""
        self.make([key])
        return self._tests[key]

    def operation(self, key: Against, pass_rate: float) -> Operation:
        """The chances of each finding of a test, for a task with this pass rate."""
        if (key, pass_rate) not in self._operations:
            self._operations[key, pass_rate] = self.test(key).operation(pass_rate)
        return self._operations[key, pass_rate]


class Consequences(NamedTuple):
    """By which rule a failed task blocks in each case; `None` where it does not."""

    withheld: bool = False  # it is not admitted or in quarantine, and nothing guards it
    unproven: bool = False  # it is not admitted, but guarded: a threshold leaves it out
    weighed: bool = False  # the failure is held against the baseline by evidence
    failed: Rule | None = None  # a failure that is not weighed
    fallen: Rule | None = None
    undecided: Rule | None = None


def consequences(setting: Setting, task: TaskMeasurement, entry: BaselineTask, *, in_force: bool) -> Consequences:
    """What follows when a task has failed whose baseline is `entry`. `in_force`: other tasks of its suite are
    admitted.
    """
    gate = setting.plan.gate_policy
    baseline = Baseline(branch=setting.branch, young=setting.young, tasks={task.name: entry})
    in_quarantine = task.name in quarantined(setting.plan.quarantine, setting.plan.created_at.date())
    unproven = in_force and not is_admitted(gate, task, entry)
    if in_quarantine or (unproven and not is_guarded(gate, task, baseline)):
        return Consequences(withheld=True)

    def rule_with(confirmed: Mapping[str, Confirmation]) -> Rule | None:
        reasons = failed_tasks(gate, [task], baseline, confirmed, any_passed=True)
        return next((one.rule for one in reasons if one.blocking and one.rule in gate.blocks_on), None)

    if not is_weighed(gate, task) or guarding_counts(entry, setting.young) is None:
        return Consequences(failed=rule_with({}))
    fallen, undecided = (
        rule_with({task.name: _ANY_TRIALS.model_copy(update={"finding": finding})})
        for finding in (Finding.FALLEN, Finding.UNDECIDED)
    )
    return Consequences(unproven=unproven, weighed=True, fallen=fallen, undecided=undecided)


def _likely(setting: Setting) -> Iterator[tuple[TaskMeasurement, Counts]]:
    """What the baseline of each guarded task is, or is expected to be."""
    gate, runs = setting.plan.gate_policy, setting.plan.policy.baseline.runs
    for task in setting.tasks:
        if not is_weighed(gate, task.failed):
            continue
        trials = runs * task.failed.k
        counts = guarding_counts(task.known, setting.young) if task.known else Counts(round(task.rate * trials), trials)
        if counts is not None:
            yield task.failed, counts


def is_admitted(gate: GatePolicy, task: TaskMeasurement, entry: BaselineTask) -> bool:
    """Whether a task may block, beside others of its suite that may."""
    shown = (True,) * gate.admission.of if gate.admission else ()
    # Admission is in force from the first admitted task of a suite on, so the suite gets one that surely is.
    other = BaselineTask(state=BaselineState.GREEN, newest=shown)
    return not_admitted(gate, task, Baseline(branch="", tasks={f"{task.suite}/": other, task.name: entry})) is None


class TaskChances(NamedTuple):
    """The chances of one task in one run."""

    red: Mapping[Rule, float]  # it blocks by this rule
    failed: float  # it has failed, blocking or not, and is not withheld
    quiet: float  # it has failed without blocking, and is not withheld
    missing: float  # errors leave it open, so that evidence is missing
    withheld: float  # it may not block but for a veto
    confirming: float  # the expected confirming trials
    chance: float = 1.0  # of the baselines that these belong to; the other chances are within it
    unproven: float = 0.0  # it is not admitted, but blocks when it falls: a threshold leaves it out

    @property
    def blocks(self) -> float:
        """It blocks by any rule."""
        return min(sum(self.red.values()), 1.0)


NEVER: Final = TaskChances({}, failed=0.0, quiet=0.0, missing=0.0, withheld=0.0, confirming=0.0, chance=0.0)


class ChancesByAdmission(NamedTuple):
    """The chances of one task, by whether admission is in force in its suite. It is from the first admitted task on, so
    what follows from the baseline of one task depends on those of the others.
    """

    in_force: TaskChances  # with every baseline that the task may have
    unproven: TaskChances = NEVER  # the part of it in which the task is not admitted
    not_in_force: TaskChances = NEVER  # that part if no other task is admitted either: then all of them may block


class ChancesOfTasks:
    """The chances of every task under one policy."""

    def __init__(self, setting: Setting, tests: RegressionTests) -> None:
        self._setting, self._tests = setting, tests
        self._policy, self._gate = setting.plan.policy, setting.plan.gate_policy
        self._quarantined = quarantined(setting.plan.quarantine, setting.plan.created_at.date())
        # By suite, how likely it is of each task that it is not admitted.
        self._unproven: dict[Suite, dict[str, float]] = defaultdict(dict)
        for task in setting.tasks:
            self._unproven[task.failed.suite][task.name] = sum(
                chance for entry, chance in self._baselines(task) if not is_admitted(self._gate, task.failed, entry)
            )
        guarded = [
            (task, counts, chance)
            for task in setting.tasks
            if is_weighed(self._gate, task.failed)
            for entry, chance in self._baselines(task)
            if (counts := guarding_counts(entry, setting.young)) is not None
        ]
        self._others = suites_of(_likely(setting))
        self._drift = run_drift(task.known for task in setting.tasks if task.known is not None).deviation
        # The guarded tasks of a run share alpha. Their number depends on chance, so the expected number is taken.
        self._alpha = alpha_of_one(self._gate, round(sum(chance for _, _, chance in guarded)))
        self._known: dict[object, ChancesByAdmission] = {}
        tests.make(self._against(task, counts) for task, counts, _ in guarded)

    def of(self, task: TaskAssumptions, fallen_to: float | None = None) -> TaskChances:
        """The chances of one task, unchanged or with another pass rate against the baseline that it had."""
        by_admission = self.by_admission(task, fallen_to)
        unproven = self._unproven[task.failed.suite]
        none = prod(chance for name, chance in unproven.items() if name != task.name)
        return weighted_sum(
            [(by_admission.in_force, 1.0), (by_admission.unproven, -none), (by_admission.not_in_force, none)]
        )

    def by_admission(self, task: TaskAssumptions, fallen_to: float | None = None) -> ChancesByAdmission:
        """The same by whether admission is in force."""
        # Tasks that share all of this have the same chances. A task with a baseline of its own is single.
        own = task.name if task.known is not None or task.name in self._quarantined else ""
        shares = (task.rate, task.errors, tuple(sorted(task.violations.items())))
        key = (task.failed.suite, task.rule, *shares, own, fallen_to)
        if key not in self._known:
            self._known[key] = self._mixed(task, fallen_to)
        return self._known[key]

    def blocking_test(self, task: TaskAssumptions, entry: BaselineTask) -> TaskTest | None:
        """The test that may block a task with this baseline; `None` where no evidence does."""
        follows = consequences(self._setting, task.failed, entry, in_force=True)
        counts = guarding_counts(entry, self._setting.young) if follows.weighed else None
        if counts is None or follows.fallen is None:
            return None
        test = self._tests.test(self._against(task, counts))
        return TaskTest(test, least_red_failures(task.failed), follows.undecided is not None)

    def _baselines(self, task: TaskAssumptions) -> Sequence[Possible]:
        return task.baselines(self._policy, self._gate)

    def _against(self, task: TaskAssumptions, counts: Counts) -> Against:
        failed, most = task.failed, self._gate.regression.max_trials
        must_clear = self._setting.young == "block"
        before = Before(*self._others[failed.suite].with_own(counts), self._drift, must_clear)
        return Against(before, failed.k, least_red_failures(failed), most, self._alpha)

    def _mixed(self, task: TaskAssumptions, fallen_to: float | None) -> ChancesByAdmission:
        trial = task.trials(self._gate, fallen_to)
        first = first_trials(task.rule, trial)

        def chances(baselines: Iterable[Possible], *, in_force: bool) -> TaskChances:
            with_each = [
                (self._with(task, one.entry, trial, first, in_force=in_force), one.chance) for one in baselines
            ]
            return weighted_sum(with_each)

        baselines = self._baselines(task)
        in_force = chances(baselines, in_force=True)._replace(chance=1.0)
        # That no task of the suite is admitted can be too rare to change any figure.
        if prod(self._unproven[task.failed.suite].values()) < _NEGLIGIBLE:
            return ChancesByAdmission(in_force)
        unproven = [one for one in baselines if not is_admitted(self._gate, task.failed, one.entry)]
        return ChancesByAdmission(in_force, chances(unproven, in_force=True), chances(unproven, in_force=False))

    def _with(
        self, task: TaskAssumptions, entry: BaselineTask, trial: TrialShares, first: FirstTrials, *, in_force: bool
    ) -> TaskChances:
        """The chances of a task with one baseline."""
        follows = consequences(self._setting, task.failed, entry, in_force=in_force)
        # Trials of a task that has fallen violate nothing, so `vetoed` is 0 for it.
        shares = {rule: share for rule, share in task.violations.items() if share and rule in self._gate.blocks_on}
        red = {rule: first.vetoed * share / sum(shares.values()) for rule, share in shares.items() if first.vetoed}
        if follows.withheld:
            # Neither quarantine nor admission holds for vetoes.
            return TaskChances(red, failed=0.0, quiet=0.0, missing=0.0, withheld=1.0, confirming=0.0)
        blocking, confirming = self._failures(task, entry, follows, trial, first)
        for rule, chance in blocking.items():
            red[rule] = red.get(rule, 0.0) + chance
        return TaskChances(
            red,
            # A threshold leaves out what is not admitted.
            failed=0.0 if follows.unproven else first.failed + first.vetoed,
            quiet=0.0 if follows.unproven else max(first.failed - sum(blocking.values()), 0.0),
            missing=first.undecided,
            withheld=0.0,
            unproven=float(follows.unproven),
            confirming=confirming,
        )

    def _failures(
        self, task: TaskAssumptions, entry: BaselineTask, follows: Consequences, trial: TrialShares, first: FirstTrials
    ) -> tuple[dict[Rule, float], float]:
        """How often the task blocks without a veto, by rule, and its expected confirming trials."""
        counts = guarding_counts(entry, self._setting.young) if follows.weighed else None
        if counts is None:
            return ({follows.failed: first.failed} if follows.failed else {}), 0.0
        if follows.fallen is None:
            return {}, 0.0
        # Trials that ended in an error are made up for, so the test goes on as if there had been none.
        without_errors = first_trials(task.rule, TrialShares(trial.pass_rate)).failed
        share = first.failed / without_errors if without_errors else 0.0
        operation = self._tests.operation(self._against(task, counts), trial.pass_rate)
        red = {follows.fallen: operation.fallen * share}
        if follows.undecided is not None:
            red[follows.undecided] = red.get(follows.undecided, 0.0) + operation.undecided * share
        return red, (operation.trials - task.failed.k) * share


def weighted_sum(parts: Iterable[tuple[TaskChances, float]]) -> TaskChances:
    """The sum of chances, each times its weight."""
    parts = [(chances, weight) for chances, weight in parts if chances.chance and weight]
    red: dict[Rule, float] = defaultdict(float)
    for chances, weight in parts:
        for rule, share in chances.red.items():
            red[rule] += share * weight
    failed, quiet, missing, withheld, confirming, chance, unproven = (
        sum(getattr(chances, name) * weight for chances, weight in parts)
        for name in ("failed", "quiet", "missing", "withheld", "confirming", "chance", "unproven")
    )
    # A weight can be negative, and differences of floats leave next to nothing below 0.
    red = {rule: max(share, 0.0) for rule, share in red.items()}
    quiet, withheld, confirming = max(quiet, 0.0), max(withheld, 0.0), max(confirming, 0.0)
    return TaskChances(red, failed, quiet, missing, withheld, confirming, chance, max(unproven, 0.0))
