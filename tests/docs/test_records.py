"""What passgate writes: metrics, transcripts, columns, verdicts, files of a run."""

import json

from passgate.tasks.history import mirror, run_store
from passgate.tasks.history.columns import SCHEMA_VERSION, SUMMARY_VERSION
from passgate.tasks.history.run_store import RunStore
from passgate.tasks.integrity import who_judges
from passgate.tasks.model.transcript import (
    ChangedFile,
    ChangeKind,
    EndReason,
    FileChanges,
    Message,
    ToolCall,
    Transcript,
    Usage,
)
from passgate.tasks.model.trial import METRIC_GROUPS, TrialMetrics, TrialStatus
from passgate.tasks.model.verdict import Inputs
from passgate.tasks.planning.plan import FILES
from passgate.tasks.report import RUN_FILES
from passgate.tasks.reports.page import PAGE
from tests.docs.pages import code_in, entries, listings, meanings, section, terms
from tests.project import REPOSITORY

COLUMNS = json.loads((REPOSITORY / "schema" / "trial.schema.json").read_text())["properties"]
SUMMARY_COLUMNS = json.loads((REPOSITORY / "schema" / "summary.schema.json").read_text())["properties"]


def test_metrics_and_their_groups() -> None:
    expected = [name for group, metrics in METRIC_GROUPS.items() for name in (group, *metrics)]
    assert terms(section("docs/tasks.md", "Metrics")) == expected
    assert {metric for metrics in METRIC_GROUPS.values() for metric in metrics} == set(TrialMetrics.model_fields)


def test_the_keys_of_a_transcript() -> None:
    whole, ends, *parts = map(terms, listings(section("docs/agents.md", "The transcript")))
    assert (whole, ends) == (list(Transcript.model_fields), list(map(str, EndReason)))
    assert parts == [list(part.model_fields) for part in (Message, ToolCall, Usage)]
    changed = [*map(terms, listings(section("docs/agents.md", "Changed files")))]
    assert changed == [list(part.model_fields) for part in (FileChanges, ChangedFile)]
    assert code_in(meanings("docs/agents.md", "Changed files")["change"]) == set(ChangeKind)


def test_the_columns_of_the_history_and_their_types() -> None:
    assert terms(section("docs/history.md", "The columns")) == list(COLUMNS)
    said = meanings("docs/history.md", "The columns")
    assert said["schema_version"].startswith(f"{SCHEMA_VERSION};")
    assert set(COLUMNS["grades"]["items"]["properties"]) == code_in(said["grades"]) - {"null"}
    assert set(map(str, TrialStatus)) <= code_in(said["status"].replace("[", "").replace("]", " "))
    words = {"integer": "integer", "number": "number", "boolean": "boolean", "string": "text"}
    for name, kind, _ in entries(section("docs/history.md", "The columns")):
        column = COLUMNS[name]
        types = column["type"] if isinstance(column["type"], list) else [column["type"]]
        if column.get("format") != "date-time" and types[0] != "array":
            assert kind == words[types[0]], name
    assert terms(section("docs/history.md", "The summaries")) == list(SUMMARY_COLUMNS)
    said = meanings("docs/history.md", "The summaries")
    assert said["summary_version"].startswith(f"{SUMMARY_VERSION};")


def test_the_files_of_a_run() -> None:
    folder = RunStore.of("a")
    written = (folder.plan, folder.journal, folder.verdict)
    files = {*(file.name for file in written), *RUN_FILES, f"{who_judges._CHECKOUT}/", f"{folder.change.here.name}/"}
    files |= {mirror.LOCATION, mirror._HOLDER, run_store.COORDINATOR, "snapshot/", f"{FILES}/", PAGE, "report/"}
    assert set(terms(section("docs/history.md", "The run's folder"))) == files


def test_the_inputs_of_a_verdict() -> None:
    said = meanings("docs/gates.md", "verdict.json")["inputs"]
    for name in Inputs.model_fields:
        assert name.rpartition("_")[2].rstrip("s") in said, name
