"""The verdict as JUnit XML: a test suite per suite, a test case per task."""

from collections.abc import Iterator, Sequence
from xml.etree import ElementTree

from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import Reason, Verdict
from passgate.tasks.reports import figures, findings
from passgate.tasks.reports.escape import xml_text
from passgate.tasks.reports.findings import Finding

_ATTRIBUTE = 500
_TEXT = 20_000
_BODY = 60_000


def junit(verdict: Verdict) -> str:
    """An XML document in which whatever blocks the gate is a failure, or an error where evidence is missing.

    Blocking reasons that no measured task carries, such as a limit, are test cases of a suite with the
    gate's name: a verdict that is not PASS never looks all green.
    """
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
        skipped="0",
        time=_seconds(seconds),
        timestamp=verdict.started_at.isoformat(timespec="seconds"),
    )
    element.append(_properties(verdict))
    element.extend(cases)
    return element


def _properties(verdict: Verdict) -> ElementTree.Element:
    element = ElementTree.Element("properties")
    facts = {"run_id": verdict.run_id, "gate": verdict.gate, "decision": verdict.decision, "agent": verdict.agent}
    for name, value in facts.items():
        ElementTree.SubElement(element, "property", name=name, value=xml_text(value, _ATTRIBUTE))
    return element


def _task_case(finding: Finding) -> ElementTree.Element:
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
    summary = figures.task_summary(task)
    if finding.is_failure:
        _outcome(element, "failure", _failure_type(finding), summary, "\n".join(_finding_lines(finding)))
    elif finding.is_undecided:
        _outcome(element, "error", task.state, summary, "\n".join(_finding_lines(finding)))
    else:
        text = "\n".join((summary, *_finding_lines(finding)))
        ElementTree.SubElement(element, "system-out").text = xml_text(text, _BODY)
    return element


def _failure_type(finding: Finding) -> str:
    """The rule that blocks; of a task that blocks nothing, its state."""
    return next((reason.rule for reason in finding.reasons if reason.blocking), str(finding.task.state))


def _finding_lines(finding: Finding) -> Iterator[str]:
    task = finding.task
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
    missing = reason.rule is Rule.MISSING_EVIDENCE
    _outcome(element, "error" if missing else "failure", reason.rule, reason.message, _reason_line(reason))
    return element


def _outcome(case: ElementTree.Element, tag: str, kind: str, message: str, body: str) -> None:
    # Attributes hold one line: a parser turns line ends in them into spaces.
    one_line = " ".join(xml_text(message, _ATTRIBUTE).split())
    ElementTree.SubElement(case, tag, type=kind, message=one_line).text = xml_text(body, _BODY)


def _seconds(number: float) -> str:
    return f"{number:.3f}"
