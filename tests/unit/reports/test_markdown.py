"""The verdict as Markdown."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.reports.measurements import a_failed_task
from tests.unit.reports.provenance import an_integrity
from tests.unit.reports.verdicts import a_reason, a_verdict, a_verdict_that_says

from passgate.tasks.model.measurement import TrialViolation
from passgate.tasks.model.policy import Rule
from passgate.tasks.model.run import Edit
from passgate.tasks.model.verdict import Comparison, Decision, Exemption, RunView, Verdict
from passgate.tasks.report import RUN_FILES
from passgate.tasks.reports.markdown import LIMIT
from passgate.tasks.reports.terminal import terminal


def markdown(verdict: Verdict) -> str:
    return RUN_FILES["summary.md"](RunView(verdict))


def without_fences(text: str) -> str:
    return re.sub(r"^(`{3,})text\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)


def test_tracked_metrics_that_no_trial_has_are_left_out() -> None:
    some, none = (a_failed_task(tracked_metrics=names) for names in (("model_config", "steps"), ("tokens_in",)))
    assert none.metrics.tokens_in is None
    assert "model_config" not in markdown(a_verdict(Decision.FAIL, (some,)))
    assert "tokens_in" not in markdown(a_verdict(Decision.FAIL, (none,)))


@pytest.mark.parametrize("filler", ["x", "|", "@", "`", "\n", "\u202e"])
def test_details_are_cut_before_the_verdict(filler: str) -> None:
    text = f"x{filler * 3000}x"
    violations = tuple(TrialViolation(trial=one, rule="forbidden_tool", message=f"{one}{text}") for one in range(30))
    first = a_failed_task(failure="first failure", violations=(violations[0].model_copy(update={"message": "short"}),))
    tasks = tuple(
        a_failed_task(task_id=f"task-{one}{text}", failure=f"{text}x\n" * 50, violations=violations)
        for one in range(300)
    )
    plain = {"unit": "s", "baseline": 1, "current": 2, "pairs": 3, "ratio": 2, "ratio_lower_bound": 1.5}
    changes = {
        "reasons": tuple(a_reason(task, Rule.TASK_FAILED, text) for task in tasks),
        "comparisons": (Comparison(name=text, limit=text, **plain),) * 30,
    }
    verdict = a_verdict_that_says(text, first, *tasks, times=300).model_copy(update=changes)
    shown = markdown(verdict)
    assert len(shown) <= LIMIT
    assert shown.startswith("## ❌ ci_merge FAIL: approved by ")
    for part in ("**Sign-off**: ", "**Not admitted**: 300 tasks", "**Quarantined**: 300 tasks", "first failure"):
        assert part in shown
    assert "<code>golden/task-0" in shown
    assert re.search(r"\.\.\. and \d+ more reasons", shown)
    assert re.search(r"\.\.\. and \d+ more, which verdict\.json holds", shown)
    assert shown.count("... and ") >= 5
    assert verdict.run_id in shown
    assert {verdict.inputs.policy, verdict.inputs.quarantine} <= set(re.findall(r"\w+", shown))


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


def test_edits_of_a_change_that_has_judged_itself_are_shown() -> None:
    shown = markdown(a_verdict(Decision.PASS, (), integrity=an_integrity(judged_by="change", change=None)))
    assert "**Judged by its own files**: this change edits files that judge it\n\n- changed " in shown
    assert "so they give no verdict" not in shown
    assert "judged by the files of" not in shown


@given(
    st.text(max_size=150)
    | st.lists(st.sampled_from(["</details>", "<details>", "|", "`", "```", "\n", "@all", "#1", "http://", "x"])).map(
        "".join
    )
)
def test_no_text_of_an_agent_a_person_or_a_file_breaks_out_of_its_place(text: str) -> None:
    shown = without_fences(markdown(a_verdict_that_says(text, times=2)))
    assert shown.count("<details>") == shown.count("</details>") == 2
    assert set(re.findall(r"</?[a-z]+>", shown)) <= {
        "<details>", "</details>", "<summary>", "</summary>", "<code>", "</code>", "<br>",
    }  # fmt: skip
    assert not re.search(r"@(?!&#8203;)|://|`", shown)
    assert [line.count("|") for line in shown.split("\n") if "**no large fall shown**" in line] == [6, 6]
    (reason,) = [line for line in shown.split("\n") if line.startswith("| **blocks** |")]
    assert reason.count("|") == 6


def test_no_number_of_harmless_edits_hides_the_one_that_judges() -> None:
    harmless = [Edit(path=f"suites/a/{one:03}.yaml", kind="added", what="tasks and graders") for one in range(400)]
    loosened = Edit(path="suites/z.yaml", kind="changed", what="tasks and graders", grades=True)
    verdict = a_verdict(Decision.PASS, (), integrity=an_integrity(edits=(*harmless, loosened)))
    assert "- changed <code>suites/z.yaml</code> (graders)\n- added <code>suites/a/000.yaml" in markdown(verdict)
    assert "! changed suites/z.yaml (graders)" in terminal(verdict, width=80, color=False)
