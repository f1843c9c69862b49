"""Graders that AgentV's users write for `bun` and `uv`: each passes a right answer and fails a wrong one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from passgate.tasks.formats.loading import load_tasks
from tests.builders import SHIPPED
from tests.eval_gate import write_files
from tests.programs import needs
from tests.project import Project

pytestmark = pytest.mark.slow

READ: Final = "const given = JSON.parse(await Bun.stdin.text());\n"
REPLY: Final = "console.log(JSON.stringify({ score: wanted ? 1 : 0, assertions: [] }));\n"
CUSTOM: Final = f'{READ}const wanted: boolean = given.output.includes("Paris");\n{REPLY}'
AGGREGATOR: Final = f"{READ}const wanted = Object.values(given.results).every((one: any) => one.score === 1);\n{REPLY}"
PYTHON: Final = """\
# /// script
# requires-python = ">=3.11"
# dependencies = []
# ///
import json, sys
print(json.dumps({"score": float("Paris" in json.load(sys.stdin)["output"]), "assertions": []}))
"""
FILES: Final = {
    ".agentv/assertions/names-city.ts": CUSTOM,
    "evals/graders/city.ts": CUSTOM,
    "evals/graders/city.py": PYTHON,
    "evals/graders/all.ts": AGGREGATOR,
}
ALL: Final = "bun run graders/all.ts"
MEMBERS: Final = "assertions: [{name: a, type: names-city}, {name: b, type: starts-with, value: It is}]"
OF_BUN: Final = (
    "{name: custom assertion, type: names-city}",
    "{name: program, type: code-grader, command: [bun, run, graders/city.ts]}",
    "{name: text for a shell, type: script, command: bun run graders/city.ts}",
    f"{{name: aggregator, type: composite, aggregator: {{type: code-grader, path: {ALL}}}, {MEMBERS}}}",
    f"{{name: composite, type: composite, aggregator: {{type: minimum}}, {MEMBERS}}}",
)
OF_UV: Final = (
    "{name: program, type: code-grader, command: [uv, run, graders/city.py]}",
    "{name: text for a shell, type: code_judge, script: uv run graders/city.py}",
)


def tried(project: Project, graders: Sequence[str], answer: str) -> tuple[int, list[str]]:
    """The exit code of a trial with these graders, and the line that each of the graders has."""
    for name, text in FILES.items():
        project.write(name, text)
    asserted = "".join(f"      - {grader}\n" for grader in graders)
    text = f"suite: golden\ntests:\n  - id: one\n    input: hi\n    assert:\n{asserted}"
    project.write("evals/EVAL.yaml", text)
    done = project.passgate("try", "evals/EVAL.yaml", "--agent", f"cli:echo It is {answer}.", NO_COLOR="1")
    names = [grader.removeprefix("{name: ").partition(",")[0] for grader in graders]
    return done.returncode, [line for line in done.stdout.splitlines() if line.startswith(tuple(names))]


@pytest.mark.parametrize(
    ("graders", "failing"),
    [
        # Both composites have a member that fails too.
        pytest.param(OF_BUN, len(OF_BUN) + 2, marks=needs("bun"), id="bun"),
        pytest.param(OF_UV, len(OF_UV), marks=needs("uv"), id="uv"),
    ],
)
def test_programs_grade(bare_project: Project, graders: Sequence[str], failing: int) -> None:
    found, lines = tried(bare_project, graders, "Paris")
    assert found == 0, lines
    found, lines = tried(bare_project, graders, "Rome")
    assert found == 1, lines
    assert sum("failed, score 0.00" in line for line in lines) == failing


def test_another_program_of_a_custom_assertion_is_another_grader(tmp_path: Path) -> None:
    assertion = "name: city\ntests: [{id: one, input: hi, assert: [{type: names-city}]}]\n"
    suites = write_files(tmp_path, {"evals/EVAL.yaml": assertion, **FILES}) / "evals"
    (before,) = load_tasks(suites, SHIPPED)
    (tmp_path / ".agentv/assertions/names-city.ts").write_text(CUSTOM.replace("Paris", "Rome"))
    (after,) = load_tasks(suites, SHIPPED)
    assert before.task_digest == after.task_digest
    assert before.grader_digest != after.grader_digest
