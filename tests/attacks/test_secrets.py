"""Secrets of every shape, said at every entrance of a run: none is in any byte that a command writes."""

from pathlib import Path

import pandas as pd

from tests.scenarios import Scenarios
from tests.scenarios.spoken_secrets import GRADERS, SECRETS, SPOKEN, kept_files, of_every_secret


def contents(file: Path) -> str:
    if file.suffix == ".parquet":
        return repr(pd.read_parquet(file).to_dict())
    return file.read_bytes().decode("utf-8", "replace")


def test_no_secret_is_in_anything_that_is_printed_or_written(scenario: Scenarios) -> None:
    run = scenario(of_every_secret)
    files = kept_files(run.path)
    assert {".parquet", ".jsonl", ".html", ".xml", ".md", ".json"} <= {file.suffix for file in files}
    found = {f"{file.name}: {part}" for file in files for part in SPOKEN if part in f"{file}{contents(file)}"}
    assert found == set()


def test_what_was_said_is_told_otherwise(scenario: Scenarios) -> None:
    run = scenario(of_every_secret)
    assert run.ended("run").returncode == 1
    for name in (*GRADERS, "of-programs"):
        assert "***" in run.ended(f"try-{name}").stdout, name
        assert "***" in run.ended(f"show-{name}").stdout, name
    for name in ("show-tasks", "show-tasks-json"):
        assert run.ended(name).stdout.count("*** ***") == 1
    for name in ("validate", "show-broken"):
        assert "unknown evaluator '***'" in run.ended(name).stderr
    doctor = run.ended("doctor").stdout
    assert "DB_PASSWORD, DEPLOY, PLAIN_SECRET, SIGNING_KEY, SPACED_TOKEN" in doctor


def test_errors_show_no_secret_that_another_gates_file_declares(scenario: Scenarios, tmp_path: Path) -> None:
    project = scenario(of_every_secret).copy(tmp_path / "copy")
    (project.path / "gates.yaml").rename(project.path / "others.yaml")
    problems = project.passgate("show", "broken", "--gates", "others.yaml", GITHUB_ACTIONS="true", **SECRETS).stderr
    assert "unknown evaluator '***'" in problems
    assert not any(part in problems for part in SPOKEN)
