"""What a shell completes, asked as the scripts ask that passgate prints for it."""

import pytest

from passgate.flows.cli.options import complete_gates, complete_runs, complete_schemas, complete_tasks
from tests.cli.commands import Here
from tests.project import Project

RUN = "20260401T020000Z-nightly-5f3a"


@pytest.mark.parametrize(
    ("line", "completed"),
    [
        ("passgate run ", ["ci_merge", "nightly", "release_candidate"]),
        ("passgate judge ", ["last", RUN]),
        ("passgate show last --task go", ["golden/say-yes_1"]),
    ],
)
def test_a_shell_gets_gates_runs_and_tasks(bare_project: Project, line: str, completed: list[str]) -> None:
    bare_project.write("suites/golden/a.yaml", "task_id: say-yes_1\n")
    (bare_project.path / ".passgate" / "runs" / RUN).mkdir(parents=True)
    words = {"_PASSGATE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(line.count(" "))}
    result = bare_project.passgate(**words)
    assert (result.stdout.split(), result.stderr) == (completed, "")


def test_a_shell_never_gets_a_traceback(bare_project: Project) -> None:
    result = bare_project.passgate(_PASSGATE_COMPLETE="complete_nonsense")
    assert (result.returncode, result.stdout, result.stderr) == (1, "", "")
    result = bare_project.passgate("--install-completion", HOME="/not/there", SHELL="/bin/nonsense")
    assert "Traceback" not in result.stderr
    assert result.returncode != 70


def test_files_are_read_cheaply_and_what_is_broken_is_passed_over(here: Here) -> None:
    assert (complete_runs(""), complete_tasks("")) == (["last"], [])
    here.write("suites/golden/a.yaml", "version: 1\ntask_id: 'quoted_1'\n")
    (here.path / "suites/golden/b.yaml").write_bytes(b"\xff\xfe\x00task_id")
    (here.path / "suites/golden/c.yaml").mkdir()
    here.write("suites/golden/d.yaml", "task_id: $(rm -rf ~)\n")
    here.write("suites/_shared/x.yaml", "task_id: none\n")
    for number in range(60):
        (here.path / f".passgate/runs/run-{number:02}").mkdir(parents=True)
    assert (complete_tasks(""), complete_tasks("adv")) == (["golden/quoted_1"], [])
    assert complete_runs("")[:2] == ["last", "run-59"]
    assert len(complete_runs("")) == 51
    assert complete_gates("n") == ["nightly"]
    assert complete_schemas("ga") == ["gates"]
