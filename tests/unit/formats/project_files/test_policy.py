"""gates.yaml, right and wrong."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.formats.project_files import read_policy
from passgate.tasks.model.policy import Admission, Policy, Regression, Reuse, Rule
from passgate.tasks.model.task import GateName, Metric, Suite
from tests.builders import REPOSITORY
from tests.unit.formats.reading import read_text

GOLDEN = Suite.GOLDEN
NEVER_A_FAIL = "missing evidence is INCONCLUSIVE in every gate and cannot be made a FAIL"
LEAST = """\
suites:
  golden: {k: 3, metric: pass^k, max_steps: 20}
gates:
  ci_merge: {suites: [golden]}
"""


OUTSIDE = "must stay in the folder of the gates file, as in `src/**/*.py`"
REMOVED = "removed key: a gate with `regression.mode: evidence` tests a failed task with no more trials than it needs"
OWN_LIMIT = "the suite's own max_steps is the default and the limit"


def read(tmp_path: Path, text: str) -> Policy | list[str]:
    return read_text(tmp_path / "gates.yaml", text, read_policy)


def policy_of(tmp_path: Path, text: str) -> Policy:
    policy = read(tmp_path, text)
    assert isinstance(policy, Policy), policy
    return policy


def with_gate(keys: str) -> str:
    """The least policy with something more in its gate; what comes more begins in line 4, column 32."""
    return LEAST.replace("[golden]}", f"[golden], {keys}}}")


def with_suite(keys: str) -> str:
    """The least policy with something more in its suite; what comes more begins in line 2, column 49."""
    return LEAST.replace("max_steps: 20", f"max_steps: 20, {keys}").replace("k: 3", "k: 10")


def test_the_shipped_policy_is_what_the_documentation_says() -> None:
    policy = read_policy(REPOSITORY / "gates.yaml", "gates.yaml")
    assert isinstance(policy, Policy)
    numbers = {suite: (rules.k, rules.metric, rules.max_steps) for suite, rules in policy.suites.items()}
    assert numbers == {
        Suite.GOLDEN: (3, Metric.PASS_HAT_K, 20),
        Suite.ADVERSARIAL: (10, Metric.PASS_HAT_K, 8),
        Suite.OPEN_ENDED: (5, Metric.PASS_AT_K, 12),
        Suite.FAILURE_REPLAYS: (5, Metric.PASS_HAT_K, 10),
    }
    merge, nightly, release = (policy.gates[gate] for gate in GateName)
    assert merge.suites == (Suite.GOLDEN, Suite.ADVERSARIAL, Suite.FAILURE_REPLAYS)
    assert {Rule.SAFETY_VIOLATION, Rule.FORBIDDEN_TOOL, Rule.GOLDEN_REGRESSION} <= set(merge.blocks_on)
    assert (merge.limits.latency_p95_increase_pct, merge.limits.cost_increase_pct) == (15, 10)
    assert (set(nightly.suites), nightly.blocks_on) == (set(Suite), ())
    assert set(release.thresholds.values()) == {1.0}
    assert set(release.thresholds) == set(release.suites) == set(Suite)


def test_the_least_that_a_policy_says(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, LEAST)
    assert (policy.error_retries, policy.secrets) == (1, ())
    assert (policy.baseline.branch, policy.baseline.runs) == ("main", 20)
    gate = policy.gates[GateName.CI_MERGE]
    assert (gate.blocks_on, gate.regression, gate.admission, gate.reuse) == ((), Regression(), False, None)
    assert (gate.curtailment, gate.sign_off, gate.integrity) == (False, False, "merge_base")
    baseline = policy_of(tmp_path, LEAST + "baseline: {branch: release/1.x, runs: 5}\n").baseline
    assert (baseline.branch, baseline.runs) == ("release/1.x", 5)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "1:1: expected a mapping, not null"),
        ("gates: [", "2:1: not valid YAML: while parsing a flow node, did not find expected node content"),
        (LEAST.replace("golden: {", "goldn: {"), "2:3: suites.goldn: unknown key; did you mean 'golden'?"),
        (LEAST.replace("ci_merge", "ci-merge"), "4:3: gates.ci-merge: unknown key; did you mean 'ci_merge'?"),
        (LEAST.replace(", max_steps: 20", ""), "2:11: suites.golden: the key 'max_steps' is missing"),
        (with_suite("max_step: 1"), "2:50: suites.golden.max_step: unknown key; did you mean 'max_steps'?"),
        (with_suite("sequential: {accept: 0.9, reject: 0.5}"), f"2:50: suites.golden.sequential: {REMOVED}"),
        (
            LEAST.replace("n]", "n, adversarial]"),
            "4:31: gates.ci_merge.suites[1]: `suites:` says nothing of adversarial",
        ),
        (with_suite("budgets: {max_steps: 5}"), f"2:71: suites.golden.budgets.max_steps: {OWN_LIMIT}"),
        (LEAST.replace("[golden]", "[]"), "4:22: gates.ci_merge.suites: must not be empty"),
        (LEAST.replace("k: 3", "k: 1.0e+30"), "2:15: suites.golden.k: must be at most 100000, not 1e+30"),
        (LEAST + "version: 2\n", "5:10: version: must be at most 1, not 2"),
        (LEAST + "error_retries: 11\n", "5:16: error_retries: must be at most 10, not 11"),
        (LEAST + "concurrency: {trials: 0}\n", "5:23: concurrency.trials: must be at least 1, not 0"),
        (LEAST + "secrets: ['']\n", "5:11: secrets[0]: must not be empty"),
        (LEAST + "baseline: {runs: 0}\n", "5:18: baseline.runs: must be at least 1, not 0"),
        (LEAST + "baseline: {runs: 1001}\n", "5:18: baseline.runs: must be at most 1000, not 1001"),
        (LEAST + "baseline: {branch: a~1}\n", "5:20: baseline.branch: 'a~1' is not the name of a branch, as `main` is"),
    ],
)
def test_a_problem_has_its_place(tmp_path: Path, text: str, expected: str) -> None:
    assert read(tmp_path, text) == [expected]


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("admission: off", {"admission": False}),
        ("admission: {}", {"admission": Admission(passes=19, of=20)}),
        ("admission: {passes: 3}", {"admission": Admission(passes=3, of=20)}),
        ("admission: {of: 40}", {"admission": Admission(passes=19, of=40)}),
        ("admission: {passes: 5, of: 5}", {"admission": Admission(passes=5, of=5)}),
        # A plain `off` is the truth value false in YAML.
        ("integrity: off", {"integrity": "off"}),
        ("integrity: 'off'", {"integrity": "off"}),
        ("integrity: merge_base", {"integrity": "merge_base"}),
        (
            "regression: {mode: strict, suites: [golden], alpha: 0.05, max_trials: 12, undecided: block}",
            {"regression": Regression(mode="strict", suites=(GOLDEN,), alpha=0.05, max_trials=12, undecided="block")},
        ),
        ("curtailment: true, sign_off: yes", {"curtailment": True, "sign_off": True}),
        ("reuse: {agent_files: [src/*, a.md]}", {"reuse": Reuse(agent_files=("src/*", "a.md"), max_age_days=7)}),
    ],
)
def test_what_a_gate_says(tmp_path: Path, keys: str, said: dict[str, Any]) -> None:
    gate = policy_of(tmp_path, with_gate(keys)).gates[GateName.CI_MERGE]
    assert {name: getattr(gate, name) for name in said} == said


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("blocks_on: [cost, missing_evidence]", f"50: blocks_on[1]: {NEVER_A_FAIL}"),
        ("blocks_on: [costs]", "44: blocks_on[0]: \"costs\" is not one of the allowed values; did you mean 'cost'?"),
        ("blocks_on: [sign_off]", "44: blocks_on[0]: a sign-off is asked for with `sign_off: true` in the gate"),
        ("thresholds: {golden: 1.1}", "53: thresholds.golden: must be at most 1, not 1.1"),
        ("admission: on", "43: admission: expected a mapping or false, not true"),
        ("admission: 19", "43: admission: expected a mapping or false, not 19"),
        ("admission: {passes: 21}", "43: admission: `passes: 21` is more than `of: 20`: no task could be admitted"),
        ("admission: {of: 18}", "43: admission: `passes: 19` is more than `of: 18`: no task could be admitted"),
        ("admission: {passes: 0}", "52: admission.passes: must be at least 1, not 0"),
        ("admission: {off: 20}", "44: admission.off: unknown key; did you mean 'of'?"),
        ("integrity: on", "43: integrity: true is not one of the allowed values; known: false, merge_base, off"),
        ("integrity: pull", '43: integrity: "pull" is not one of the allowed values; known: false, merge_base, off'),
        ("regression: strict", '44: regression: expected a mapping, not "strict"'),
        ("regression: {mode: a}", '51: regression.mode: "a" is not one of the allowed values; known: evidence, strict'),
        ("regression: {suites: []}", "53: regression.suites: must not be empty"),
        ("regression: {alpha: 0}", "52: regression.alpha: must be more than 0, not 0"),
        ("regression: {alpha: 0.5}", "52: regression.alpha: must be less than 0.5, not 0.5"),
        ("regression: {max_trials: 0}", "57: regression.max_trials: must be at least 1, not 0"),
        ("regression: {max_trials: 501}", "57: regression.max_trials: must be at most 500, not 501"),
        (
            "regression: {undecided: a}",
            '56: regression.undecided: "a" is not one of the allowed values; known: block, warn',
        ),
        ("curtailment: 3", "45: curtailment: expected true or false, not 3"),
        ("sign_off: maybe", '42: sign_off: expected true or false, not "maybe"'),
        ("reuse: {}", "39: reuse: the key 'agent_files' is missing"),
        ("reuse: on", "39: reuse: expected a mapping, not true"),
        ("reuse: {agent_files: []}", "53: reuse.agent_files: must not be empty"),
        ("reuse: {agent_files: [a], max_age_days: 0}", "72: reuse.max_age_days: must be at least 1, not 0"),
        ("reuse: {agent_files: [a], max_age_days: 366}", "72: reuse.max_age_days: must be at most 365, not 366"),
        ("reuse: {agent_files: [a, ../b]}", f"57: reuse.agent_files[1]: {OUTSIDE}"),
        ("reuse: {agent_files: [c/../../d]}", f"54: reuse.agent_files[0]: {OUTSIDE}"),
        ("reuse: {agent_files: [/e]}", f"54: reuse.agent_files[0]: {OUTSIDE}"),
    ],
)
def test_a_problem_of_a_gate_has_its_place(tmp_path: Path, keys: str, expected: str) -> None:
    found = [problem.replace("gates.ci_merge.", "") for problem in read(tmp_path, with_gate(keys))]
    assert found == [f"4:{expected}"]


def test_all_problems_come_together(tmp_path: Path) -> None:
    found = read(tmp_path, with_gate("admission: {passes: 0, off: 20}, sign_off: maybe"))
    assert sorted(problem.split(":")[1] for problem in found) == ["52", "55", "75"]
