"""The verdict as JUnit XML: a test suite per suite, a test case per task."""

from collections.abc import Iterator, Mapping, Sequence
from xml.etree import ElementTree

from passgate.tasks.model.task import Suite
from passgate.tasks.model.trial import trial_numbers
from passgate.tasks.model.verdict import Reason, RunView, Verdict
from passgate.tasks.reports import figures, findings
from passgate.tasks.reports.escape import xml_text
from passgate.tasks.reports.findings import TaskFinding

_ATTRIBUTE = 500
_TEXT = 20_000
_BODY = 60_000


def junit(view: RunView) -> str:
    """Return an XML document in which whatever blocks the gate is a failure, or an error where it can still be settled.

    A task that did not pass but does not block is skipped, with the reason why: the report is as red as the gate. A
    task that failed with a violation is never skipped. Blocking reasons that no measured task carries, such as a limit,
    are test cases of a suite with the gate's name: a verdict that is not PASS never looks all green.
    """
    verdict = findings.from_top(view.verdict)
    seconds = {one.suite: one.wall_time_seconds for one in verdict.measurement.suites}
    cases: dict[Suite, list[ElementTree.Element]] = {suite: [] for suite in Suite}
    for finding in findings.every_task(verdict):
        cases[finding.task.suite].append(_task_case(finding))
    suites = [
        _testsuite(verdict, suite, of_suite, seconds=seconds.get(suite, 0.0))
        for suite, of_suite in cases.items()
        if of_suite or suite in seconds
    ]
    without_task = [_reason_case(verdict, reason) for reason in findings.reasons_without_task(verdict)]
    if without_task:
        suites.append(_testsuite(verdict, verdict.gate, without_task, seconds=0.0))
    root = ElementTree.Element("testsuites", name="passgate")
    for name in ("tests", "failures", "errors"):
        root.set(name, str(sum(int(suite.get(name, "0")) for suite in suites)))
    root.set("time", f"{sum(float(suite.get('time', '0')) for suite in suites):.3f}")
    root.extend(suites)
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


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
        time=f"{seconds:.3f}",
        timestamp=verdict.started_at.isoformat(timespec="seconds"),
    )
    facts = {"run_id": verdict.run_id, "gate": verdict.gate, "decision": verdict.decision, "agent": verdict.agent}
    _add_properties(element, facts)
    element.extend(cases)
    return element


def _add_properties(element: ElementTree.Element, facts: Mapping[str, object]) -> None:
    known = {name: str(value) for name, value in facts.items() if value}
    if not known:
        return
    properties = ElementTree.SubElement(element, "properties")
    for name, value in known.items():
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
        element.set("time", f"{sum(task.wall_times):.3f}")
    facts = {
        "trials_not_run": task.not_run,
        "confirming_passed": task.confirming_passed,
        "confirming_failed": task.confirming_failed,
        "confirming_errors": task.confirming_errors,
        "against_baseline": finding.compared,
        "withheld": finding.withheld,
        "reused_from": task.reused_from,
    }
    _add_properties(element, facts)
    summary, lines, why = figures.task_summary(task), "\n".join(_finding_lines(finding)), finding.why_not_blocking
    if finding.is_failure and not why:
        rule = next((reason.rule for reason in finding.reasons if reason.blocking), str(task.state))
        _outcome(element, "failure", rule, summary, lines)
    elif finding.is_undecided and not why:
        _outcome(element, "error", task.state, summary, lines)
    else:
        if why:
            ElementTree.SubElement(element, "skipped", message=_one_line(f"{why}; {summary}"))
        ElementTree.SubElement(element, "system-out").text = xml_text(f"{summary}\n{lines}", _BODY)
    return element


def _finding_lines(finding: TaskFinding) -> Iterator[str]:
    task = finding.task
    if finding.compared:
        yield finding.compared
    if finding.withheld:
        yield xml_text(finding.withheld, _TEXT)
    if task.reused_from:
        yield f"not run again: reused from {xml_text(task.reused_from, _ATTRIBUTE)}"
    yield from map(_reason_line, finding.reasons)
    for group in findings.violation_groups(task):
        yield f"{group.rule}, {trial_numbers(group.trials)}: {xml_text(group.message, _TEXT)}"
    for label, text in finding.explanations:
        yield label
        yield xml_text(text, _TEXT)


def _reason_line(reason: Reason) -> str:
    trials = f", {trial_numbers(reason.trials)}" if reason.trials else ""
    return f"{findings.weight(reason)}: {reason.rule}{trials}: {xml_text(reason.message, _TEXT)}"


def _reason_case(verdict: Verdict, reason: Reason) -> ElementTree.Element:
    name = f"{reason.rule} {findings.reason_subject(reason)}".strip()
    element = ElementTree.Element("testcase", name=xml_text(name, _ATTRIBUTE), classname=verdict.gate)
    if reason.file:
        element.set("file", xml_text(reason.file, _ATTRIBUTE))
        element.set("line", str(reason.line or 1))
    tag = "error" if findings.is_open(verdict, reason) else "failure"
    _outcome(element, tag, reason.rule, reason.message, _reason_line(reason))
    return element


def _outcome(case: ElementTree.Element, tag: str, kind: str, message: str, body: str) -> None:
    # ElementTree escapes markup but also writes characters that XML cannot hold; `xml_text` escapes these.
    ElementTree.SubElement(case, tag, type=kind, message=_one_line(message)).text = xml_text(body, _BODY)


def _one_line(text: str) -> str:
    # Attributes hold one line: a parser turns line ends in them into spaces.
    return " ".join(xml_text(text, _ATTRIBUTE).split())
