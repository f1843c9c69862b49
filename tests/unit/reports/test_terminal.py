"""The verdict on a terminal."""

import re
import shlex
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from tests.unit.reports.measurements import a_failed_task, a_suite
from tests.unit.reports.verdicts import FAILING, INCONCLUSIVE, PASSING, VERDICTS, a_reason, a_verdict

from passgate.tasks.model.measurement import Interval, TrialViolation
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.task import Suite
from passgate.tasks.model.verdict import Decision, Reason, Verdict
from passgate.tasks.reports.terminal import LINES, terminal

PRINTED_NAME = "golden/|`@x` [a](http://b) </details>::error::\\u202e"
SGR = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize("name", ["failing", "inconclusive", "passing"])
def test_reads_as_the_golden_file(name: str, matches_golden: Callable[[str, str], None]) -> None:
    verdict = VERDICTS[name]
    matches_golden(terminal(verdict, width=80, color=False), f"terminal_{name}.txt")


def test_a_run_with_many_failures_fits_a_screen() -> None:
    tasks = tuple(a_failed_task(task_id=f"task-{one:02}") for one in range(62))
    reasons = tuple(a_reason(task, Rule.TASK_FAILED, f"wrong: {task.failure}") for task in tasks)
    notes = tuple(f"note {one}" for one in range(57))
    many = a_verdict(
        Decision.FAIL,
        tasks,
        reasons=reasons,
        notes=notes,
        suites=FAILING.measurement.suites,
        comparisons=FAILING.comparisons,
        integrity=FAILING.integrity,
        quarantined=FAILING.quarantined,
    )
    for verdict in (many, FAILING):
        lines = terminal(verdict, width=80, color=False).split("\n")[:-1]
        assert len(lines) <= LINES < 40
        assert max(map(cell_len, lines)) <= 80
    (more,) = [line for line in lines_of(many) if "more task" in line]
    shown = sum("FAILED  golden/task-" in line for line in lines_of(many))
    assert more == f"... and {62 - shown} more tasks in report.html of the run"
    assert shown > 5
    assert "Also in summary.md of the run: the baseline, notes" in lines_of(FAILING)


def lines_of(verdict: Verdict) -> list[str]:
    return terminal(verdict, width=80, color=False).split("\n")


def test_a_task_without_room_for_all_of_it_still_says_why_where_a_line_is_free() -> None:
    why = "output_check: the answer does not contain the day on which the release goes out"
    tasks = [a_failed_task(task_id=f"a-task-with-a-long-name-{one}", failure=why) for one in range(4)]
    reasons = [
        Reason(rule=Rule.TASK_FAILED, blocking=True, suite=t.suite, task_id=t.task_id, message=why) for t in tasks
    ]
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
        "│ trial 1: expected 'yes', got 'no'",
        "  passgate show 20260401T020000Z-ci_merge-5f3a --task golden/repair_invoice_totals --trial 1",
        "  passgate try golden/repair_invoice_totals --agent 'cli:python agent.py' --suites 'my suites'",
        "",
        "ci_merge FAIL: 1 blocking reason",
        "",
    ]


def test_commands_that_are_too_long_are_continued_as_a_shell_reads_them() -> None:
    text = terminal(FAILING, width=80, color=False)
    (words,) = [
        shlex.split(command.replace("\\\n", ""))
        for command in re.findall(r"^  (passgate try (?:.*\\\n)?.*)$", text, re.MULTILINE)
    ][:1]
    assert words == ["passgate", "try", PRINTED_NAME, "--agent", "cli:python agent.py"]


@pytest.mark.parametrize("width", [60, 80, 100, 120])
@pytest.mark.parametrize("color", [True, False])
def test_no_line_is_wider_than_asked(width: int, color: bool) -> None:
    lines = SGR.sub("", terminal(FAILING, width=width, color=color)).split("\n")
    assert max(map(cell_len, lines)) <= width


