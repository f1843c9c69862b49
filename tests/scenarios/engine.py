"""Runs in an embedded Prefect."""

import sqlite3
import textwrap
from contextlib import closing
from pathlib import Path

from tests.gates import WRITES_OK, gate_of, shell_agent
from tests.prefect_servers import PATIENT
from tests.project import Project
from tests.scenarios import Scenario

MANY = 33
_NOTES_CERTIFICATES = """
    import os, ssl, sys
    make = ssl.create_default_context
    def noted(*args, **named):
        if sys._getframe(1).f_globals["__name__"].startswith("prefect.client"):
            with open(os.environ["NOTES"], "a") as notes:
                notes.write(f"{named.get('cafile')}\\n")
        return make(*args, **named)
    ssl.create_default_context = noted
    """


def good_and_bad(project: Project) -> None:
    """Write a gate of two tasks, of which the agent passes one; Prefect has an empty home."""
    gate_of(project, k=2)
    for name in ("good", "bad"):
        project.write(f"suites/golden/{name}.yaml", WRITES_OK.format(name=name).replace("result.txt", name))
    shell_agent(project, "printf ok > good")
    project.environment = {"PREFECT_HOME": str(prefect_home(project)), **PATIENT}


def note_certificates(project: Project) -> dict[str, str]:
    """The environment in which clients of Prefect write down the certificates that they read in the file `notes`."""
    project.write("site/sitecustomize.py", textwrap.dedent(_NOTES_CERTIFICATES))
    return {"PYTHONPATH": str(project.path / "site"), "NOTES": str(project.path / "notes")}


def prefect_home(project: Project) -> Path:
    return project.path.parent / "prefect"


def stored(project: Project, query: str) -> list[tuple[str, ...]]:
    """Rows of the database of an embedded Prefect."""
    with closing(sqlite3.connect(prefect_home(project) / "prefect.db")) as database:
        return database.execute(query).fetchall()


def an_embedded_run(scenario: Scenario) -> None:
    """A run of one task that passes and of so many that fail that they share batches."""
    good_and_bad(scenario)
    for number in range(MANY):
        scenario.write(f"suites/golden/t{number}.yaml", WRITES_OK.format(name=f"t{number}"))
    scenario.keep("run", "run", "ci_merge", "--agent", "cli:sh {project}/agent.sh", **note_certificates(scenario))
