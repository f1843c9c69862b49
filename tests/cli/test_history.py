"""`passgate history`."""

from pathlib import Path

from bench.generated_history import night_id, write_generated

from tests.conftest import Project


def test_runs_are_listed_compared_and_compacted(bare_project: Project) -> None:
    history = bare_project.path / "kept"
    write_generated(str(history), 3, 1)
    place = ("--history", "kept")
    listed = bare_project.passgate("history", "list", *place)
    assert [line.split()[0] for line in listed.stdout.splitlines()[1:]] == [night_id(night) for night in range(3)]
    compared = bare_project.passgate("history", "compare", "last", *place)
    assert compared.stdout.startswith(f"{night_id(1)} -> {night_id(2)}: "), compared.stderr
    assert bare_project.passgate("history", "compact", *place).stdout == "3 files of summaries are joined\n"
    assert [file.name for file in Path(history / "summaries").rglob("*.parquet")] == ["compacted.parquet"]
    assert bare_project.passgate("history", "list", *place).stdout == listed.stdout


def test_a_history_of_nothing_is_no_mistake(bare_project: Project) -> None:
    listed = bare_project.passgate("history", "list")
    assert (listed.returncode, listed.stdout) == (0, "No runs.\n")
