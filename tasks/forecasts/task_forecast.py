"""One task in one run: how often it blocks, and what that takes."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Final, NamedTuple

from passgate.tasks.forecasts.assumptions import Setting, TaskAssumptions
from passgate.tasks.forecasts.first_trials import FirstTrials, Possible, TrialShares, first_trials
from passgate.tasks.gates.decide import failed_tasks
from passgate.tasks.gates.evidence import alpha_of_one, is_weighed, least_red_failures
from passgate.tasks.gates.exemptions import not_admitted, quarantined
from passgate.tasks.model.baseline import Baseline, BaselineState, BaselineTask
from passgate.tasks.model.measurement import TaskMeasurement
from passgate.tasks.model.policy import GatePolicy, Rule
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import Confirmation, Finding
from passgate.tasks.stats.regression import Operation, RegressionTest, regression_tests

_NEGLIGIBLE: Final = 1e-12
# Whether a failure blocks hangs on what was found, not on how many trials it took.
_ANY_TRIALS: Final = Confirmation(
    task="", finding=Finding.FALLEN, passed=0, n=0, confirming=0, baseline_passed=0, baseline_n=0, alpha=0.0
)


class Against(NamedTuple):
    """What a test is made from; see `regression_test`."""

    passed: int
    n: int
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
            baselines, alphas = [(key.passed, key.n) for key in wanted], [key.alpha for key in wanted]
            made = regression_tests(baselines, alphas, k=k, red_from=red_from, most=most)
            self._tests.update(zip(wanted, made, strict=True))

    def operation(self, key: Against, pass_rate: float) -> Operation:
        """What a test does with a task that passes so often."""
        found = self._operations.get((key, pass_rate))
        if found is None:
            self.make([key])
            found = self._operations[key, pass_rate] = self._tests[key].operation(pass_rate)
        return found


class Consequences(NamedTuple):
    """By which rule each of these blocks; `None` where it does not."""

    withheld: bool
    """Not admitted, or in quarantine."""
    weighed: bool
    """Whether the failure is held against the baseline by evidence."""
    failed: Rule | None
    """A failure that is not."""
    fallen: Rule | None
    undecided: Rule | None


def consequences(setting: Setting, task: TaskMeasurement, entry: BaselineTask, *, in_force: bool) -> Consequences:
    """What follows when a task has failed whose baseline is `entry`. `in_force`: other tasks of its suite are
    admitted."""
    gate = setting.plan.gate_policy
    baseline = Baseline(branch=setting.branch, tasks={task.name: entry})
    in_quarantine = task.name in quarantined(setting.plan.quarantine, setting.plan.created_at.date())
    if in_quarantine or (in_force and not is_admitted(gate, task, entry)):
        return Consequences(True, False, None, None, None)
    if is_weighed(gate, task) and entry.state is BaselineState.GREEN:
        fallen, undecided = (
            _blocking(gate, task, baseline, {task.name: _ANY_TRIALS.model_copy(update={"finding": finding})})
            for finding in (Finding.FALLEN, Finding.UNDECIDED)
        )
        return Consequences(False, True, None, fallen, undecided)
    return Consequences(False, False, _blocking(gate, task, baseline, {}), None, None)


def is_admitted(gate: GatePolicy, task: TaskMeasurement, entry: BaselineTask) -> bool:
    """Whether a task may block, beside others of its suite that may."""
    shown = (True,) * gate.admission.of if gate.admission else ()
    other = BaselineTask(state=BaselineState.GREEN, newest=shown)
    return not_admitted(gate, task, Baseline(branch="", tasks={f"{task.suite}/": other, task.name: entry})) is None


def _blocking(
    gate: GatePolicy, task: TaskMeasurement, baseline: Baseline, confirmed: Mapping[str, Confirmation]
) -> Rule | None:
    for reason in failed_tasks(gate, [task], baseline, confirmed):
        if reason.blocking and reason.rule in gate.blocks_on:
            return reason.rule
    return None


class TaskChances(NamedTuple):
    """The chances of one task in one run."""

    red: Mapping[Rule, float]
    """It blocks by this rule."""
    failed: float
    """It has failed, blocking or not, and is not withheld."""
    quiet: float
    """It has failed without blocking, and is not withheld."""
    missing: float
    """Errors leave it open, so that evidence is missing."""
    withheld: float
    """It may not block but for a veto."""
    confirming: float
    """Expected confirming trials."""
    chance: float = 1.0
    """Of the baselines that it is of; the other chances are within it."""

    @property
    def blocks(self) -> float:
        """It blocks by any rule."""
        return min(sum(self.red.values()), 1.0)


NEVER: Final = TaskChances({}, failed=0.0, quiet=0.0, missing=0.0, withheld=0.0, confirming=0.0, chance=0.0)


class ChancesByAdmission(NamedTuple):
    """The chances of one task, by whether admission is in force in its suite. It is from the first admitted task on; so
    what follows of the baseline of one task hangs on those of the others.
    """

    in_force: TaskChances
    """With every baseline that the task may have."""
    unproven: TaskChances = NEVER
    """The part of it in which the task is not admitted."""
    not_in_force: TaskChances = NEVER
    """What that part is where no other task is admitted either: all of them may block."""


class ChancesOfTasks:
    """The chances of every task under one policy."""

    def __init__(self, setting: Setting, tests: RegressionTests) -> None:
        self._setting = setting
        self._policy, self._gate = setting.plan.policy, setting.plan.gate_policy
        self._quarantined = quarantined(setting.plan.quarantine, setting.plan.created_at.date())
        self._tests = tests
        self._unproven = self._chances_of_no_admission()
        self._alpha = alpha_of_one(self._gate.regression, round(self._weighed()))
        self._known: dict[object, ChancesByAdmission] = {}
        tests.make(self._against(task, entry) for task in setting.tasks for entry in self._green(task))

    def of(self, task: TaskAssumptions, fallen_to: float | None = None) -> TaskChances:
        """Of one task, unchanged or with another pass rate against the baseline that it had."""
        by_admission = self.by_admission(task, fallen_to)
        unproven = self._unproven[task.failed.suite]
        none = prod(chance for name, chance in unproven.items() if name != task.name)
        return _sum([(by_admission.in_force, 1.0), (by_admission.unproven, -none), (by_admission.not_in_force, none)])

    def by_admission(self, task: TaskAssumptions, fallen_to: float | None = None) -> ChancesByAdmission:
        """The same by whether admission is in force."""
        key = (*self._likeness(task), fallen_to)
        if key not in self._known:
            self._known[key] = self._mixed(task, fallen_to)
        return self._known[key]

    def _likeness(self, task: TaskAssumptions) -> tuple[object, ...]:
        """What tasks have in common that have the same chances; tasks with a baseline of their own are single."""
        own = task.name if task.known is not None or task.name in self._quarantined else ""
        shares = (task.rate, task.errors, tuple(sorted(task.violations.items())))
        return (task.failed.suite, task.rule, *shares, own)

    def _weighed(self) -> float:
        """The expected number of tasks among which alpha is shared out."""
        return sum(
            chance
            for task in self._setting.tasks
            if is_weighed(self._gate, task.failed)
            for entry, chance in self._baselines(task)
            if entry.state is BaselineState.GREEN
        )

    def _chances_of_no_admission(self) -> Mapping[Suite, Mapping[str, float]]:
        """By suite, how likely it is of each task that it is not admitted."""
        chances: dict[Suite, dict[str, float]] = defaultdict(dict)
        for task in self._setting.tasks:
            chances[task.failed.suite][task.name] = sum(
                chance for entry, chance in self._baselines(task) if not is_admitted(self._gate, task.failed, entry)
            )
        return chances

    def _baselines(self, task: TaskAssumptions) -> Sequence[Possible]:
        return task.baselines(self._policy, self._gate)

    def _green(self, task: TaskAssumptions) -> list[BaselineTask]:
        if not is_weighed(self._gate, task.failed):
            return []
        return [entry for entry, _ in self._baselines(task) if entry.state is BaselineState.GREEN]

    def _against(self, task: TaskAssumptions, entry: BaselineTask) -> Against:
        failed, most = task.failed, self._gate.regression.max_trials
        return Against(entry.passed, entry.n, failed.k, least_red_failures(failed), most, self._alpha)

    def _mixed(self, task: TaskAssumptions, fallen_to: float | None) -> ChancesByAdmission:
        trial = task.trials(self._gate, fallen_to)
        first = first_trials(task.rule, trial)

        def chances(baselines: Iterable[Possible], *, in_force: bool) -> TaskChances:
            return _sum(
                [
                    (self._with(task, entry, trial, first, in_force=in_force, vetoes=fallen_to is None), chance)
                    for entry, chance in baselines
                ]
            )

        baselines = self._baselines(task)
        in_force = chances(baselines, in_force=True)._replace(chance=1.0)
        if prod(self._unproven[task.failed.suite].values()) < _NEGLIGIBLE:
            return ChancesByAdmission(in_force)
        unproven = [one for one in baselines if not is_admitted(self._gate, task.failed, one.entry)]
        return ChancesByAdmission(in_force, chances(unproven, in_force=True), chances(unproven, in_force=False))

    def _with(
        self,
        task: TaskAssumptions,
        entry: BaselineTask,
        trial: TrialShares,
        first: FirstTrials,
        *,
        in_force: bool,
        vetoes: bool,
    ) -> TaskChances:
        """With one baseline."""
        follows = consequences(self._setting, task.failed, entry, in_force=in_force)
        red = dict(self._vetoes(task, first.vetoed)) if vetoes else {}
        if follows.withheld:
            return TaskChances(red, failed=0.0, quiet=0.0, missing=0.0, withheld=1.0, confirming=0.0)
        blocking, confirming = self._failures(task, entry, follows, trial, first)
        for rule, chance in blocking.items():
            red[rule] = red.get(rule, 0.0) + chance
        return TaskChances(
            red,
            failed=first.failed + first.vetoed,
            quiet=max(first.failed - sum(blocking.values()), 0.0),
            missing=first.undecided,
            withheld=0.0,
            confirming=confirming,
        )

    def _vetoes(self, task: TaskAssumptions, vetoed: float) -> list[tuple[Rule, float]]:
        """The chance of a veto, shared out over the rules as their violations are."""
        shares = {rule: share for rule, share in task.violations.items() if share and rule in self._gate.blocks_on}
        return [(rule, vetoed * share / sum(shares.values())) for rule, share in shares.items()]

    def _failures(
        self, task: TaskAssumptions, entry: BaselineTask, follows: Consequences, trial: TrialShares, first: FirstTrials
    ) -> tuple[dict[Rule, float], float]:
        """How often the task blocks without a veto, by rule, and its expected confirming trials."""
        if not follows.weighed:
            return ({follows.failed: first.failed} if follows.failed else {}), 0.0
        if follows.fallen is None:
            return {}, 0.0
        # Trials that ended in an error are made up for, so the test goes on as if there had been none.
        without_errors = first_trials(task.rule, TrialShares(trial.pass_rate)).failed
        share = first.failed / without_errors if without_errors else 0.0
        operation = self._tests.operation(self._against(task, entry), trial.pass_rate)
        red = {follows.fallen: operation.fallen * share}
        if follows.undecided is not None:
            red[follows.undecided] = red.get(follows.undecided, 0.0) + operation.undecided * share
        return red, (operation.trials - task.failed.k) * share


def _sum(parts: Iterable[tuple[TaskChances, float]]) -> TaskChances:
    """Each times its weight."""
    parts = [(chances, weight) for chances, weight in parts if chances.chance and weight]
    red: dict[Rule, float] = defaultdict(float)
    for chances, weight in parts:
        for rule, share in chances.red.items():
            red[rule] += share * weight
    failed, quiet, missing, withheld, confirming, chance = (
        sum(getattr(chances, name) * weight for chances, weight in parts)
        for name in ("failed", "quiet", "missing", "withheld", "confirming", "chance")
    )
    # What is subtracted again leaves next to nothing below 0.
    red = {rule: max(share, 0.0) for rule, share in red.items()}
    return TaskChances(red, failed, max(quiet, 0.0), missing, max(withheld, 0.0), max(confirming, 0.0), chance)
