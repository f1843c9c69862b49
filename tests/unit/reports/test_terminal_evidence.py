"""How a verdict came about, on a terminal."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.reports.measurements import a_failed_task
from tests.unit.reports.provenance import a_confirmation, a_sign_off, an_integrity
from tests.unit.reports.verdicts import AWAITING, REJECTED, VERDICTS, a_verdict

from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Edit
from passgate.tasks.model.verdict import Decision, Exemption, Finding, OtherVerdict, Reason, Verdict
from passgate.tasks.reports.terminal import terminal


def lines(verdict: Verdict, width: int = 120) -> list[str]:
    return terminal(verdict, width=width, color=False).split("\n")


def after(title: str, shown: list[str]) -> list[str]:
    """The lines of the section that begins so."""
    (start,) = [number for number, line in enumerate(shown) if line.startswith(title)]
    return shown[start + 1 : shown.index("", start)]


@pytest.mark.parametrize("name", ["awaiting", "approved"])
def test_reads_as_the_golden_file(name: str, matches_golden: Callable[[str, str], None]) -> None:
    verdict = VERDICTS[name]
    matches_golden(terminal(verdict, width=80, color=False), f"terminal_{name}.txt")


def test_what_confirming_trials_have_shown_stands_with_the_task() -> None:
    tasks = (a_failed_task(task_id="fallen"), a_failed_task(task_id="fits"))
    confirmations = (a_confirmation("golden/fits", Finding.FITS), a_confirmation("golden/fallen", Finding.FALLEN))
    message = "regression confirmed: 5 of 12 trials passed now, 58 of 60 before; "
    reasons = (
        Reason(
            rule=Rule.GOLDEN_REGRESSION,
            blocking=True,
            message=message + tasks[0].failure,
            suite=tasks[0].suite,
            task_id="fallen",
        ),
    )
    shown = lines(a_verdict(Decision.FAIL, tasks, confirmations=confirmations, reasons=reasons))
    assert "│ regression confirmed: 5 of 12 trials passed now, 58 of 60 before" in shown
    does_not_block = "│ does not block: fits its baseline: 5/12 now, 58/60 at the baseline, 9 confirming trials"
    assert shown[shown.index("! FAILED  golden/fits") + 2] == does_not_block
    assert sum("58 of 60" in line or "58/60" in line for line in shown) == 2


def test_a_possible_regression_that_blocks_is_read_whole_at_80_columns() -> None:
    task = a_failed_task()
    message = (
        "possible regression: 0 of 5 trials passed now, 3 of 3 before; too few trials to confirm it, and the policy "
        "blocks on that (`regression.undecided: block`); pass^3 requires every trial to pass"
    )
    reason = Reason(
        rule=Rule.GOLDEN_REGRESSION,
        blocking=True,
        message=f"{message}: {task.failure}",
        suite=task.suite,
        task_id=task.task_id,
    )
    shown = lines(a_verdict(Decision.FAIL, (task,), reasons=(reason,)), 80)
    assert message in " ".join(line.removeprefix("│ ") for line in shown)


@pytest.mark.parametrize(("field", "title"), [("not_admitted", "not admitted"), ("quarantined", "quarantined")])
def test_withheld_tasks_are_counted(field: str, title: str) -> None:
    tasks = tuple(Exemption(task=f"golden/task-{one:02}", why=f"why {one}") for one in range(12))
    shown = lines(a_verdict(Decision.PASS, (), **{field: tasks}))
    assert f"· {title}: 12 tasks, whose failures do not block (violations do)" in shown


def test_a_task_that_does_not_block_says_why_where_it_failed() -> None:
    tasks = (a_failed_task(task_id="old"), a_failed_task(task_id="new"))
    quarantined = (Exemption(task="golden/new", why="quarantined until 2026-05-01 by ada"),)
    shown = lines(a_verdict(Decision.FAIL, tasks, quarantined=quarantined))
    assert "Tasks to look at, worst first: 2 failed; 1 not blocking" in shown
    assert "✗ FAILED  golden/old" in shown
    assert shown[shown.index("! FAILED  golden/new") + 2] == "│ does not block: quarantined until 2026-05-01 by ada"


def test_a_reused_task_says_so_where_it_failed() -> None:
    shown = lines(a_verdict(Decision.FAIL, (a_failed_task(reused_from="run-1"),)))
    assert "│ not run again: reused from run-1" in shown
    assert "· 1 task not run again: nothing they depend on has changed since run-1" in shown


def test_edits_and_both_verdicts_are_shown() -> None:
    edits = tuple(Edit(path=f"suites/{one}.yaml", kind="changed", what="tasks and graders") for one in range(12))
    reasons = tuple(Reason(rule=Rule.LATENCY, blocking=one != 2, message=f"slow {one}") for one in range(7))
    change = OtherVerdict(decision=Decision.FAIL, headline="ci_merge FAIL: 6 blocking reasons", reasons=reasons)
    integrity = an_integrity(edits=edits, change=change)
    shown = after(
        "Judged by the files of the merge base fedcba987654: ",
        lines(a_verdict(Decision.FAIL, (), integrity=integrity)),
    )
    assert shown == [
        *(f"! changed suites/{one}.yaml (tasks and graders)" for one in range(3)),
        "... and 9 more in summary.md of the run",
        "· Judged by this change's own files, the verdict would be:",
        "│ ci_merge FAIL: 6 blocking reasons",
        "│ ✗ latency: slow 0",
        "│ ✗ latency: slow 1",
        "│ ... and 4 more",
    ]


def test_a_change_whose_own_files_say_the_same_is_told_so_in_a_line() -> None:
    same = OtherVerdict(decision=Decision.PASS, headline="ci_merge PASS: 3 tasks")
    verdict = a_verdict(Decision.PASS, (), integrity=an_integrity(change=same))
    shown = lines(verdict)
    assert "· Judged by this change's own files, the verdict would be the same." in shown
    assert "ci_merge PASS: 3 tasks" not in shown


def test_a_change_whose_own_files_cannot_judge_is_told() -> None:
    verdict = a_verdict(Decision.PASS, (), integrity=an_integrity(change=None))
    assert "· This change's own files cannot be read or run, so they give no verdict." in lines(verdict)


def test_edits_of_a_change_that_has_judged_itself_are_shown() -> None:
    shown = lines(a_verdict(Decision.PASS, (), integrity=an_integrity(judged_by="change", change=None)))
    edits = after("Judged by its own files: this change edits files that judge it", shown)
    assert edits[0] == "! changed gates.yaml (policy)"
    assert not [line for line in shown if "by them" in line or "the verdict would be" in line]


def test_who_awaits_a_sign_off_reads_the_exact_commands_last() -> None:
    for width in (80, 120):
        assert lines(AWAITING, width)[-8:] == [
            "Awaiting sign-off: a person decides with one of these commands",
            "  passgate sign-off 20260401T020000Z-release_candidate-5f3a \\",
            "    --by NAME --decision approve --reason TEXT",
            "  passgate sign-off 20260401T020000Z-release_candidate-5f3a \\",
            "    --by NAME --decision reject --reason TEXT",
            "",
            "release_candidate INCONCLUSIVE: awaiting sign-off",
            "",
        ]


def test_an_awaited_sign_off_is_open_and_a_refused_one_is_not() -> None:
    assert not [line for line in lines(AWAITING) if "sign_off" in line]
    why = AWAITING.reasons[0].model_copy(update={"message": "another agent; awaiting sign-off: passgate ..."})
    assert "? sign_off: another agent" in lines(AWAITING.model_copy(update={"reasons": (why,)}))
    assert [line for line in lines(REJECTED) if line.startswith("✗ sign_off: rejected by ")]


def test_a_hostile_sign_off_forges_no_line() -> None:
    for width in (40, 80, 100):
        shown = lines(REJECTED, width)
        gates = [line for line in shown if re.match(r"\s*(ci_merge|nightly|release_candidate) ", line)]
        assert gates == [line for line in shown if line.startswith("release_candidate FAIL: ")]
        assert len(gates) == 1
        assert "ci_merge PASS" not in shown[-2]


@given(
    st.text(max_size=150)
    | st.lists(st.sampled_from(["\x1b[2J", "\x1b", "[red]", "::error::", "##[x]", "\r", "\n", "y" * 40, "\x9b"])).map(
        "".join
    ),
    st.integers(min_value=30, max_value=120),
)
def test_no_text_of_a_person_or_a_file_steers_a_terminal(text: str, width: int) -> None:
    task = a_failed_task(task_id=text, reused_from=text or "run", models=(text,))
    withheld = (Exemption(task=task.name, why=text), Exemption(task=text, why=text))
    reason = Reason(rule=Rule.TASK_FAILED, blocking=True, message=text, suite=task.suite, task_id=text)
    verdict = a_verdict(
        Decision.FAIL,
        (task,),
        confirmations=(a_confirmation(text, Finding.FITS),),
        not_admitted=withheld,
        quarantined=withheld,
        integrity=an_integrity(
            base=text,
            edits=(Edit(path=text, kind="added", what="policy"),),
            change=OtherVerdict(decision=Decision.FAIL, headline=text, reasons=(reason,)),
        ),
        sign_off=a_sign_off(by=text, reason=text),
    )
    shown = terminal(verdict, width=width, color=False)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)
    assert "##[" not in shown
    assert not [line for line in shown.split("\n") if line.lstrip().startswith("::")]
    assert not re.sub(r"\x1b\[[0-9;]*m", "", terminal(verdict, width=width, color=True)).count("\x1b")
