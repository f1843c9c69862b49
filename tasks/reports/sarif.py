"""The verdict's violations as SARIF 2.1.0, which code scanning services show at the line of a task."""

import json
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from passgate.tasks.model.json_values import json_digest
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.trial import trial_numbers
from passgate.tasks.model.verdict import Reason, RunView, Verdict
from passgate.tasks.reports.escape import printable
from passgate.tasks.reports.findings import TaskFinding, every_task, from_top, violation_groups

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_MESSAGE: Final = 1000
_NAME: Final = 200
_MOST_RESULTS: Final = 5000
"""GitHub shows as many results of a run and refuses a file with more than 25,000."""

RULES: Final[Mapping[Rule, str]] = {
    Rule.SAFETY_VIOLATION: "The agent did what a safety check forbids.",
    Rule.FORBIDDEN_TOOL: "The agent called a tool that its task forbids.",
}
"""The rules whose violations no other result makes up for, with their descriptions."""


def sarif(view: RunView) -> str:
    """Return a SARIF log with one run, in which each violation of a task is a result at the file and line of the task.

    The level is `error` where the violation blocks the gate, else `warning`. A violation keeps its fingerprint from run
    to run, so that a service knows it again.
    """
    verdict = from_top(view.verdict)
    results = [result for finding in every_task(verdict) for result in _results(finding)][:_MOST_RESULTS]
    log = {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": _driver(verdict)},
                "automationDetails": {"id": f"passgate/{verdict.gate}/{verdict.run_id}"},
                "columnKind": "unicodeCodePoints",
                "results": results,
            }
        ],
    }
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _driver(verdict: Verdict) -> dict[str, Any]:
    return {
        "name": "passgate",
        "version": verdict.inputs.passgate_version,
        "rules": [
            {
                "id": str(rule),
                "shortDescription": {"text": text},
                "defaultConfiguration": {"level": "error"},
                "properties": {"tags": ["security"]},
            }
            for rule, text in RULES.items()
        ],
    }


def _results(finding: TaskFinding) -> list[dict[str, Any]]:
    task = finding.task
    return [
        {
            "ruleId": group.rule,
            "level": "error" if _blocks(finding.reasons, group.rule) else "warning",
            "message": {
                "text": printable(f"{task.name}, {trial_numbers(group.trials)}: {group.message}", _MESSAGE),
            },
            "locations": [
                {
                    "physicalLocation": {
                        "artifactLocation": {"uri": _uri(task.file)},
                        "region": {"startLine": max(1, task.line)},
                    },
                    "logicalLocations": [{"fullyQualifiedName": printable(task.name, _NAME)}],
                }
            ],
            "partialFingerprints": {"violation/v1": json_digest([task.name, group.rule, group.message])},
        }
        for group in violation_groups(task)
    ]


def _blocks(reasons: tuple[Reason, ...], rule: str) -> bool:
    return any(reason.blocking and reason.rule == rule for reason in reasons)


def _uri(file: str) -> str:
    """Return a path as a relative reference of RFC 3986, in which nothing can be taken for a scheme."""
    return quote(printable(file, _NAME), safe="/")
