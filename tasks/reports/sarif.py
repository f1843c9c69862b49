"""The verdict for services that show findings at the line of a task: violations as SARIF 2.1.0 for code scanning, and
reasons as a report of GitLab's Code Quality.

https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from passgate.tasks.model.json_values import json_digest
from passgate.tasks.model.policy import VETOES, Rule
from passgate.tasks.model.trial import trial_numbers
from passgate.tasks.model.verdict import RunView
from passgate.tasks.reports.escape import printable
from passgate.tasks.reports.findings import (
    TaskFinding,
    every_task,
    from_top,
    path_from_top,
    reason_subject,
    violation_groups,
)

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_MESSAGE: Final = 1000
_NAME: Final = 200
_POLICY_FILE: Final = "gates.yaml"
_MOST_RESULTS: Final = 5000  # GitHub shows as many results of a run and refuses a file with more than 25,000

RULES: Final[Mapping[Rule, str]] = {
    Rule.SAFETY_VIOLATION: "The agent did what a safety check forbids.",
    Rule.FORBIDDEN_TOOL: "The agent called a tool that its task forbids.",
}
"""The rules whose violations no other result makes up for, with their descriptions."""


def sarif(view: RunView) -> str:
    """Return a SARIF log: each violation is a result at its task, `error` where it blocks, else `warning`.

    A violation keeps its fingerprint from run to run, so that a service knows it again.
    """
    verdict = from_top(view.verdict)
    results = [result for finding in every_task(verdict) for result in _results(finding)][:_MOST_RESULTS]
    rules = [
        {
            "id": str(rule),
            "shortDescription": {"text": text},
            "defaultConfiguration": {"level": "error"},
            "properties": {"tags": ["security"]},
        }
        for rule, text in RULES.items()
    ]
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": {"name": "passgate", "version": verdict.inputs.passgate_version, "rules": rules}},
                "automationDetails": {"id": f"passgate/{verdict.gate}/{verdict.run_id}"},
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _results(finding: TaskFinding) -> list[dict[str, Any]]:
    task = finding.task
    return [
        {
            "ruleId": group.rule,
            "level": "error" if any(one.blocking and one.rule == group.rule for one in finding.reasons) else "warning",
            "message": {
                "text": printable(f"{task.name}, {trial_numbers(group.trials)}: {group.message}", _MESSAGE),
            },
            "locations": [
                {
                    "physicalLocation": {
                        # A relative reference of RFC 3986, in which nothing can be taken for a scheme.
                        "artifactLocation": {"uri": quote(printable(task.file, _NAME), safe="/")},
                        "region": {"startLine": max(1, task.line)},
                    },
                    "logicalLocations": [{"fullyQualifiedName": printable(task.name, _NAME)}],
                }
            ],
            "partialFingerprints": {"violation/v1": json_digest([task.name, group.rule, group.message])},
        }
        for group in violation_groups(task)
    ]


def code_quality(view: RunView) -> str:
    """Return a JSON array with a finding per reason: `blocker` and `critical` block the gate, `minor` does not.

    A reason without a file, such as a limit of the whole gate, stands at the policy that it follows from.
    """
    verdict = from_top(view.verdict)
    places = {task.task.name: (task.task.file, task.task.line) for task in every_task(verdict)}
    policy = path_from_top(verdict, _POLICY_FILE), 1
    found = {}
    for reason in verdict.reasons:
        subject, is_veto = reason_subject(reason), reason.rule in VETOES
        file, line = (reason.file, reason.line or 1) if reason.file else places.get(subject, policy)
        # Without the message, whose numbers change from run to run: GitLab tells by it what a merge request brings.
        fingerprint = json_digest([subject, reason.rule, reason.message if is_veto else ""])
        found[fingerprint] = {
            "description": printable(f"{subject}: {reason.message}" if subject else reason.message, _MESSAGE),
            "check_name": str(reason.rule),
            "fingerprint": fingerprint,
            "severity": ("blocker" if is_veto else "critical") if reason.blocking else "minor",
            "location": {"path": printable(file, _NAME), "lines": {"begin": max(1, line)}},
        }
    return json.dumps(list(found.values()), indent=2, ensure_ascii=False) + "\n"
