"""The verdict as JUnit XML: a test suite per suite, a test case per task."""

from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree

from passgate.tasks.model.run_view import RunView
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import Reason, Verdict
from passgate.tasks.reports import figures, findings
from passgate.tasks.reports.escape import xml_text
from passgate.tasks.reports.findings import TaskFinding

_ATTRIBUTE = 500
_TEXT = 20_000
_BODY = 60_000


def junit(view: RunView) -> str:
    """An XML document in which whatever blocks the gate is a failure, or an error where it can still be settled.

    A task that did not pass but does not block is skipped, with the reason why: the report is as red as the gate. One
    that has failed with a violation is never skipped. Blocking reasons that no measured task carries, such as a limit,
    are test cases of a suite with the gate's name: a verdict that is not PASS never looks all green.
    """
    verdict = view.verdict
    suites = [_suite(verdict, suite) for suite in _suites(verdict)]
    without_task = [_reason_case(verdict, reason) for reason in findings.reasons_without_task(verdict)]
    if without_task:
        suites.append(_testsuite(verdict, verdict.gate, without_task, seconds=0.0))
    return _document(suites)


def _suites(verdict: Verdict) -> list[Suite]:
    measured = {suite.suite for suite in verdict.measurement.suites}
    measured.update(task.suite for task in verdict.measurement.tasks)
    return [suite for suite in Suite if suite in measured]


def _document(suites: Sequence[ElementTree.Element]) -> str:
    root = ElementTree.Element("testsuites", name="passgate")
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    root.set("time", _seconds(sum(float(suite.get("time", "0")) for suite in suites)))
    root.extend(suites)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _suite(verdict: Verdict, suite: Suite) -> ElementTree.Element:
    cases = [_task_case(finding) for finding in findings.every_task(verdict) if finding.task.suite is suite]
    seconds = sum(one.wall_time_seconds for one in verdict.measurement.suites if one.suite is suite)
    return _testsuite(verdict, suite, cases, seconds=seconds)


def _testsuite(
    verdict: Verdict, name: str, cases: Sequence[ElementTree.Element], *, seconds: float
) -> ElementTree.Element:
    element = ElementTree.Element(
        "testsuite",
        name=name,
        tests=str(len(cases)),
        failures=str(sum(case.find("failure") is not None for case in cases)),
        errors=str(sum(case.find("error") is not None for case in cases)),
        skipped=str(sum(case.find("skipped") is not None for case in cases)),
        time=_seconds(seconds),
        timestamp=verdict.started_at.isoformat(timespec="seconds"),
    )
    facts = {"run_id": verdict.run_id, "gate": verdict.gate, "decision": verdict.decision, "agent": verdict.agent}
    _add_properties(element, facts)
    element.extend(cases)
    return element


def _add_properties(element: ElementTree.Element, facts: Mapping[str, str]) -> None:
    if not facts:
        return
    properties = ElementTree.SubElement(element, "properties")
    for name, value in facts.items():
        ElementTree.SubElement(properties, "property", name=name, value=_one_line(value))


def _task_case(finding: TaskFinding) -> ElementTree.Element:
    task = finding.task
    element = ElementTree.Element(
        "testcase",
        name=xml_text(task.task_id, _ATTRIBUTE),
        classname=task.suite,
        file=xml_text(task.file, _ATTRIBUTE),
        line=str(task.line),
    )
    if task.wall_times:
        element.set("time", _seconds(sum(task.wall_times)))
    _add_properties(element, _task_facts(finding))
    summary, lines = figures.task_summary(task), "\n".join(_finding_lines(finding))
    if finding.is_failure and not finding.why_not_blocking:
        rule = next((reason.rule for reason in finding.reasons if reason.blocking), str(task.state))
        _outcome(element, "failure", rule, summary, lines)
    elif finding.is_undecided and not finding.why_not_blocking:
        _outcome(element, "error", task.state, summary, lines)
    else:
        if finding.why_not_blocking:
            ElementTree.SubElement(element, "skipped", message=_one_line(f"{finding.why_not_blocking}; {summary}"))
        ElementTree.SubElement(element, "system-out").text = xml_text(f"{summary}\n{lines}", _BODY)
    return element


def _task_facts(finding: TaskFinding) -> dict[str, str]:
    """What only some tasks have to say of how they were judged."""
    task, confirmation = finding.task, finding.confirmation
    facts = {
        "trials_not_run": task.not_run,
        "confirming_passed": task.confirming_passed,
        "confirming_failed": task.confirming_failed,
        "confirming_errors": task.confirming_errors,
        "against_baseline": f"{confirmation.finding}: {figures.against_baseline(confirmation)}" if confirmation else "",
        "withheld": finding.withheld,
        "reused_from": task.reused_from,
    }
    return {name: str(value) for name, value in facts.items() if value}


def _finding_lines(finding: TaskFinding) -> Iterator[str]:
    task = finding.task
    if finding.confirmation:
        yield f"{finding.confirmation.finding}: {figures.against_baseline(finding.confirmation)}"
    if finding.withheld:
        yield xml_text(finding.withheld, _TEXT)
    if task.reused_from:
        yield f"not run again: reused from {xml_text(task.reused_from, _ATTRIBUTE)}"
    yield from map(_reason_line, finding.reasons)
    for group in findings.violation_groups(task):
        yield f"{group.rule}, {figures.trial_numbers(group.trials)}: {xml_text(group.message, _TEXT)}"
    if task.failed_trials or task.failure:
        yield figures.why_label(task.failed_trials, "failed")
        yield xml_text(task.failure, _TEXT)
    if task.error_trials or task.error:
        yield figures.why_label(task.error_trials, "could not be measured")
        yield xml_text(task.error, _TEXT)


def _reason_line(reason: Reason) -> str:
    weight = "blocks" if reason.blocking else "reported, not blocking"
    trials = f", {figures.trial_numbers(reason.trials)}" if reason.trials else ""
    return f"{weight}: {reason.rule}{trials}: {xml_text(reason.message, _TEXT)}"


def _reason_case(verdict: Verdict, reason: Reason) -> ElementTree.Element:
    subject = findings.reason_subject(reason)
    name = f"{reason.rule} {subject}".strip()
    element = ElementTree.Element("testcase", name=xml_text(name, _ATTRIBUTE), classname=verdict.gate)
    if reason.file:
        element.set("file", xml_text(reason.file, _ATTRIBUTE))
        element.set("line", str(reason.line or 1))
    tag = "error" if findings.is_open(verdict, reason) else "failure"
    _outcome(element, tag, reason.rule, reason.message, _reason_line(reason))
    return element


def _outcome(case: ElementTree.Element, tag: str, kind: str, message: str, body: str) -> None:
    ElementTree.SubElement(case, tag, type=kind, message=_one_line(message)).text = xml_text(body, _BODY)


def _one_line(text: str) -> str:
    # Attributes hold one line: a parser turns line ends in them into spaces.
    return " ".join(xml_text(text, _ATTRIBUTE).split())


def _seconds(number: float) -> str:
    return f"{number:.3f}"
