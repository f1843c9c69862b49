"""Gates on the shipped suites, one trial of each task."""

import shutil

from tests.project import REPOSITORY, Project
from tests.scenarios import Scenario


def release(scenario: Scenario) -> None:
    """The release candidate with the reference solutions, which nobody has signed off."""
    write_shipped(scenario)
    scenario.keep("run", "run", "release_candidate", "--k", "1")


def nothing_done(scenario: Scenario) -> None:
    """The merge gate with an agent that does nothing."""
    write_shipped(scenario)
    scenario.keep("run", "run", "ci_merge", "--k", "1", "--agent", "nop")


def write_shipped(project: Project, *tasks: str) -> None:
    """Write the shipped gates and suites, or only these tasks of them."""
    suites = shutil.copytree(REPOSITORY / "suites", project.path / "suites")
    for file in suites.glob("*/*.yaml") if tasks else ():
        if file.stem not in tasks:
            file.unlink()
    project.write("gates.yaml", (REPOSITORY / "gates.yaml").read_text())
