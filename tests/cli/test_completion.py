"""What a shell completes, asked as the scripts ask that passgate prints for it."""

from pathlib import Path

import pytest

from passgate.flows.cli.completion import complete_gates, complete_runs, complete_schemas, complete_tasks
from tests.project import Project


def asked(project: Project, line: str) -> list[str]:
    result = project.passgate(_PASSGATE_COMPLETE="complete_bash", COMP_WORDS=line, COMP_CWORD=str(line.count(" ")))
    assert result.stderr == ""
    return result.stdout.split()


def test_a_shell_gets_gates_runs_and_tasks(bare_project: Project) -> None:
    bare_project.write("suites/golden/a.yaml", "task_id: say-yes_1\n")
    (bare_project.path / ".passgate" / "runs" / "20260401T020000Z-nightly-5f3a").mkdir(parents=True)

    assert asked(bare_project, "passgate run ") == ["ci_merge", "nightly", "release_candidate"]
    assert asked(bare_project, "passgate judge ") == ["last", "20260401T020000Z-nightly-5f3a"]
    assert asked(bare_project, "passgate show last --task go") == ["golden/say-yes_1"]


def test_a_shell_never_gets_a_traceback(bare_project: Project) -> None:
    result = bare_project.passgate(_PASSGATE_COMPLETE="complete_nonsense")
    assert (result.returncode, result.stdout, result.stderr) == (1, "", "")
    home = str(bare_project.path / "not" / "there")
    result = bare_project.passgate("--install-completion", HOME=home, SHELL="/bin/nonsense")
    assert "Traceback" not in result.stderr
    assert result.returncode != 70


def test_files_are_read_cheaply_and_what_is_broken_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert (complete_runs(""), complete_tasks("")) == (["last"], [])
    golden = tmp_path / "suites" / "golden"
    golden.mkdir(parents=True)
    (golden / "a.yaml").write_text("version: 1\ntask_id: 'quoted_1'\n")
    (golden / "b.yaml").write_bytes(b"\xff\xfe\x00task_id")
    (golden / "c.yaml").mkdir()
    (golden / "d.yaml").write_text("task_id: $(rm -rf ~)\n")
    (tmp_path / "suites" / "_shared").mkdir()
    (tmp_path / "suites" / "_shared" / "x.yaml").write_text("task_id: none\n")
    runs = tmp_path / ".passgate" / "runs"
    for number in range(60):
        (runs / f"run-{number:02}").mkdir(parents=True)

    assert complete_tasks("") == ["golden/quoted_1"]
    assert complete_tasks("adv") == []
    assert complete_runs("")[:2] == ["last", "run-59"]
    assert len(complete_runs("")) == 51
    assert complete_gates("n") == ["nightly"]
    assert complete_schemas("ga") == ["gates"]
