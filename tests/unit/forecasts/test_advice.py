"""The smallest change of a policy that makes false reds rarer."""

from typing import Any

import pytest
import yaml

from passgate.tasks.forecasts.advice import Candidate, Improved, candidates, improve
from passgate.tasks.forecasts.assumptions import Setting
from passgate.tasks.forecasts.simulated_gate import TaskTests
from passgate.tasks.model.forecast import Cause
from passgate.tasks.model.policy import Admission, Policy, QuarantineFile, Rule
from passgate.tasks.model.task import Metric, Suite
from tests.builders import a_baseline_task, a_task
from tests.unit.forecasts.settings import EVIDENCE, PLAIN, STRICT, foresee, setting, tasks

GREEN, THIN = a_baseline_task(passed=59, n=60), a_baseline_task(passed=18, n=18)
FEW = {"regression": {"mode": "evidence", "max_trials": 9}}


def improved(one: Setting, target: float = 0.02) -> Improved:
    tests = TaskTests()
    return improve(foresee(one, tests), lambda changed: foresee(changed, tests), target)


def whats(found: Improved) -> list[str]:
    return [change.what for change in found.changes]


THRESHOLD = {**STRICT, "thresholds": {"golden": 1.0}, "blocks_on": ["golden_regression", "threshold"]}


@pytest.mark.parametrize(
    ("gate", "changes"),
    [
        (STRICT, ["regression.mode: strict -> evidence"]),
        (THRESHOLD, ["regression.mode: strict -> evidence", "thresholds.golden: 1 -> 0.8"]),
    ],
    ids=["one change", "two changes"],
)
def test_strict_gates_become_trustworthy_by_evidence(gate: dict[str, Any], changes: list[str]) -> None:
    found = improved(setting(tasks(20), 0.985, known=GREEN, **gate))
    assert whats(found) == changes
    assert found.forecast.red <= 0.02


def test_the_first_that_reaches_the_target_is_the_smallest() -> None:
    one = setting(tasks(6), 0.9, known=THIN, **{**EVIDENCE, **FEW}, young="block")
    assert foresee(one).red > 0.1
    assert whats(improved(one, target=foresee(one).red - 1e-6)) == ["regression.undecided: block -> warn"]


def test_where_nothing_reaches_it_the_least_red_is_told_and_where_nothing_helps_nothing_is_changed() -> None:
    one = setting(tasks(4), 0.7, known=GREEN, **STRICT)
    found = improved(one)
    assert found.changes
    assert 0.02 < found.forecast.red < foresee(one).red
    rules = {**STRICT, "blocks_on": ["safety_violation"]}
    one = setting(tasks(2), 0.5, known=GREEN, task={"violations": {"safety_violation": 0.3}, "safety": True}, **rules)
    found = improved(one)
    assert (found.changes, found.forecast.red) == ((), pytest.approx(foresee(one).red))


def found(one: Setting) -> list[Candidate]:
    return list(candidates(one, foresee(one).causes()))


def all_changes(one: Setting) -> list[str]:
    return [candidate.change.what for candidate in found(one)]


def only(one: Setting, beginning: str) -> Candidate:
    (candidate,) = [candidate for candidate in found(one) if candidate.change.what.startswith(beginning)]
    return candidate


def test_a_strict_gate_may_ask_for_evidence_and_one_that_is_never_red_for_nothing() -> None:
    candidate = found(setting(tasks(2), 0.9, **STRICT))[0]
    assert candidate.change.what == "regression.mode: strict -> evidence"
    assert candidate.change.lines == ("gates:", "  ci_merge:", "    regression: {mode: evidence}")
    assert candidate.setting.plan.gate_policy.regression.mode == "evidence"
    assert found(setting(tasks(2), 1.0, known=a_baseline_task(), **STRICT)) == []


def test_a_gate_that_asks_for_evidence_may_ask_for_more() -> None:
    regression = {"mode": "evidence", "alpha": 0.04, "max_trials": 60, "undecided": "block"}
    one = setting(tasks(2), 0.9, **{**PLAIN, "regression": regression}, young="block")
    assert all_changes(one)[:5] == [
        "regression.max_trials: 60 -> 120",
        "regression.alpha: 0.04 -> 0.02",
        "regression.alpha: 0.04 -> 0.01",
        "regression.alpha: 0.04 -> 0.005",
        "regression.undecided: block -> warn",
    ]


