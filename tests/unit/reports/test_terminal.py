"""The verdict on a terminal."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from tests.unit.reports.measurements import a_failed_task, a_suite
from tests.unit.reports.provenance import a_confirmation, an_integrity
from tests.unit.reports.verdicts import (
    AWAITING,
    FAILING,
    INCONCLUSIVE,
    PASSING,
    REJECTED,
    a_reason,
    a_verdict,
    a_verdict_that_says,
)

from passgate.tasks.model.measurement import Interval, TrialViolation
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Edit
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import Decision, Finding, OtherVerdict, Reason, Verdict
from passgate.tasks.reports.terminal import LINES, terminal

SGR = re.compile(r"\x1b\[[0-9;]*m")


def lines_of(verdict: Verdict, width: int = 80) -> list[str]:
    return terminal(verdict, width=width, color=False).split("\n")


def test_a_run_with_many_failures_fits_a_screen() -> None:
    tasks = tuple(a_failed_task(task_id=f"task-{one:02}") for one in range(62))
    changes = {
        "measurement": FAILING.measurement.model_copy(update={"tasks": tasks}),
        "reasons": tuple(a_reason(task, Rule.TASK_FAILED, f"wrong: {task.failure}") for task in tasks),
        "notes": tuple(f"note {one}" for one in range(57)),
    }
    many = FAILING.model_copy(update=changes)
    for verdict in (many, FAILING):
        lines = lines_of(verdict)[:-1]
        assert len(lines) <= LINES + 2  # edits that judge are never cut
        assert max(map(cell_len, lines)) <= 80
    (more,) = [line for line in lines_of(many) if "more task" in line]
    shown = sum("FAILED  golden/task-" in line for line in lines_of(many))
    assert more == f"... and {62 - shown} more tasks in report.html of the run"
    assert shown > 5


def test_a_task_without_room_for_all_of_it_still_says_why_where_a_line_is_free() -> None:
    why = "output_check: the answer does not contain the day on which the release goes out"
    tasks = [a_failed_task(task_id=f"a-task-with-a-long-name-{one}", failure=why) for one in range(4)]
    reasons = [a_reason(task, Rule.TASK_FAILED, why) for task in tasks]
    text = terminal(a_verdict(Decision.FAIL, tasks, reasons=reasons), width=80, color=False)
    assert text.count("\n") <= 40
    last = text[text.index("a-task-with-a-long-name-3") :].split("\n")
    assert last[1] == f"│ {why[:77]}…"


def test_a_failure_says_each_thing_once_and_how_to_see_and_to_repeat_it() -> None:
    task = a_failed_task(failure="expected 'yes', got 'no'")
    reason = a_reason(task, Rule.TASK_FAILED, f"pass^3 requires every trial to pass: {task.failure}")
    verdict = a_verdict(Decision.FAIL, (task,), reasons=(reason,))
    shown = terminal(verdict, width=120, color=False, options=("--suites", "my suites")).split("\n")
    assert shown[shown.index("✗ FAILED  golden/repair_invoice_totals  task_failed") :] == [
        "✗ FAILED  golden/repair_invoice_totals  task_failed",
        "│ suites/golden/repair_invoice_totals.yaml:1",
        "│ pass^3 requires every trial to pass",
        "│ trials 1, 3 failed; trial 1: expected 'yes', got 'no'",
        "  passgate show 20260401T020000Z-ci_merge-5f3a --task golden/repair_invoice_totals --trial 1",
        "  passgate try golden/repair_invoice_totals --agent 'cli:python agent.py' --suites 'my suites'",
        "",
        "ci_merge FAIL: 1 blocking reason",
        "",
    ]


@pytest.mark.parametrize("width", [60, 80, 100, 120])
@pytest.mark.parametrize("color", [True, False])
def test_no_line_is_wider_than_asked(width: int, color: bool) -> None:
    lines = SGR.sub("", terminal(FAILING, width=width, color=color)).split("\n")
    assert max(map(cell_len, lines)) <= width


def test_colour_adds_styles_and_changes_no_text() -> None:
    plain = terminal(FAILING, width=100, color=False)
    coloured = terminal(FAILING, width=100, color=True)
    assert SGR.search(coloured)
    assert [line.rstrip() for line in SGR.sub("", coloured).split("\n")] == plain.split("\n")


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1", "TERM": "dumb"}, {"FORCE_COLOR": "1", "COLUMNS": "20"}])
def test_environment_has_no_say(variables: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    before = [terminal(FAILING, width=90, color=color) for color in (True, False)]
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert [terminal(FAILING, width=90, color=color) for color in (True, False)] == before


def test_long_lists_are_bounded() -> None:
    violations = tuple(TrialViolation(trial=1, rule="forbidden_tool", message=f"call {one}") for one in range(13))
    task = a_failed_task(violations=violations)
    limits = tuple(Reason(rule=Rule.LATENCY, blocking=True, message=f"slow {one}") for one in range(7))
    notes = tuple(f"note {one}" for one in range(57))
    text = terminal(a_verdict(Decision.FAIL, (task,), reasons=limits, notes=notes), width=80, color=False)
    for more in ("... and 10 more violations\n", "... and 2 more in summary.md of the run\n"):
        assert more in text
    assert "latency: slow 4\n" in text
    assert "latency: slow 5\n" not in text
    assert "note 0" in text
    assert text.count("\n") <= LINES


def test_a_long_failure_keeps_its_beginning_and_its_end() -> None:
    task = a_failed_task(failure="\n".join(f"line {number}" for number in range(1000)))
    text = terminal(a_verdict(Decision.FAIL, (task,)), width=80, color=False)
    assert "line 0\n" in text
    assert "… 997 lines left out …" in text
    assert "line 999\n" in text


def after(title: str, shown: list[str]) -> list[str]:
    """The lines of the section that begins so."""
    (start,) = [number for number, line in enumerate(shown) if line.startswith(title)]
    return shown[start + 1 : shown.index("", start)]


def test_what_confirming_trials_have_shown_stands_with_the_task() -> None:
    tasks = (a_failed_task(task_id="fallen"), a_failed_task(task_id="fits"))
    confirmations = (a_confirmation("golden/fits", Finding.FITS), a_confirmation("golden/fallen", Finding.FALLEN))
    message = "regression confirmed: 5 of 12 trials passed now, 58 of 60 before"
    reasons = (a_reason(tasks[0], Rule.GOLDEN_REGRESSION, f"{message}; {tasks[0].failure}"),)
    shown = lines_of(a_verdict(Decision.FAIL, tasks, confirmations=confirmations, reasons=reasons), 120)
    assert f"│ {message}" in shown
    does_not_block = "│ does not block: no large fall shown: 5/12 now, 58/60 at the baseline, 9 confirming trials"
    assert shown[shown.index("! FAILED  golden/fits") + 2] == does_not_block
    assert sum("58 of 60" in line or "58/60" in line for line in shown) == 2


def test_a_possible_regression_that_blocks_is_read_whole_at_80_columns() -> None:
    task = a_failed_task()
    message = (
        "possible regression: 0 of 5 trials passed now, 3 of 3 before; too few trials to confirm it, and the policy "
        "blocks on that (`regression.undecided: block`); pass^3 requires every trial to pass"
    )
    reason = a_reason(task, Rule.GOLDEN_REGRESSION, f"{message}: {task.failure}")
    shown = lines_of(a_verdict(Decision.FAIL, (task,), reasons=(reason,)))
    assert message in " ".join(line.removeprefix("│ ") for line in shown)


def test_a_reused_task_says_so_where_it_failed() -> None:
    shown = lines_of(a_verdict(Decision.FAIL, (a_failed_task(reused_from="run-1"),)), 120)
    assert "│ not run again: reused from run-1" in shown
    assert "· 1 task not run again: nothing they depend on has changed since run-1" in shown


def test_edits_and_both_verdicts_are_shown() -> None:
    edits = tuple(Edit(path=f"suites/{one}.yaml", kind="changed", what="tasks and graders") for one in range(12))
    reasons = tuple(Reason(rule=Rule.LATENCY, blocking=one != 2, message=f"slow {one}") for one in range(7))
    change = OtherVerdict(decision=Decision.FAIL, headline="ci_merge FAIL: 6 blocking reasons", reasons=reasons)
    loosened = Edit(path="suites/z.yaml", kind="changed", what="tasks and graders", grades=True)
    prices = Edit(path="z/prices.yaml", kind="changed", what="prices")
    integrity = an_integrity(edits=(*edits, loosened, prices), change=change)
    shown = after(
        "Judged by the files of the merge base fedcba987654: ",
        lines_of(a_verdict(Decision.FAIL, (), integrity=integrity), 120),
    )
    assert shown == [
        "! changed suites/z.yaml (graders)",
        "! changed z/prices.yaml (prices)",
        *(f"! changed suites/{one}.yaml (tasks and graders)" for one in range(3)),
        "... and 9 more in summary.md of the run",
        "· Judged by this change's own files, the verdict would be:",
        "│ ci_merge FAIL: 6 blocking reasons",
        "✗ latency: slow 0",
        "✗ latency: slow 1",
        "... and 4 more in summary.md of the run",
    ]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param(
            OtherVerdict(decision=Decision.PASS, headline="ci_merge PASS: 3 tasks"),
            "· Judged by this change's own files, the verdict would be the same.",
            id="same",
        ),
        pytest.param(
            None, "· This change's own files cannot be read or run, so they give no verdict.", id="cannot judge"
        ),
    ],
)
def test_a_change_whose_own_files_say_the_same_or_cannot_judge_is_told_so_in_a_line(
    change: OtherVerdict | None, said: str
) -> None:
    shown = lines_of(a_verdict(Decision.PASS, (), integrity=an_integrity(change=change)), 120)
    assert said in shown
    assert "ci_merge PASS: 3 tasks" not in shown


def test_an_awaited_sign_off_is_open_and_a_refused_one_is_not() -> None:
    assert not [line for line in lines_of(AWAITING, 120) if "sign_off" in line]
    why = AWAITING.reasons[0].model_copy(update={"message": "another agent; awaiting sign-off: passgate ..."})
    assert "? sign_off: another agent" in lines_of(AWAITING.model_copy(update={"reasons": (why,)}), 120)
    assert [line for line in lines_of(REJECTED, 120) if line.startswith("✗ sign_off: rejected by ")]


@pytest.mark.parametrize("verdict", [FAILING, INCONCLUSIVE, REJECTED], ids=["failing", "inconclusive", "rejected"])
@pytest.mark.parametrize("width", [40, 80, 100])
def test_the_headline_stands_last_and_neither_agents_nor_people_forge_it(verdict: Verdict, width: int) -> None:
    text = terminal(verdict, width=width, color=False)
    gate = str(verdict.gate)
    headlines = [line for line in text.split("\n") if re.match(r"\s*(ci_merge|nightly|release_candidate) ", line)]
    assert headlines == [line for line in text.split("\n") if line.startswith(f"{gate} {verdict.decision}: ")]
    assert len(headlines) == 1
    assert text[text.index(headlines[0]) :].count("\n\n") == 0


STEERING = st.lists(
    st.sampled_from(
        ["\x1b[2J", "\x1b", "[red]", "[/]", "::error::", "##[error]", "\r", "\n", " ", "x" * 40, "\x9b", ":"]
    )
).map("".join)


NO_TASKS = {"measurement": PASSING.measurement, "reasons": ()}


@given(
    st.text(max_size=200) | STEERING,
    st.integers(min_value=30, max_value=120),
    st.sampled_from([{}, NO_TASKS, {"integrity": None}, {"integrity": None, **NO_TASKS}]),
)
def test_no_text_of_an_agent_a_person_or_a_file_steers_a_terminal_or_a_runner(
    text: str, width: int, without: dict[str, object]
) -> None:
    """Only some sections have room at once, so that each has it without the others."""
    verdict = a_verdict_that_says(text, times=2).model_copy(update=without)
    shown = terminal(verdict, width=width, color=False)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)
    assert "##[" not in shown
    assert not [line for line in shown.split("\n") if line.lstrip().startswith("::")]
    assert not SGR.sub("", terminal(verdict, width=width, color=True)).count("\x1b")


def test_a_log_gets_all_of_it() -> None:
    tasks = tuple(a_failed_task(task_id=f"task-{one:02}") for one in range(62))
    notes, edits = (
        tuple(f"note {one}" for one in range(57)),
        [Edit(path=f"suites/{n}", kind="added", what="policy") for n in range(9)],
    )
    measurement = FAILING.measurement.model_copy(update={"tasks": tasks})
    reasons = tuple(a_reason(task, Rule.TASK_FAILED, f"wrong: {task.failure}") for task in tasks)
    verdict = FAILING.model_copy(
        update={"measurement": measurement, "reasons": reasons, "notes": notes, "integrity": an_integrity(edits=edits)}
    )
    assert len(verdict.not_admitted) > 10
    names = [one.task for one in verdict.not_admitted]
    shown = terminal(verdict, width=80, color=False, is_whole=True)
    assert shown.count("passgate try golden/task-") == 62
    assert [text for text in (*notes, *names, *(edit.path for edit in edits)) if text not in shown] == []
    assert "... and" not in shown


@pytest.mark.parametrize("width", [60, 80, 120])
def test_no_number_and_no_command_is_broken(width: int) -> None:
    command = "`passgate run ci_merge --resume 20260401T020000Z-ci_merge-5f3a --max-cost 10 --run-store s3://runs`"
    suite = a_suite(
        suite=Suite.FAILURE_REPLAYS, tasks=300, tasks_passed=299, trials_passed=1499, trials_measured=1500,
        trials_error=12, trials_not_run=120, interval=Interval(low=0.996, high=0.9999), cost=123.45,
    )  # fmt: skip
    notes = ("interrupted: resume it with `passgate run ci_merge --resume last` here", f"or {command} there")
    verdict = a_verdict(Decision.PASS, (), suites=(suite,), comparisons=FAILING.comparisons, notes=notes)
    lines = lines_of(verdict, width)
    figures = ["299/300", "1499/1500", "+12 errors", "+120 not run", "$123.45", "[99.6 %,", "> 99.9 %]", "7m23s"]
    for text in (*figures, "$0.4100", "1.24 x", "15.6 s"):
        assert any(text in line for line in lines), text
    assert any("`passgate run ci_merge --resume last`" in line for line in lines)
    assert any(line.removeprefix("│ ").startswith(command) or command in line for line in lines)
