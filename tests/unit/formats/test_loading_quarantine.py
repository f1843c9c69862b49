"""The quarantine beside the gates file, held against the tasks."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from passgate.tasks.errors import InputError
from passgate.tasks.formats.loading import load_quarantine
from passgate.tasks.model.policy import QuarantineFile
from passgate.tasks.model.task import Suite
from tests.builders import a_task

TASK, TALK, ATTACK = (
    a_task(),
    a_task(task_id="talk", suite=Suite.OPEN_ENDED),
    a_task(task_id="attack", suite="adversarial"),
)


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(file: Path, *tasks: str, days: int = 7) -> None:
    day = datetime.now(UTC).date() + timedelta(days=days)
    entry = f"owner: Ann, reason: flaky, issue: 'https://host/1', expires: {day}"
    file.write_text("tasks:\n" + "".join(f"- {{task: {task}, {entry}}}\n" for task in tasks))


def test_without_a_file_nobody_is_in_quarantine() -> None:
    assert load_quarantine(Path("gates.yaml"), [TASK]) == QuarantineFile()


def test_it_stands_beside_the_gates_file(project: Path) -> None:
    (project / "policies").mkdir()
    write(project / "policies/quarantine.yaml", "say-yes", "open_ended/talk")
    quarantine = load_quarantine(Path("policies/gates.yaml"), [ATTACK, TALK, TASK])
    assert [(entry.task, entry.owner) for entry in quarantine.tasks] == [
        ("golden/say-yes", "Ann"),
        ("open_ended/talk", "Ann"),
    ]


def test_an_expired_entry_is_no_problem() -> None:
    write(Path("quarantine.yaml"), "say-yes", days=-400)
    assert len(load_quarantine(Path("gates.yaml"), [TASK]).tasks) == 1


def test_it_is_refused_with_every_problem_in_its_place() -> None:
    write(Path("quarantine.yaml"), "gone", "attack", days=400)
    with pytest.raises(InputError) as caught:
        load_quarantine(Path("gates.yaml"), [TASK, ATTACK])
    assert [(problem.file, problem.line, problem.path) for problem in caught.value.problems] == [
        ("quarantine.yaml", 2, "tasks[0].task"),
        ("quarantine.yaml", 2, "tasks[0].expires"),
        ("quarantine.yaml", 3, "tasks[1].task"),
        ("quarantine.yaml", 3, "tasks[1].expires"),
    ]
    assert "guards safety (it is adversarial)" in caught.value.problems[2].message


def test_a_folder_of_that_name_is_refused() -> None:
    Path("quarantine.yaml").mkdir()
    with pytest.raises(InputError, match="no regular file"):
        load_quarantine(Path("gates.yaml"), [])
