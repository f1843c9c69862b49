"""What `passgate validate` and its neighbours say of paths that are not what they should be."""

import os
import re

import pytest

from tests.cli.test_validate import GOOD
from tests.project import Project


@pytest.mark.parametrize("name", ["gates.yaml", "agents.yaml", "prices.yaml", "quarantine.yaml", "baseline.yaml"])
def test_a_folder_in_place_of_a_settings_file_is_refused(bare_project: Project, name: str) -> None:
    (bare_project.path / name).mkdir()
    result = bare_project.passgate("validate", name)
    assert (result.returncode, result.stdout) == (2, "")
    assert f"{name}:1:1: cannot be read: it is no regular file" in result.stderr


def test_a_device_and_a_pipe_are_refused_without_a_look_into_them(bare_project: Project) -> None:
    os.mkfifo(bare_project.path / "pipe.yaml")
    for name in ("/dev/null", "/dev/zero", "pipe.yaml"):
        result = bare_project.passgate("validate", name, timeout=60)
        assert (result.returncode, result.stdout) == (2, ""), name
        assert re.search(rf"{name}:1:1: (cannot be read: it is no regular file|this is no file)", result.stderr)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["validate", "show", "try", "check-graders"])
def test_named_gates_that_are_no_file_are_refused(bare_project: Project, command: str) -> None:
    task = str(bare_project.write("suites/golden/one.yaml", GOOD.format(name="one")))
    missing = bare_project.passgate(command, task, "--gates", "gone.yaml")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert "no gates file gone.yaml: name one with --gates" in missing.stderr
    for name in ("suites", "/dev/null"):
        result = bare_project.passgate(command, task, "--gates", name)
        assert (result.returncode, result.stdout) == (2, "")
        assert f"{name}:1:1: cannot be read: it is no regular file" in result.stderr
