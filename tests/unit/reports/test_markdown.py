"""The verdict as Markdown."""

import re
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.reports.measurements import a_failed_task
from tests.unit.reports.verdicts import FAILING, VERDICTS, a_reason, a_verdict

from passgate.tasks.model.measurement import TrialViolation
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run_view import RunView
from passgate.tasks.model.verdict import Comparison, Decision, Verdict
from passgate.tasks.reports.markdown import LIMIT
from passgate.tasks.reports.run_files import RUN_FILES


def markdown(verdict: Verdict) -> str:
    return RUN_FILES["summary.md"](RunView(verdict))


def without_fences(text: str) -> str:
    return re.sub(r"^(`{3,})text\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("name", ["failing", "inconclusive", "passing"])
def test_reads_as_the_golden_file(name: str, matches_golden: Callable[[str, str], None]) -> None:
    matches_golden(markdown(VERDICTS[name]), f"summary_{name}.md")


def test_tracked_metrics_of_a_failed_task_are_shown() -> None:
    assert "| total_tokens | wall_time_seconds | steps | tool_error_rate | cost | loop_rate |" in markdown(FAILING)
    assert "| 1,834 | 12.3 s | 6.2 | 5 % | $0.0123 | - |" in markdown(FAILING)


def test_tracked_metrics_that_no_trial_has_are_left_out() -> None:
    task = a_failed_task(tracked_metrics=("model_config", "steps"))
    assert "model_config" not in markdown(a_verdict(Decision.FAIL, (task,)))


def test_a_table_without_any_figure_is_left_out() -> None:
    task = a_failed_task(tracked_metrics=("tokens_in",))
    assert task.metrics.tokens_in is None
    assert "tokens_in" not in markdown(a_verdict(Decision.FAIL, (task,)))


def test_trials_that_were_not_run_stand_apart_from_errors() -> None:
    assert "| failure_replays | 2/4 | 14/15 +2 errors +3 not run | " in markdown(FAILING)


def test_the_line_below_the_comparisons_says_what_they_say() -> None:
    assert (
        "now / baseline; at least: its lower 90 % bound. Whole runs of the baseline differ by 3 % (latency P95).\n"
        in markdown(FAILING)
    )


@pytest.mark.parametrize("filler", ["x", "|", "@", "`", "\n", "\u202e"])
def test_details_are_cut_before_the_verdict(filler: str) -> None:
    text = filler * 3000
    violations = tuple(TrialViolation(trial=one, rule="forbidden_tool", message=f"{one}{text}") for one in range(30))
    tasks = tuple(
        a_failed_task(task_id=f"task-{one}{text}", failure=f"{text}x\n" * 50, violations=violations)
        for one in range(300)
    )
    comparison = Comparison(
        name=text, unit="s", baseline=1, current=2, pairs=3, ratio=2, ratio_lower_bound=1.5, limit=text
    )
    verdict = a_verdict(
        Decision.FAIL,
        tasks,
        reasons=tuple(a_reason(task, Rule.TASK_FAILED, text) for task in tasks),
        notes=(text,) * 300,
        comparisons=(comparison,) * 30,
        agent=text,
    )
    shown = markdown(verdict)
    assert len(shown) <= LIMIT
    assert verdict.headline in shown
    assert "<code>golden/task-0" in shown
    assert re.search(r"\.\.\. and \d+ more reasons", shown)
    assert re.search(r"\.\.\. and \d+ more, which verdict\.json holds", shown)
    assert verdict.run_id in shown
    assert verdict.inputs.policy in shown


def test_a_thousand_small_failures_fit() -> None:
    tasks = tuple(a_failed_task(task_id=f"task-{one:04}") for one in range(1000))
    shown = markdown(a_verdict(Decision.FAIL, tasks))
    assert len(shown) <= LIMIT
    assert "golden/task-0049" in shown
    assert "... and 950 more, which verdict.json holds" in shown


@given(
    st.text(max_size=150)
    | st.lists(st.sampled_from(["</details>", "<details>", "|", "`", "```", "\n", "@all", "#1", "http://", "x"])).map(
        "".join
    )
)
def test_no_text_of_an_agent_breaks_out_of_its_place(text: str) -> None:
    violation = TrialViolation(trial=1, rule="safety_violation", message=text)
    task = a_failed_task(task_id=text, file=text, failure=text, error=text, violations=(violation,))
    verdict = a_verdict(Decision.FAIL, (task,), reasons=(a_reason(task, Rule.TASK_FAILED, text),), notes=(text,))
    shown = without_fences(markdown(verdict))
    assert shown.count("<details>") == shown.count("</details>") == 2
    assert set(re.findall(r"</?[a-z]+>", shown)) <= {
        "<details>", "</details>", "<summary>", "</summary>", "<code>", "</code>", "<br>",
    }  # fmt: skip
    assert not re.search(r"@(?!&#8203;)|://|`", shown)
    (reason,) = [line for line in shown.split("\n") if line.startswith("| **blocks** |")]
    assert reason.count("|") == 6
