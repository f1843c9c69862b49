"""gates.yaml as a file: its shape and the names in it, with the place of every problem."""

from collections.abc import Iterator
from pathlib import Path, PurePath

from passgate.tasks.errors import Problem
from passgate.tasks.formats.findings import Finding
from passgate.tasks.formats.schema_check import read_model
from passgate.tasks.model.branch import is_branch_name
from passgate.tasks.model.policy import GatePolicy, Policy, Rule, SuitePolicy
from passgate.tasks.model.sequential import LEAST_TRIALS
from passgate.tasks.model.task import BY_TRIALS

_NEVER_A_FAIL = {
    Rule.MISSING_EVIDENCE: "missing evidence is INCONCLUSIVE in every gate and cannot be made a FAIL",
    Rule.SIGN_OFF: "a sign-off is asked for with `sign_off: true` in the gate",
}


def read_policy(file: Path, name: str) -> Policy | list[Problem]:
    """The policy of a gates file, or everything that is wrong with it. `name` is what problems call the file."""
    return read_model(Policy, "gates", file, name, _findings)


def _findings(policy: Policy) -> Iterator[Finding]:
    yield from _suite_findings(policy)
    yield from _gate_findings(policy)
    if not is_branch_name(policy.baseline.branch):
        yield ("baseline", "branch"), f"{policy.baseline.branch!r} is not the name of a branch, as `main` is"


def _suite_findings(policy: Policy) -> Iterator[Finding]:
    for suite, rules in policy.suites.items():
        if rules.budgets.max_steps is not None:
            yield ("suites", suite, "budgets", "max_steps"), "the suite's own max_steps is the default and the limit"
        for message in _sequential_findings(rules):
            yield ("suites", suite, "sequential"), message


def _sequential_findings(rules: SuitePolicy) -> Iterator[str]:
    if rules.sequential is not None and rules.k < LEAST_TRIALS:
        yield f"a sequential test needs `k` of at least {LEAST_TRIALS}, here it is {rules.k}"
    if rules.sequential is not None and rules.metric not in BY_TRIALS:
        metrics = " or ".join(sorted(BY_TRIALS))
        yield f"a sequential test asks which trials passed: it needs the metric {metrics}, here it is {rules.metric!s}"


def _gate_findings(policy: Policy) -> Iterator[Finding]:
    for gate, rules in policy.gates.items():
        for index, suite in enumerate(rules.suites):
            if suite not in policy.suites:
                yield ("gates", gate, "suites", index), f"`suites:` says nothing of {suite!s}"
        for index, rule in enumerate(rules.blocks_on):
            if rule in _NEVER_A_FAIL:
                yield ("gates", gate, "blocks_on", index), _NEVER_A_FAIL[rule]
        for path, message in (*_admission_findings(rules), *_reuse_findings(rules)):
            yield ("gates", gate, *path), message


def _admission_findings(rules: GatePolicy) -> Iterator[Finding]:
    wanted = rules.admission
    if wanted is not False and wanted.passes > wanted.of:
        yield ("admission",), f"`passes: {wanted.passes}` is more than `of: {wanted.of}`: no task could be admitted"


def _reuse_findings(rules: GatePolicy) -> Iterator[Finding]:
    patterns = rules.reuse.agent_files if rules.reuse is not None else ()
    for index, pattern in enumerate(patterns):
        path = PurePath(pattern)
        if path.is_absolute() or ".." in path.parts:
            yield ("reuse", "agent_files", index), "must stay in the folder of the gates file, as in `src/**/*.py`"
