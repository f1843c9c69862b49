"""The verdict as annotations of GitHub Actions."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.reports.measurements import a_failed_task, a_task
from tests.unit.reports.provenance import an_integrity
from tests.unit.reports.verdicts import AWAITING, PASSING, a_reason, a_verdict

from passgate.tasks.model.measurement import TaskState
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Edit
from passgate.tasks.model.verdict import Decision, Exemption, Reason
from passgate.tasks.reports.annotations import github_annotations


def test_a_pass_without_remarks_says_nothing_and_an_awaited_sign_off_is_an_error() -> None:
    assert github_annotations(PASSING) == ""
    assert github_annotations(AWAITING).startswith("::error title=sign_off::awaiting sign-off: passgate ")


def test_an_undecided_task_without_a_reason_is_a_warning() -> None:
    task = a_task(state=TaskState.UNDECIDED, error="503\x1b[31m", errors=1)
    text = github_annotations(a_verdict(Decision.PASS, (task,)))
    assert text.startswith("::warning file=suites/golden/fix_login.yaml,line=3,title=undecided golden/fix_login::")
    assert text.endswith("%0A503\n")


def test_a_failed_task_without_a_reason_is_a_warning_that_says_why_it_does_not_block() -> None:
    task = a_failed_task(failure="wrong\nanswer")
    withheld = (Exemption(task=task.name, why="quarantined\nuntil May"),)
    text = github_annotations(a_verdict(Decision.PASS, (task,), quarantined=withheld))
    assert ",title=failed golden/repair_invoice_totals::1/3 trials passed, " in text
    assert text.startswith("::warning file=suites/golden/repair_invoice_totals.yaml,line=1,")
    assert text.endswith("79 %25]%0Aquarantined ⏎ until May%0Awrong ⏎ answer\n")


@pytest.mark.parametrize(
    ("judged_by", "title", "judges"),
    [
        ("base", "merge base", "judged with the files of the merge base fedcba987654, not with those of this change"),
        (
            "change",
            "change itself",
            "judged with this change's own files, not with those of the merge base fedcba987654",
        ),
    ],
)
def test_edits_of_what_judges_are_notices(judged_by: str, title: str, judges: str) -> None:
    edits = (
        Edit(path="gates.yaml", kind="changed", what="policy"),
        Edit(path="a,b:\n::error::x", kind="added", what="tasks and graders"),
    )
    integrity = an_integrity(edits=edits, judged_by=judged_by)
    start, by = "::notice file=", f"line=1,title=judged by the {title}"
    assert github_annotations(a_verdict(Decision.PASS, (), integrity=integrity)).splitlines() == [
        f"{start}gates.yaml,{by}::policy changed: {judges}",
        f"{start}a%2Cb%3A ⏎ \\x3a%3Aerror%3A%3Ax,{by}::tasks and graders added: {judges}",
    ]


def test_more_than_github_shows_are_counted_in_the_last_one() -> None:
    tasks = tuple(a_failed_task(task_id=f"task-{one}") for one in range(14))
    errors = tuple(a_reason(task, Rule.TASK_FAILED, "wrong") for task in tasks)
    warnings = tuple(a_reason(task, Rule.COST, "dear", blocking=False) for task in tasks[:12])
    lines = github_annotations(a_verdict(Decision.FAIL, tasks, reasons=errors + warnings)).splitlines()
    assert [line.split(" ")[0] for line in lines] == ["::error"] * 10 + ["::warning"] * 10
    assert lines[9].endswith("::wrong%0A... and 4 more, which GitHub would not show")
    assert lines[19].endswith("::dear%0A... and 2 more, which GitHub would not show")


def test_reasons_on_a_line_go_before_those_without() -> None:
    task = a_failed_task()
    slow = Reason(rule=Rule.LATENCY, blocking=True, message="slow")
    text = github_annotations(
        a_verdict(Decision.FAIL, (task,), reasons=(slow, a_reason(task, Rule.TASK_FAILED, "wrong")))
    )
    assert [line[:14] for line in text.splitlines()] == ["::error file=s", "::error title="]
    assert text.endswith("::error title=latency::slow\n")


@given(st.text(max_size=100) | st.lists(st.sampled_from(["\n", "\r", "::", ",", "line=9", "%0A", "x"])).map("".join))
def test_any_text_stays_in_its_one_command(text: str) -> None:
    task = a_failed_task(task_id=text, file=f"f{text}")
    shown = github_annotations(a_verdict(Decision.FAIL, (task,), reasons=(a_reason(task, Rule.COST, text),)))
    assert shown.count("\n") == 1
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", shown)
    properties = shown.removeprefix("::error ").split("::")[0]
    assert re.fullmatch(r"file=[^,:]*,line=1,title=[^,:]*", properties)
