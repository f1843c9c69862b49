"""What every kind of YAML example must be, by the comment that it begins with."""

import json
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import yaml
from jsonschema import Draft202012Validator

from passgate.tasks.agents import check_agent, parse_agent
from passgate.tasks.agents.llm_judge import RecordedJudge
from passgate.tasks.errors import UsageError
from passgate.tasks.formats.agents_file import read_agents
from passgate.tasks.formats.digests import named_by_graders, task_files
from passgate.tasks.formats.loading import load_paths
from passgate.tasks.formats.project_files import read_pins, read_policy, read_prices, read_quarantine
from passgate.tasks.formats.rules import findings
from passgate.tasks.graders.rubric import every_result
from passgate.tasks.model.agent import AgentSpec
from passgate.tasks.model.assertions import Criterion
from passgate.tasks.model.baseline import Pins
from passgate.tasks.model.policy import Policy, QuarantineFile
from passgate.tasks.model.price import PriceTable
from passgate.tasks.model.run import RunRequest
from passgate.tasks.model.sandbox import SandboxFile
from passgate.tasks.model.task import GateName, Solution, TaskFile
from tests.builders import SHIPPED, task_document
from tests.project import REPOSITORY
from tests.schema_store import published_schema

Check = Callable[[Any, Path], object]
"""Of a document, in an empty folder."""
GITLAB_JOBS = "https://gitlab.com/gitlab-org/gitlab/-/raw/master/app/assets/javascripts/editor/schema/ci.json"
SHIPPED_FILE = yaml.safe_load((REPOSITORY / "gates.yaml").read_text(encoding="utf-8"))


def merged(below: Any, above: Any) -> Any:
    """The second of two documents over the first."""
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return below | {key: merged(below.get(key), value) for key, value in above.items()}


def check_task(document: dict[str, Any], folder: Path) -> None:
    """The task must load, and there must be nothing wrong with it once the files that it names are there."""
    task = TaskFile.model_validate(document)
    _make_files(task, folder)
    assert list(findings(task, folder / str(task.suite) / "task.yaml", folder, SHIPPED)) == []


def _make_files(task: TaskFile, folder: Path) -> None:
    solutions: tuple[Solution, ...] = ()
    if task.reference:
        solutions = (task.reference.solution, *task.reference.counterexamples)
    if task.environment.sandbox:
        (folder / "_shared" / "sandboxes" / task.environment.sandbox).mkdir(parents=True)
    named = [name for one in solutions for name in (one.patch, one.script, one.transcript) if name]
    for name in (*named, *sorted(named_by_graders(task.graders)), *task_files(task)):
        file = folder / name
        if not file.is_dir():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("# a\n" if file.suffix != ".json" else '{"messages": []}')
    for tool in task.environment.tools:
        if tool.function is not None:
            name, _, function = tool.function.rpartition(":")
            with (folder / name).open("a", encoding="utf-8") as file:
                file.write(f"def {function}(**arguments): ...\n")


ONE_TEST = {"id": "one", "criteria": "Says yes.", "input": "Say yes."}
BESIDE_EVALS = {
    **dict.fromkeys(("policy.md", "build.py", "tidy.py", "seed/a.txt", "upstream/a.txt"), "a"),
    **dict.fromkeys(("hooks/prepare.ts", "skills/add/SKILL.md", "AGENTS.md"), "a"),
    ".agentv/templates/manners.yaml": "assertions: [{type: not-contains, value: a}]",
    "cases/a.yaml": "[{id: a, criteria: a, input: a}]",
    "folders/b/case.yaml": "{criteria: b, input: b}",
    "lines.jsonl": '{"id": "c", "criteria": "c", "input": "c"}',
    "others.eval.yaml": "tests: [{id: d, criteria: d, input: d, tags: [smoke], metadata: {team: desk}}]",
}
"""What the examples of eval files name."""


def check_eval(document: dict[str, Any], folder: Path) -> None:
    """An eval file must load whole, be runnable, and be one by the schema for editors where that knows its dialect."""
    for name, text in {"EVAL.yaml": yaml.safe_dump(document), **BESIDE_EVALS}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    loaded = load_paths([folder / "EVAL.yaml"], SHIPPED)
    assert (loaded.problems, loaded.cannot_run, loaded.warnings) == ((), (), ())
    assert loaded.tasks
    if "prompts" not in document:
        schema = json.loads((REPOSITORY / "schema" / "agentv.schema.json").read_text())
        assert [error.message for error in Draft202012Validator(schema).iter_errors(document)] == []


def _check_file(name: str, read: Callable[[Path, str], object], kind: type) -> Check:
    """The document must be read as a value of a kind."""

    def check(document: Any, folder: Path) -> None:
        (folder / name).write_text(yaml.safe_dump(document, sort_keys=False))
        assert isinstance(read(folder / name, name), kind)

    return check


check_gates = _check_file("gates.yaml", read_policy, Policy)
check_prices = _check_file("prices.yaml", read_prices, PriceTable)
MISSING_HERE = ("is not on this machine", "environment variable", "`cwd` is not a folder")


def check_agents(document: dict[str, Any], folder: Path) -> None:
    """Every agent must be one, as far as the machine has what it needs."""
    (folder / "agents.yaml").write_text(yaml.safe_dump(document))
    agents = read_agents(folder / "agents.yaml", "agents.yaml", parse_agent)
    assert isinstance(agents, dict), agents
    for agent in agents.values():
        trouble = _trouble(agent, folder)
        assert not trouble or any(part in trouble for part in MISSING_HERE), trouble


def _trouble(agent: AgentSpec, folder: Path) -> str:
    try:
        check_agent(agent, folder)
    except UsageError as error:
        return str(error)
    return ""


TWO_ASSERTIONS = [Criterion(id=name, outcome="It is so.") for name in "12"]


def check_replies(document: dict[str, Any], folder: Path) -> None:
    (folder / "replies.yaml").write_text(yaml.safe_dump(document))
    RecordedJudge.from_folder(folder)
    for entry in document["replies"]:
        assert len(every_result(json.loads(entry["reply"]), TWO_ASSERTIONS)) == 2


def check_deployments(document: dict[str, Any], folder: Path) -> None:
    for deployment in document["deployments"]:
        RunRequest.model_validate(deployment["parameters"])
        assert deployment["entrypoint"] in {f"passgate.flows.{gate}.{gate}" for gate in GateName}


def _check_gitlab_jobs(document: dict[str, Any], folder: Path) -> None:
    Draft202012Validator(published_schema(GITLAB_JOBS)).validate(document)


KINDS: dict[str, Check] = {
    "task": check_task,
    "part of a task": lambda part, folder: check_task(merged(task_document(), part), folder),
    "gates.yaml": check_gates,
    "part of gates.yaml": lambda part, folder: check_gates(merged(SHIPPED_FILE, part), folder),
    "agents.yaml": check_agents,
    "prices.yaml": check_prices,
    "baseline.yaml": _check_file("baseline.yaml", read_pins, Pins),
    "quarantine.yaml": _check_file(
        "quarantine.yaml", lambda file, name: read_quarantine(file, name, date(2026, 12, 1)), QuarantineFile
    ),
    "sandbox.yaml": lambda document, _: SandboxFile.model_validate(document),
    "EVAL.yaml": check_eval,
    "part of an eval file": lambda part, folder: check_eval({"tests": [ONE_TEST], **part}, folder),
    "recorded replies": check_replies,
    "prefect.yaml": check_deployments,
    ".gitlab-ci.yml": _check_gitlab_jobs,
}
