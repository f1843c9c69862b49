"""The reports that a run's folder holds."""

from passgate.tasks.model.run_view import RunView
from passgate.tasks.model.verdict import Verdict
from passgate.tasks.reports.run_files import RUN_FILES


def test_every_report_of_a_run_is_text_that_can_be_written(failing_verdict: Verdict) -> None:
    assert set(RUN_FILES) == {"junit.xml", "summary.md", "violations.sarif", "code-quality.json"}
    for name, make in RUN_FILES.items():
        assert make(RunView(failing_verdict)).encode(), name
