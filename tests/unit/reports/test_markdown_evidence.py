"""How a verdict came about, as Markdown."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.reports.measurements import a_failed_task
from tests.unit.reports.provenance import a_confirmation, a_sign_off, an_integrity
from tests.unit.reports.verdicts import APPROVED, AWAITING, VERDICTS, a_verdict

from passgate.tasks.model.measurement import TaskMeasurement
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Edit
from passgate.tasks.model.run_view import RunView
from passgate.tasks.model.verdict import Decision, Exemption, Finding, OtherVerdict, Reason, Verdict
from passgate.tasks.reports.markdown import LIMIT, evidence_sections
from passgate.tasks.reports.run_files import RUN_FILES

MakeVerdict = Callable[..., Verdict]


def markdown(verdict: Verdict) -> str:
    return RUN_FILES["summary.md"](RunView(verdict))


def with_everything(make_verdict: MakeVerdict, text: str, times: int, *tasks: TaskMeasurement) -> Verdict:
    """A verdict in which each of the texts of people and files is this one, so many times."""
    withheld = tuple(Exemption(task=f"{text}{one}", why=text) for one in range(times))
    reason = Reason(rule=Rule.TASK_FAILED, blocking=True, message=text, task_id=text)
    return make_verdict(
        Decision.FAIL,
        tasks,
        confirmations=tuple(a_confirmation(f"{one}{text}", Finding.FITS) for one in range(times)),
        not_admitted=withheld,
        quarantined=withheld,
        integrity=an_integrity(
            base=text,
            edits=tuple(Edit(path=f"{text}{one}", kind="added", what="policy") for one in range(times)),
            change=OtherVerdict(decision=Decision.FAIL, headline=text, reasons=(reason,) * times),
        ),
        sign_off=a_sign_off(by=text, reason=text),
    )


@pytest.mark.parametrize("name", ["awaiting", "approved"])
def test_reads_as_the_golden_file(name: str, matches_golden: Callable[[str, str], None]) -> None:
    matches_golden(markdown(VERDICTS[name]), f"summary_{name}.md")


def test_evidence_is_a_table() -> None:
    verdict = a_verdict(Decision.FAIL, (), confirmations=(a_confirmation("golden/fix_login", Finding.FALLEN),))
    assert "| <code>golden/fix_login</code> | **fallen** | 5/12 | 58/60 | 9 |\n" in markdown(verdict)


def test_withheld_tasks_are_named_and_counted() -> None:
    tasks = tuple(Exemption(task=f"golden/task-{one:02}", why=f"why {one}") for one in range(12))
    failed = a_failed_task(task_id="task-11")
    shown = markdown(a_verdict(Decision.PASS, (failed,), not_admitted=tasks, quarantined=tasks[:1]))
    assert (
        "**Not admitted**: 12 tasks, whose failures do not block (violations do)\n\n"
        "- <code>golden/task-11</code> **not passed now**: why 11\n"
        "- <code>golden/task-00</code>: why 0\n"
    ) in shown
    assert "- <code>golden/task-08</code>: why 8\n- ... and 2 more\n\n**Quarantined**: 1 task, " in shown
    assert "does not block: why 11\n" in shown


def test_edits_and_both_verdicts_are_shown() -> None:
    edits = (Edit(path="gates.yaml", kind="changed", what="policy"),)
    reason = Reason(rule=Rule.LATENCY, blocking=True, message="slow")
    change = OtherVerdict(decision=Decision.FAIL, headline="ci_merge FAIL: 1 blocking reason", reasons=(reason,))
    shown = markdown(a_verdict(Decision.PASS, (), integrity=an_integrity(edits=edits, change=change)))
    assert (
        "**Judged by the files of the merge base** <code>fedcba987654</code>: this change edits files that judge it\n\n"
        "- changed <code>gates.yaml</code> (policy)\n\n"
        "Judged by this change's own files, the verdict would be: **ci_merge FAIL: 1 blocking reason**\n\n"
        "- latency: slow\n"
    ) in shown
    assert "| judged by the files of | <code>fedcba9876543210fedcba9876543210fedcba98</code> |" in shown


def test_a_change_whose_own_files_say_the_same_is_told_so_in_a_line() -> None:
    same = OtherVerdict(decision=Decision.PASS, headline="ci_merge PASS: 3 tasks")
    verdict = a_verdict(Decision.PASS, (), integrity=an_integrity(change=same))
    shown = markdown(verdict)
    assert "Judged by this change's own files, the verdict would be the same." in shown
    assert "ci_merge PASS: 3 tasks" not in shown


def test_a_change_whose_own_files_cannot_judge_is_told() -> None:
    shown = markdown(a_verdict(Decision.PASS, (), integrity=an_integrity(change=None)))
    assert "This change's own files cannot be read or run, so they give no verdict.\n" in shown


def test_edits_of_a_change_that_has_judged_itself_are_shown() -> None:
    shown = markdown(a_verdict(Decision.PASS, (), integrity=an_integrity(judged_by="change", change=None)))
    assert "**Judged by its own files**: this change edits files that judge it\n\n- changed " in shown
    assert "so they give no verdict" not in shown
    assert "judged by the files of" not in shown


def test_the_sign_off_stands_right_below_the_verdict() -> None:
    assert markdown(AWAITING).split("\n")[2] == "**Awaiting sign-off**: a person decides with one of these commands"
    assert markdown(APPROVED).split("\n")[2].startswith("**Sign-off**: approved by Ada Lovelace at 2026-04-01 ")
    assert "| signed verdict | <code>vvvvvvvvvvvvvvvv</code> |" in markdown(APPROVED)


@pytest.mark.parametrize("filler", ["x", "|", "@", "`", "\n", "\u202e"])
def test_however_much_there_is_the_verdict_stays(filler: str) -> None:
    failed = a_failed_task(failure="first failure")
    verdict = with_everything(a_verdict, f"x{filler * 3000}x", 300, failed)
    shown = markdown(verdict)
    assert len(shown) <= LIMIT
    assert shown.startswith("## ❌ ci_merge FAIL: approved by ")
    for part in ("**Sign-off**: ", "**Not admitted**: 300 tasks", "**Quarantined**: 300 tasks", "first failure"):
        assert part in shown
    assert shown.count("... and ") >= 5
    assert verdict.inputs.quarantine in shown


@pytest.mark.parametrize("limit", [-5, 0, 1_000, 1_600, 4_000, 20_000])
@pytest.mark.parametrize("filler", ["x", "|", "@"])
def test_sections_hold_their_limit(limit: int, filler: str) -> None:
    shown = evidence_sections(with_everything(a_verdict, filler * 3000, 300), limit)
    assert len(shown) <= max(limit, 0)
    assert bool(shown) == (limit > 1_500)


@given(
    st.text(max_size=150)
    | st.lists(st.sampled_from(["</details>", "<details>", "|", "`", "```", "\n", "@all", "#1", "http://", "x"])).map(
        "".join
    )
)
def test_no_text_of_a_person_or_a_file_breaks_out_of_its_place(text: str) -> None:
    task = a_failed_task(task_id=text, reused_from=text or "run", models=(text,), failure="")
    shown = markdown(with_everything(a_verdict, text, 2, task))
    assert shown.count("<details>") == shown.count("</details>") == 2
    assert set(re.findall(r"</?[a-z]+>", shown)) <= {
        "<details>", "</details>", "<summary>", "</summary>", "<code>", "</code>",
    }  # fmt: skip
    assert not re.search(r"@(?!&#8203;)|://|`", shown)
    assert [line.count("|") for line in shown.split("\n") if "**fits its baseline**" in line] == [6, 6]
