"""The wheel holds what the tree holds, directly and through the sdist, and works where nothing else of ours is."""

import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.prefect_servers import PATIENT
from tests.project import REPOSITORY, Project

PARTS = {"flows": "passgate/flows", "tasks": "passgate/tasks", "schema": "passgate/schema"}


def expected_files() -> set[str]:
    """Every file of the tree that the package needs, under its name in the wheel."""
    modules = {f"passgate/{name}.py" for name in ("__init__", "__main__", "history")}
    names = {"passgate/gates.yaml", "passgate/py.typed", *modules}
    for folder, inside in PARTS.items():
        listed = subprocess.run(
            ["git", "ls-files", "--cached", "--others", "--exclude-standard", folder],
            cwd=REPOSITORY,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in listed.stdout.splitlines():
            if (REPOSITORY / name).is_file():
                names.add(f"{inside}/{Path(name).relative_to(folder).as_posix()}")
    return names


def build(*arguments: str) -> None:
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", *arguments], cwd=REPOSITORY, capture_output=True, check=True
    )


def contents(wheel: Path) -> set[str]:
    return {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build("--wheel", "--outdir", str(folder))
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_the_tree_and_so_does_one_made_from_the_sdist(wheel: Path, tmp_path: Path) -> None:
    assert contents(wheel) == expected_files()
    build("--outdir", str(tmp_path))
    assert contents(next(tmp_path.glob("*.whl"))) == expected_files()


@pytest.mark.slow
def test_a_gate_runs_from_the_wheel_beside_unrelated_modules_of_the_same_names(
    wheel: Path, bare_project: Project, prefect_server: dict[str, str], tmp_path: Path
) -> None:
    """The libraries are borrowed from this environment, passgate itself comes from the wheel alone."""
    home = tmp_path / "environment"
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    site = Path(next((home / "lib").glob("python*"))) / "site-packages"
    zipfile.ZipFile(wheel).extractall(site)
    # A .pth file in a folder that a .pth file names is not read, so the editable install stays out of it.
    (site / "libraries.pth").write_text(next(path for path in sys.path if path.endswith("site-packages")) + "\n")
    bare_project.write("tasks.py", "raise RuntimeError('the wrong tasks')\n")
    bare_project.write("flows/__init__.py", "raise RuntimeError('the wrong flows')\n")

    bare_project.environment = prefect_server

    def passgate(*arguments: str) -> subprocess.CompletedProcess[str]:
        return bare_project.run([str(python), "-m", "passgate", *arguments])

    located = subprocess.run(
        [python, "-c", "import passgate; print(passgate.__file__)"], capture_output=True, text=True, check=True
    )
    assert str(home) in located.stdout
    assert passgate("init").returncode == 0
    assert passgate("validate", "suites", "gates.yaml").returncode == 0
    result = passgate("run", "ci_merge")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "ci_merge PASS" in result.stdout


@pytest.mark.slow
def test_the_wheel_installs_with_its_own_libraries(wheel: Path, bare_project: Project, tmp_path: Path) -> None:
    venv.create(tmp_path / "environment", with_pip=True)
    python = tmp_path / "environment" / "bin" / "python"
    # What a command imports is compiled when it is: that is a small part of the libraries.
    install = [python, "-m", "pip", "install", "--quiet", "--no-compile"]
    subprocess.run([*install, "--constraint", str(REPOSITORY / "constraints.txt"), str(wheel)], check=True)
    command = str(tmp_path / "environment" / "bin" / "passgate")
    bare_project.environment = {**PATIENT, "PREFECT_HOME": str(tmp_path / "prefect")}
    failing = ("run", "ci_merge", "--agent", "nop", "--engine", "none")
    for arguments, code in ((("init",), 0), (("run", "ci_merge"), 0), (failing, 1)):
        result = bare_project.run([command, *arguments])
        assert (result.returncode, "without Prefect" in result.stderr) == (code, False), result.stdout + result.stderr
