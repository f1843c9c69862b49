"""passgate in an environment of its own, as with pipx: `python` is that of the environment that is active."""

import sys
from pathlib import Path

import pytest

from tests.builders import write_task
from tests.cli.commands import exits, told
from tests.project import Project

TASK = "suites/golden/a.yaml"


@pytest.fixture
def active(gate: Project, tmp_path: Path) -> Path:
    """An environment with a `python` and a package of its own, active in the shell."""
    write_task(gate.path / TASK)
    environment = tmp_path / "environment"
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = Project(environment / "lib" / version / "site-packages")
    packages.write("desk_package.py", "ANSWER = 'yes'\n")
    python = Project(environment / "bin").write("python", "#!/bin/sh\necho yes\n")
    python.chmod(0o755)
    gate.environment["VIRTUAL_ENV"] = str(environment)
    return environment


def test_python_of_a_command_is_the_active_one_and_doctor_says_so(gate: Project, active: Path) -> None:
    agent = "cli:python agent-of-mine.py {prompt_file}"
    told(gate, "try", TASK, "--agent", agent)
    assert f"{active}/bin/python" in told(gate, "doctor", agent)


def test_a_function_finds_the_packages_of_the_active_one(gate: Project, active: Path) -> None:
    gate.write("agent.py", "import desk_package\ndef answer(attempt): return desk_package.ANSWER\n")
    told(gate, "try", TASK, "--agent", "python:agent:answer")
    packages = active / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages.rename(active / "lib/python3.99")
    error = exits(gate, 2, "try", TASK, "--agent", "python:agent:answer").stderr
    assert f"environment {active}, which has python3.99: install passgate with that Python" in " ".join(error.split())
    assert "install passgate with that Python" in exits(gate, 2, "doctor", "python:agent:answer").stdout
    del gate.environment["VIRTUAL_ENV"]
    error = exits(gate, 2, "try", TASK, "--agent", "python:agent:answer").stderr
    assert "desk_package" in error
    assert "active environment" not in error


def test_without_an_active_one_it_is_that_of_the_path_and_at_last_passgates_own(gate: Project, active: Path) -> None:
    del gate.environment["VIRTUAL_ENV"]
    agent = "cli:python -c print('yes')"
    assert f"{active}/bin/python" in told(gate, "doctor", agent, PATH=f"{active}/bin:/usr/bin:/bin")
    empty = active / "empty"
    empty.mkdir()
    (empty / "sh").symlink_to("/bin/sh")
    (empty / "git").symlink_to("/usr/bin/git")
    assert f"{Path(sys.executable).parent}/python" in told(gate, "doctor", agent, PATH=str(empty))
