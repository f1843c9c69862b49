"""gates.yaml, right and wrong."""

from pathlib import Path

import pytest
from tests.builders import REPOSITORY

from passgate.tasks.errors import Problem
from passgate.tasks.formats.policy_file import read_policy
from passgate.tasks.model.policy import Policy, Rule
from passgate.tasks.model.task import GateName, Metric, Suite

NEVER_A_FAIL = "missing evidence is INCONCLUSIVE in every gate and cannot be made a FAIL"
LEAST = """\
suites:
  golden: {k: 3, metric: pass^k, max_steps: 20}
gates:
  ci_merge: {suites: [golden]}
"""


def problems(tmp_path: Path, text: str) -> list[str]:
    file = tmp_path / "gates.yaml"
    file.write_text(text)
    answer = read_policy(file, "gates.yaml")
    assert isinstance(answer, list)
    assert all(isinstance(problem, Problem) for problem in answer)
    return [str(problem).removeprefix("gates.yaml:") for problem in answer]


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
    file = tmp_path / "gates.yaml"
    file.write_text(LEAST)
    policy = read_policy(file, "gates.yaml")
    assert isinstance(policy, Policy)
    assert policy.gates[GateName.CI_MERGE].blocks_on == ()
    assert (policy.error_retries, policy.baseline.branch, policy.secrets) == (1, "main", ())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ["1:1: expected a mapping, not null"]),
        ("gates: [", ["2:1: not valid YAML: while parsing a flow node, did not find expected node content"]),
        (
            LEAST.replace("golden: {", "goldn: {"),
            ["2:3: suites.goldn: unknown key; did you mean 'golden'?"],
        ),
        (
            LEAST.replace("ci_merge", "ci-merge"),
            ["4:3: gates.ci-merge: unknown key; did you mean 'ci_merge'?"],
        ),
        (
            LEAST.replace("max_steps", "max_step"),
            [
                "2:34: suites.golden.max_step: unknown key; did you mean 'max_steps'?",
                "2:11: suites.golden: the key 'max_steps' is missing",
            ],
        ),
        (
            LEAST.replace("[golden]", "[golden, adversarial]"),
            ["4:31: gates.ci_merge.suites[1]: `suites:` says nothing of adversarial"],
        ),
        (
            LEAST.replace("[golden]}", "[golden], blocks_on: [cost, missing_evidence]}"),
            [
                f"4:50: gates.ci_merge.blocks_on[1]: {NEVER_A_FAIL}",
            ],
        ),
        (
            LEAST.replace("[golden]}", "[golden], blocks_on: [costs], thresholds: {golden: 1.1}}"),
            [
                "4:44: gates.ci_merge.blocks_on[0]: \"costs\" is not one of the allowed values; did you mean 'cost'?",
                "4:73: gates.ci_merge.thresholds.golden: must be at most 1, not 1.1",
            ],
        ),
        (
            LEAST.replace("max_steps: 20", "max_steps: 20, budgets: {max_steps: 5}"),
            ["2:70: suites.golden.budgets.max_steps: the suite's own max_steps is the default and the limit"],
        ),
        (LEAST.replace("[golden]", "[]"), ["4:22: gates.ci_merge.suites: must not be empty"]),
        (LEAST + "version: 2\n", ["5:10: version: must be at most 1, not 2"]),
        (LEAST + "error_retries: 11\n", ["5:16: error_retries: must be at most 10, not 11"]),
        (LEAST + "concurrency: {trials: 0}\n", ["5:23: concurrency.trials: must be at least 1, not 0"]),
        (LEAST + "secrets: ['']\n", ["5:11: secrets[0]: must not be empty"]),
    ],
)
def test_every_problem_has_its_place(tmp_path: Path, text: str, expected: list[str]) -> None:
    assert sorted(problems(tmp_path, text)) == sorted(expected)


def test_a_number_that_does_not_fit_is_a_problem(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, LEAST.replace("k: 3", "k: 1.0e+30"))
    assert problem.startswith("2:15: suites.golden.k: ")