@pytest.mark.parametrize("width", [80, 100, 120])
def test_figures_of_a_suite_stand_in_one_line_from_80_columns_on(width: int) -> None:
    lines = terminal(FAILING, width=width, color=False).split("\n")
    (adversarial,) = [line for line in lines if line.startswith("adversarial ")]
    assert adversarial.split() == [
        "adversarial",
        "29/30",
        "297/300",
        "pass^10",
        "97",
        "%",
        "[83",
        "%,",
        "99",
        "%]",
        "6.2",
        "$12.50",
        "1h10m",
    ]


def test_trials_that_were_not_run_stand_apart_from_errors() -> None:
    lines = terminal(FAILING, width=80, color=False).split("\n")
    (start,) = [number for number, line in enumerate(lines) if line.startswith("failure_replays ")]
    assert lines[start].split()[1:3] == ["2/4", "14/15"]
    assert [line.strip() for line in lines[start + 1 : start + 4]] == ["+2 errors", "+3 not run", ""]


def test_the_run_line_names_the_models_that_answered() -> None:
    assert " · answered by gpt-5-mini · " in terminal(FAILING, width=200, color=False).split("\n")[0]
    assert "answered by" not in terminal(PASSING, width=200, color=False)


def test_the_line_below_the_comparisons_says_what_they_say() -> None:
    comparison = FAILING.comparisons[0].model_copy(update={"confidence": 0.95})
    for comparisons, bound in ((FAILING.comparisons, "90 %"), ((comparison,), "95 %")):
        verdict = a_verdict(Decision.FAIL, (), comparisons=comparisons)
        assert f"; at least: its lower {bound} bound." in terminal(verdict, width=100, color=False)


def test_the_widest_figures_of_a_suite_are_whole_at_80_columns() -> None:
    suite = a_suite(
        suite=Suite.FAILURE_REPLAYS, tasks=300, tasks_passed=299, trials_passed=1499, trials_measured=1500,
        trials_error=12, trials_not_run=120, interval=Interval(low=0.996, high=0.9999), cost=123.45,
    )  # fmt: skip
    shown = terminal(a_verdict(Decision.PASS, (), suites=(suite,)), width=80, color=False)
    for figure in (
        "failure_replays",
        "299/300",
        "1499/1500",
        "+12 errors",
        "+120 not run",
        "[99.6 %,",
        "> 99.9 %]",
        "$123.45",
    ):
        assert figure in shown


def test_figures_are_never_cut_however_narrow_the_terminal() -> None:
    lines = terminal(FAILING, width=50, color=False).split("\n")
    (end,) = [
        number for number, line in enumerate(lines) if line.startswith("Tasks to look at, worst first: 7 failed, ")
    ]
    table = lines[lines.index("") : end]
    assert not [line for line in table if "…" in line]


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


def test_headline_stands_last_and_agents_cannot_forge_it() -> None:
    for verdict in (FAILING, INCONCLUSIVE):
        lines = terminal(verdict, width=80, color=False).split("\n")
        assert lines[-2:] == [verdict.headline, ""]
        assert sum(line.startswith("ci_merge ") for line in lines) == 1


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


STEERING = st.lists(
    st.sampled_from(
        ["\x1b[2J", "\x1b", "[red]", "[/]", "::error::", "##[error]", "\r", "\n", " ", "x" * 40, "\x9b", ":"]
    )
).map("".join)


@given(st.text(max_size=200) | STEERING, st.integers(min_value=30, max_value=120))
def test_no_text_of_an_agent_steers_a_terminal_or_a_runner(text: str, width: int) -> None:
    violation = TrialViolation(trial=1, rule="safety_violation", message=text)
    task = a_failed_task(task_id=text, file=text, failure=text, error=text, violations=(violation,))
    verdict = a_verdict(Decision.FAIL, (task,), reasons=(a_reason(task, Rule.TASK_FAILED, text),), notes=(text,))
    shown = terminal(verdict, width=width, color=False)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown)
    assert "##[" not in shown
    assert not [line for line in shown.split("\n") if line.lstrip().startswith("::")]
    assert not SGR.sub("", terminal(verdict, width=width, color=True)).count("\x1b")
