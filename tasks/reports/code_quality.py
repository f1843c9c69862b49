"""The verdict as a report of GitLab's Code Quality, which a merge request shows at the line of a task.

The format is a JSON array of findings with the keys that GitLab reads:
https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format
"""

import json
from typing import Final

from passgate.tasks.model.json_values import json_digest
from passgate.tasks.model.policy import VETOES
from passgate.tasks.model.verdict import RunView
from passgate.tasks.reports.escape import printable
from passgate.tasks.reports.findings import every_task, from_top, path_from_top, reason_subject

_MESSAGE: Final = 1000
_PATH: Final = 200
_POLICY_FILE: Final = "gates.yaml"


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
            "location": {"path": printable(file, _PATH), "lines": {"begin": max(1, line)}},
        }
    return json.dumps(list(found.values()), indent=2, ensure_ascii=False) + "\n"
