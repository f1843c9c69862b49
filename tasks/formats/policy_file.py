"""gates.yaml as a file: its shape and the names in it, with the place of every problem."""

from collections.abc import Iterator
from pathlib import Path

from passgate.tasks.errors import Problem
from passgate.tasks.formats.document import Document, DocumentPath, read_document
from passgate.tasks.formats.schema_check import schema_validator, validated
from passgate.tasks.model.policy import Policy, Rule


def read_policy(file: Path, name: str) -> Policy | list[Problem]:
    """The policy of a gates file, or everything that is wrong with it. `name` is what problems call the file."""
    document = read_document(file, name)
    if document.problems:
        return document.problems
    policy = validated(Policy, document, schema_validator("gates"))
    if isinstance(policy, list):
        return policy
    return _findings(policy, document) or policy


def _findings(policy: Policy, document: Document) -> list[Problem]:
    return [document.problem(path, message) for path, message in (*_suite_findings(policy), *_gate_findings(policy))]


def _suite_findings(policy: Policy) -> Iterator[tuple[DocumentPath, str]]:
    for suite, rules in policy.suites.items():
        if rules.budgets.max_steps is not None:
            yield ("suites", suite, "budgets", "max_steps"), "the suite's own max_steps is the default and the limit"


def _gate_findings(policy: Policy) -> Iterator[tuple[DocumentPath, str]]:
    for gate, rules in policy.gates.items():
        for index, suite in enumerate(rules.suites):
            if suite not in policy.suites:
                yield ("gates", gate, "suites", index), f"`suites:` says nothing of {suite!s}"
        for index, rule in enumerate(rules.blocks_on):
            if rule is Rule.MISSING_EVIDENCE:
                yield (
                    ("gates", gate, "blocks_on", index),
                    "missing evidence is INCONCLUSIVE in every gate and cannot be made a FAIL",
                )
