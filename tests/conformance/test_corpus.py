"""The corpus loads but for real mistakes, and scores differ from AgentV's only where that is explained."""

import sys
from pathlib import Path

import pytest

from passgate.tasks.formats.folder import folder_files
from passgate.tasks.formats.loading import load_paths, policy_or_default
from tests.conformance.__main__ import compared_in
from tests.conformance.compare import Finding
from tests.conformance.corpus import CORPUS, REFUSED
from tests.conformance.explained import EXPLANATIONS, FORMULAS, explanation_of
from tests.project import REPOSITORY, Project

pytestmark = [pytest.mark.skipif(not CORPUS.is_dir(), reason=f"there is no corpus at {CORPUS}"), pytest.mark.slow]


def test_every_eval_file_loads_or_is_refused_for_a_mistake_of_its_own() -> None:
    policy = policy_or_default(Path("gates.yaml"))
    refused: dict[str, set[str]] = {}
    for file in folder_files(CORPUS, {}).evals:
        loaded = load_paths([file], policy)
        assert loaded.tasks or loaded.problems, f"{file} has neither a task nor a problem"
        for problem in loaded.problems:
            refused.setdefault(str(Path(problem.file).relative_to(CORPUS)), set()).add(problem.message)
    assert {file: _begins(file, messages) for file, messages in refused.items()} == REFUSED


ANSWERS = """
import sys
answers = {
    "contains-check": "Hello world",
    "json-response": '{"status": "ok", "code": 200}',
    "regex-check": "Good morning",
    "equals-check": "ANSWER",
}
print(answers[sys.argv[1]])
"""


@pytest.mark.parametrize(("answer", "exit_code"), [("4", 0), ("5", 1)])
def test_an_example_of_agentv_is_a_gate_as_it_is(bare_project: Project, answer: str, exit_code: int) -> None:
    example = CORPUS / "agentv" / "v4.42.4" / "examples" / "features" / "assert"
    bare_project.write("agent.py", ANSWERS.replace("ANSWER", answer))
    bare_project.write("gates.yaml", (REPOSITORY / "gates.yaml").read_text().replace("young: report", "young: block"))
    agent = f"cli:{sys.executable} {{project}}/agent.py {{EVAL_ID}}"
    run = ("run", "ci_merge", "--suites", str(example), "--agent", agent)
    done = bare_project.passgate(*run, PASSGATE_ENGINE="none")
    assert done.returncode == exit_code, done.stdout + done.stderr
    assert ("12/12" if exit_code == 0 else "9/12") in done.stdout


def _begins(file: str, messages: set[str]) -> set[str]:
    """What each message begins with, of what this file is known to be refused for; else the message."""
    known = REFUSED.get(file, set())
    return {next((start for start in known if message.startswith(start)), message) for message in messages}


def test_every_score_is_agentvs_or_its_difference_is_explained() -> None:
    every = compared_in(CORPUS)
    differing = [one for one in every if one.finding is Finding.DIFFERING]
    unexplained = [f"{one.type}: {one.row.label}: {one.detail}" for one in differing if explanation_of(one) is None]
    assert unexplained == []
    assert sum(one.finding is Finding.AGREED for one in every) > 2500
    used = {known.name for one in differing if (known := explanation_of(one)) is not None}
    assert used == {known.name for known in (*EXPLANATIONS, *FORMULAS)}, "an explanation that nothing needs"
