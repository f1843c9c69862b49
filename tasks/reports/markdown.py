"""The verdict as Markdown for a step summary or a comment on a pull request."""

from collections.abc import Iterator, Sequence

from passgate.tasks.model.measurement import SuiteMeasurement, TaskMeasurement
from passgate.tasks.model.run_view import RunView
from passgate.tasks.model.verdict import Comparison, Decision, Reason, Verdict
from passgate.tasks.reports import escape, evidence, figures, findings, markdown_evidence
from passgate.tasks.reports.findings import Finding
from passgate.tasks.reports.markdown_parts import code, details, fitting, joined, row, table

LIMIT = 60_000
"""GitHub takes 65 536 characters in a comment."""

_REASONS = 25_000
_NOTES = 5_000
_COMPARISONS = 10
_LABEL = 60
_FAILURE_LINES = 20
_VIOLATIONS = 10
_SIGN = {Decision.PASS: "✅", Decision.FAIL: "❌", Decision.INCONCLUSIVE: "⚠️"}


def markdown(view: RunView) -> str:
    """At most `LIMIT` characters: where there is more to say, details of tasks go first, the verdict never."""
    verdict = view.verdict
    before = (
        f"## {_SIGN[verdict.decision]} {escape.markdown(verdict.headline)}",
        markdown_evidence.sign_off(verdict),
        _suites_table(verdict.measurement.suites),
        _reasons_table(findings.ordered_reasons(verdict)),
        _comparisons(verdict.comparisons),
    )
    after = (_notes(evidence.notes(verdict)), _provenance(verdict))
    rest = LIMIT - len(joined((*before, *after))) - len("\n")
    shown = markdown_evidence.evidence_sections(verdict, rest // 2)
    task_details = _findings(findings.findings(verdict), rest - len(shown))
    return joined((*before, shown, task_details, *after)) + "\n"


def _suites_table(suites: Sequence[SuiteMeasurement]) -> str:
    header = ("suite", "tasks", "trials", "metric", "value", "95 % interval", "steps", "cost", "time")
    return table(header, (row(_suite_cells(suite)) for suite in suites), left=1)


def _suite_cells(suite: SuiteMeasurement) -> tuple[str, ...]:
    return (
        suite.suite,
        f"{suite.tasks_passed}/{suite.tasks}",
        figures.trials(suite.trials_passed, suite.trials_measured, suite.trials_error, suite.trials_not_run),
        figures.metric_name(suite.metric, suite.k),
        f"**{figures.percent(suite.value)}**",
        figures.interval(suite.interval),
        figures.decimal(suite.steps),
        figures.dollars(suite.cost),
        figures.duration(suite.wall_time_seconds),
    )


def _reasons_table(reasons: Sequence[Reason]) -> str:
    if not reasons:
        return ""
    rows = fitting((row(_reason_cells(reason)) for reason in reasons), _REASONS)
    more = f"\n\n... and {len(reasons) - len(rows)} more reasons" if len(rows) < len(reasons) else ""
    return table(("", "rule", "task", "trials", "why"), rows, left=5) + more


def _reason_cells(reason: Reason) -> tuple[str, ...]:
    subject = findings.reason_subject(reason)
    place = f"<br>{code(f'{reason.file}:{reason.line or 1}')}" if reason.file else ""
    return (
        "**blocks**" if reason.blocking else "reported, not blocking",
        reason.rule,
        f"{code(subject)}{place}" if subject else "",
        figures.trial_numbers(reason.trials).removeprefix("trials ").removeprefix("trial ") if reason.trials else "",
        escape.markdown(reason.message),
    )


def _comparisons(comparisons: Sequence[Comparison]) -> str:
    if not comparisons:
        return ""
    header = ("against the baseline", "baseline", "now", "change", "paired ratio", "at least", "tasks", "limit")
    rows = (row(_comparison_cells(comparison)) for comparison in comparisons[:_COMPARISONS])
    return joined((table(header, rows, left=1), escape.markdown(figures.paired_ratio_explained(comparisons))))


def _comparison_cells(comparison: Comparison) -> tuple[str, ...]:
    return (
        escape.markdown(comparison.name, _LABEL),
        figures.quantity(comparison.baseline, comparison.unit),
        figures.quantity(comparison.current, comparison.unit),
        figures.change(comparison.baseline, comparison.current),
        figures.times(comparison.ratio),
        figures.times(comparison.ratio_lower_bound),
        str(comparison.pairs),
        escape.markdown(comparison.limit, _LABEL),
    )


def _findings(found: Sequence[Finding], limit: int) -> str:
    if not found:
        return ""
    summary = f"{figures.count(len(found), 'task')} to look at, the worst first"
    # Room for the details' own marks and the line that says what was left out.
    shown = fitting((_finding(finding) for finding in found[: findings.TASK_LIMIT]), limit - len(summary) - 200)
    if len(shown) < len(found):
        shown.append(f"... and {len(found) - len(shown)} more, which verdict.json holds")
    return details(summary, shown)


def _finding(finding: Finding) -> str:
    task = finding.task
    parts = (
        f"#### {task.state}: {code(finding.name)}",
        f"{code(f'{task.file}:{task.line}')}: {figures.task_summary(task)}",
        f"not run again: reused from {code(task.reused_from)}" if task.reused_from else "",
        f"does not block: {escape.markdown(finding.why_not_blocking)}" if finding.why_not_blocking else "",
        "\n".join(_violations(task)),
        _why(figures.why_label(task.failed_trials, "failed"), task.failure),
        _why(figures.why_label(task.error_trials, "could not be measured"), task.error),
        _tracked_metrics(task),
    )
    return "\n\n".join(part for part in parts if part)


def _violations(task: TaskMeasurement) -> Iterator[str]:
    groups = findings.violation_groups(task)
    for group in groups[:_VIOLATIONS]:
        yield f"- **{group.rule}**, {figures.trial_numbers(group.trials)}: {escape.markdown(group.message)}"
    if len(groups) > _VIOLATIONS:
        yield f"- ... and {len(groups) - _VIOLATIONS} more violations"


def _why(label: str, text: str) -> str:
    if not text.strip():
        return ""
    return f"{label}\n\n{escape.markdown_fence(escape.printable_lines(text, lines=_FAILURE_LINES, limit=500))}"


def _tracked_metrics(task: TaskMeasurement) -> str:
    values = task.metrics.model_dump()
    names = [name for name in task.tracked_metrics if name in values]
    if not names:
        return ""
    return table(names, [row(figures.tracked(name, values[name]) for name in names)], left=0)


def _notes(notes: Sequence[str]) -> str:
    shown = fitting((f"- {escape.markdown(note)}" for note in notes), _NOTES)
    if len(shown) < len(notes):
        shown.append(f"- ... and {len(notes) - len(shown)} more notes")
    return "\n".join(("**Notes**", "", *shown)) if notes else ""


def _provenance(verdict: Verdict) -> str:
    inputs, revision, integrity = verdict.inputs, verdict.revision, verdict.integrity
    facts = {
        "run": verdict.run_id,
        "agent": verdict.agent,
        "models": evidence.models(verdict),
        "judge": verdict.judge,
        "branch": revision.branch,
        "commit": f"{revision.commit}{' with changes' if revision.dirty else ''}",
        "started": verdict.started_at.isoformat(timespec="seconds"),
        "judged": verdict.judged_at.isoformat(timespec="seconds"),
        "isolation": ", ".join(verdict.measurement.isolation),
        "policy": inputs.policy,
        "tasks": inputs.tasks,
        "graders": inputs.graders,
        "trials": inputs.trials,
        "baseline": inputs.baseline,
        "quarantine": inputs.quarantine,
        "baseline runs": ", ".join(inputs.baseline_runs[:20]),
        "judged by the files of": integrity.base if integrity and integrity.by_base else "",
        "signed verdict": verdict.sign_off.verdict_digest if verdict.sign_off else "",
        "passgate": inputs.passgate_version,
    }
    rows = (row((name, code(value))) for name, value in facts.items() if value)
    return details("Run and digests", [table(("", ""), rows, left=2)])
