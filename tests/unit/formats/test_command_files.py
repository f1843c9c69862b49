"""Which files commands of graders and hooks are made of."""

from pathlib import Path

import pytest

from passgate.tasks.formats.digests import named_by_command, run_by_command, words_of_command


@pytest.fixture
def suites(tmp_path: Path) -> Path:
    for name in ("checks/run.py", "checks/my run.py", "checks/__main__.py", "suites/golden/tool.py", "suites/data/a"):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return tmp_path / "suites"


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["python3", "../../checks/run.py", "gone.py"], {"../checks/run.py"}),
        (["python3", "../../checks"], {"../checks"}),
        (["python3", "../data"], {"data"}),
        (["sh", "-c", "cd ../../checks && python3 tool.py"], {"../checks", "golden/tool.py"}),
        (["sh", "-c", "python3 '../../checks/my run.py'; python3 tool.py # it's"], {"golden/tool.py"}),
        (["python3", "tool.py", ".", "..", "../.."], {"golden/tool.py"}),
        (["/bin/sh", "\0", "x" * 5000, "x" * 300, "\ud800", ""], set()),
    ],
)
def test_graders_are_made_of_what_their_commands_name(suites: Path, words: list[str], named: set[str]) -> None:
    assert {*named_by_command(("golden", tuple(words)), suites)} == named


def test_of_a_folder_that_a_command_works_in_python_runs_one_file(suites: Path) -> None:
    (suites / "golden/__main__.py").touch()
    (suites.parent / "__main__.py").touch()
    assert {*named_by_command(("golden", ("python3", ".", "../..")), suites)} == {
        "golden/__main__.py",
        "../__main__.py",
    }
    assert {*named_by_command(("../checks", ("python3", ".")), suites)} == {"../checks"}


def test_what_a_hook_copies_it_does_not_run(suites: Path) -> None:
    def run(*words: str) -> set[str]:
        return {*run_by_command(("golden", words), suites)}

    assert run("python3", "tool.py", "../../checks") == {"golden/tool.py"}
    assert run("cp", "tool.py", ".") == set()
    assert run("sh", "-c", "cp ../../checks/run.py .; python3 tool.py") == {"golden/tool.py"}
    assert {*words_of_command(("golden", ("cp", "tool.py", ".")), suites)} == {"golden/tool.py"}