def test_a_suite_that_is_red_may_be_weighed() -> None:
    one = setting([a_task(suite=Suite.OPEN_ENDED)], 0.9, **EVIDENCE)
    candidate = only(one, "regression.suites")
    assert candidate.change.lines[-1] == "      suites: [golden, adversarial, failure_replays, open_ended]"
    assert Suite.OPEN_ENDED in candidate.setting.plan.gate_policy.regression.suites
    by_scores = setting([a_task(suite=Suite.OPEN_ENDED, metric=Metric.MEAN)], 0.9, **EVIDENCE)
    assert not any(what.startswith("regression.suites") for what in all_changes(by_scores))


def test_limits_are_raised_step_by_step() -> None:
    one = setting(tasks(1), 1.0, **{**PLAIN, "limits": {"latency_p95_increase_pct": 15, "cost_increase_pct": 90}})
    causes = [Cause(rule=rule, chance=0.1, share=0.5) for rule in (Rule.LATENCY, Rule.COST)]
    assert [candidate.change.what for candidate in candidates(one, causes)] == [
        "limits.latency_p95_increase_pct: 15 -> 20",
        "limits.latency_p95_increase_pct: 15 -> 25",
        "limits.latency_p95_increase_pct: 15 -> 30",
        "limits.cost_increase_pct: 90 -> 100",
    ]


def test_a_task_may_be_put_into_quarantine_unless_it_guards_safety() -> None:
    one = setting(tasks(5), [0.9, 0.8, 0.7, 0.6, 1.0], **STRICT)
    asked = [candidate for candidate in found(one) if candidate.change.file == "quarantine.yaml"]
    assert [candidate.change.what for candidate in asked] == [f"quarantine of golden/t{n}" for n in (3, 2, 1)]
    (entry,) = yaml.safe_load("\n".join(asked[0].change.lines))["tasks"]
    assert entry["task"] == "golden/t3"
    QuarantineFile.model_validate({"tasks": [entry]})
    assert foresee(asked[0].setting).red < foresee(one).red
    safe = setting(tasks(2), 0.9, task={"safety": True}, **STRICT)
    assert not any(what.startswith("quarantine") for what in all_changes(safe))


def test_a_new_k_makes_the_rule_milder_for_tasks_without_one_of_their_own() -> None:
    strict = setting(tasks(2), 0.9, **STRICT)
    candidate = only(strict, "k of golden")
    assert candidate.change.what == "k of golden: 3 -> 2"
    assert [task.k for task in candidate.setting.plan.tasks] == [2, 2]
    assert foresee(candidate.setting).red == pytest.approx(1 - 0.9**4, abs=0.03)
    open_ended = [a_task(suite=Suite.OPEN_ENDED, metric=Metric.PASS_AT_K, k=5)]
    assert only(setting(open_ended, 0.3, **STRICT), "k of").change.what == "k of open_ended: 5 -> 6"
    own = setting([*tasks(1), a_task(task_id="own", k=7)], 0.9, **STRICT)
    assert [task.k for task in only(own, "k of").setting.plan.tasks] == [2, 7]


def test_admission_may_be_turned_on_and_a_threshold_lowered() -> None:
    candidate = only(setting(tasks(2), 0.9, **STRICT), "admission")
    assert candidate.change.what == "admission: off -> {passes: 19, of: 20}"
    assert candidate.setting.plan.gate_policy.admission == Admission()
    one = setting(tasks(4), 0.9, **{**STRICT, "thresholds": {"golden": 0.9}, "blocks_on": ["threshold"]})
    assert only(one, "thresholds").change.what == "thresholds.golden: 0.9 -> 0.8"


def test_every_change_is_what_its_lines_say() -> None:
    """The lines, laid over the policy, make the policy that was forecast."""
    settings = [
        setting(tasks(3), 0.9, **{**mode, "limits": {"cost_increase_pct": 10}, "thresholds": {"golden": 1.0}})
        for mode in (STRICT, {**EVIDENCE, "blocks_on": ["golden_regression", "threshold"]})
    ]
    for one in settings:
        for candidate in found(one):
            if candidate.change.file == "gates.yaml":
                document = one.plan.policy.model_dump(mode="json")
                laid = over(document, yaml.safe_load("\n".join(candidate.change.lines)))
                assert Policy.model_validate(laid) == candidate.setting.plan.policy, candidate.change.what


def over(document: dict[str, Any], lines: dict[str, Any]) -> dict[str, Any]:
    """A document with what some lines say."""
    said = dict(document)
    for key, value in lines.items():
        both = isinstance(value, dict) and isinstance(said.get(key), dict)
        said[key] = over(said[key], value) if both else value
    return said
