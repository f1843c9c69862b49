"""The reports of a run."""

import time
from collections.abc import Callable
from functools import partial

import pytest
from tests.unit.reports.hostile import HOSTILE
from tests.unit.reports.measurements import a_failed_task
from tests.unit.reports.verdicts import VERDICTS, a_reason, a_verdict

from passgate.tasks.model.measurement import TrialViolation
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Revision
from passgate.tasks.model.verdict import Decision, RunView, Verdict
from passgate.tasks.report import RUN_FILES
from passgate.tasks.reports.annotations import github_annotations
from passgate.tasks.reports.terminal import terminal

INVALID = HOSTILE + b"\xff\xfe \xc3\x28".decode("utf-8", "surrogateescape")
ATTACK = f"{INVALID}{'x' * 10_000_000}{INVALID}"

TEXTS: dict[str, Callable[[Verdict], str]] = {
    "terminal": partial(terminal, width=80, color=False),
    "annotations": github_annotations,
    **{name: lambda verdict, make=make: make(RunView(verdict)) for name, make in RUN_FILES.items()},
}


@pytest.mark.parametrize(
    ("report", "verdict", "file"),
    [
        (report, verdict, form.format(verdict))
        for report, form, verdicts in (
            ("annotations", "annotations_{}.txt", "failing inconclusive"),
            ("code-quality.json", "code_quality_{}.json", "failing"),
            ("junit.xml", "junit_{}.xml", "failing inconclusive passing"),
            ("summary.md", "summary_{}.md", "failing inconclusive passing awaiting approved"),
            ("terminal", "terminal_{}.txt", "failing inconclusive passing awaiting approved"),
            ("violations.sarif", "sarif_{}.json", "failing passing"),
        )
        for verdict in verdicts.split()
    ],
)
def test_a_report_reads_as_the_golden_file(
    report: str, verdict: str, file: str, matches_golden: Callable[[str, str], None]
) -> None:
    matches_golden(TEXTS[report](VERDICTS[verdict]), file)


@pytest.mark.parametrize("name", ["annotations", "junit.xml", "violations.sarif", "code-quality.json"])
def test_services_find_the_files_of_a_run_below_the_top_of_the_repository(name: str) -> None:
    violation = TrialViolation(trial=1, rule="safety_violation", message="it wrote the key")
    tasks = [
        a_failed_task(task_id="here", file="suites/here.yaml", violations=(violation,)),
        a_failed_task(task_id="there", file="../shared/there.yaml", violations=(violation,)),
    ]
    reasons = [a_reason(task, Rule.SAFETY_VIOLATION, "it wrote the key") for task in tasks]
    verdict = a_verdict(Decision.FAIL, tuple(tasks), reasons=tuple(reasons), revision=Revision(folder="services/agent"))
    text = TEXTS[name](verdict)
    assert "services/agent/suites/here.yaml" in text
    assert "services/shared/there.yaml" in text
    assert ".." not in text
    assert "services" not in TEXTS[name](verdict.model_copy(update={"revision": Revision()}))


@pytest.mark.parametrize("name", TEXTS)
def test_ten_megabytes_of_hostile_text_make_a_small_report_soon(name: str) -> None:
    violation = TrialViolation(trial=1, rule="safety_violation", message=INVALID)
    task = a_failed_task(task_id=INVALID, file=INVALID, failure=ATTACK, error=INVALID, violations=(violation,))
    reasons = tuple(a_reason(task, rule, INVALID) for rule in (Rule.SAFETY_VIOLATION, Rule.TASK_FAILED))
    verdict = a_verdict(Decision.FAIL, (task,), reasons=reasons, notes=(INVALID,), agent=INVALID, judge=INVALID)
    began = time.process_time()
    text = TEXTS[name](verdict)
    assert time.process_time() - began < 10
    assert len(text.encode()) < 1_000_000, "of a lone surrogate there is an escape"
    assert not set(text) & set("\x00\x07\x1b\x9b\u202e\u2066\uffff")
