"""The documentation says what is there, all of it and nothing else, and its examples work."""

import json
import re
import shlex
import types
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple, Union, get_args, get_origin
from xml.etree import ElementTree

import pytest
import typer
import yaml
from pydantic import BaseModel

from passgate import __version__
from passgate.flows.cli.app import app
from passgate.flows.cli.engine import _SETTINGS
from passgate.tasks.agents import parse_agent
from passgate.tasks.agents.cli import PLACEHOLDERS
from passgate.tasks.agents.interface import Attempt
from passgate.tasks.agents.judge import RecordedJudge
from passgate.tasks.agents.transcripts import transcript_of
from passgate.tasks.errors import ExitCode, MeasurementError
from passgate.tasks.formats.digests import grader_files
from passgate.tasks.formats.policy_file import read_policy
from passgate.tasks.formats.rules import Surroundings, findings
from passgate.tasks.graders import GRADERS
from passgate.tasks.graders.judge_reply import read_reply
from passgate.tasks.load import load_tasks
from passgate.tasks.model import graders as options
from passgate.tasks.model.base import Frozen
from passgate.tasks.model.metrics import METRIC_GROUPS, TrialMetrics
from passgate.tasks.model.policy import Policy, Rule
from passgate.tasks.model.run import AgentKind, RunRequest
from passgate.tasks.model.sandbox import SandboxFile
from passgate.tasks.model.task import Budgets, GateName, Solution, TaskFile
from passgate.tasks.model.transcript import EndReason, Message, ToolCall, Transcript, Usage
from passgate.tasks.model.trial import TrialStatus
from passgate.tasks.model.verdict import Verdict
from passgate.tasks.record import record
from passgate.tasks.reports import REPORTS
from tests.builders import SHIPPED, a_finished, a_plan, a_task, task_document
from tests.conftest import REPOSITORY

PAGES = {
    str(path.relative_to(REPOSITORY)): path.read_text(encoding="utf-8")
    for path in sorted([*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").glob("*.md")])
}
README = PAGES["README.md"]
COMMANDS: dict[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
MODELS: dict[str, type[BaseModel]] = {
    get_args(model.model_fields["type"].annotation)[0]: model for model in options.GraderOptions.__subclasses__()
}
SHIPPED_FILE = yaml.safe_load((REPOSITORY / "gates.yaml").read_text(encoding="utf-8"))
HOSTS = {"arxiv.org", "docs.prefect.io", "github.com", "keepachangelog.com", "models.example", "semver.org"}
INTERNAL_VARIABLES = {"PASSGATE_PROCESS"}


class Block(NamedTuple):
    """A fenced block of a page."""

    page: str
    language: str
    text: str

    @property
    def title(self) -> str:
        return self.text.partition("\n")[0].removeprefix("# ")


def blocks(*languages: str) -> list[Any]:
    """Every fenced block of these languages, as parameters with a name each."""
    found = [
        Block(page, match[1], match[2])
        for page, text in PAGES.items()
        for match in re.finditer(r"^```(\w*)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    ]
    chosen = [block for block in found if block.language in languages]
    return [pytest.param(block, id=f"{block.page}:{number}") for number, block in enumerate(chosen)]


def without_blocks(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def section(page: str, heading: str) -> str:
    """What stands under a heading, up to the next one of whatever level."""
    parts = re.split(r"^#+ (.*)$", without_blocks(PAGES[page]), flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))[heading]


def cells(text: str, column: int = 0) -> list[str]:
    """What the cells of a column of the tables hold, where they hold one piece of code and nothing else."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [row[column].strip("`") for row in rows if re.fullmatch(r"`[^`]+`", row[column])]


def models_in(annotation: Any) -> Iterator[tuple[str, type[BaseModel]]]:
    """The models that a field may hold, each with what a path has for the way to it: `[]` for a list's items."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield "", annotation
    way = "[]" if get_origin(annotation) is tuple else ".*" if get_origin(annotation) is dict else ""
    if get_origin(annotation) in {tuple, dict, Union, types.UnionType} or hasattr(annotation, "__metadata__"):
        for inner in get_args(annotation):
            for further, model in models_in(inner):
                yield way + further, model


def paths(model: type[BaseModel], leave_out: tuple[str, ...] = ()) -> Iterator[str]:
    """Every key of a model and of the models in it, as in `reference.counterexamples[].name`."""
    for name, field in model.model_fields.items():
        yield name
        if name not in leave_out:
            for way, inner in dict.fromkeys(models_in(field.annotation)):
                yield from (f"{name}{way}.{path}" for path in paths(inner))


def own_names(model: type[BaseModel]) -> set[str]:
    """The keys of a grader and of what its lists hold."""
    return {path.rpartition(".")[2] for path in paths(model)} - {"type", "name"}


def dead_links(page: str, text: str) -> list[str]:
    """The links of a page to files and headings that are not there."""
    dead = []
    for target in re.findall(r"\]\(([^)\s]+)\)", without_blocks(text)):
        name, _, anchor = target.partition("#")
        file = (REPOSITORY / page).parent / name if name else REPOSITORY / page
        if "://" in target:
            continue
        if not file.exists() or (anchor and anchor not in anchors(file.read_text(encoding="utf-8"))):
            dead.append(target)
    return dead


def anchors(text: str) -> set[str]:
    headings = re.findall(r"^#+ (.*)$", without_blocks(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def merged(below: Any, above: Any) -> Any:
    if not isinstance(below, dict) or not isinstance(above, dict):
        return above
    return below | {key: merged(below.get(key), value) for key, value in above.items()}


def check_task(document: dict[str, Any], folder: Path) -> None:
    """The task must load, and there must be nothing wrong with it once the files that it names are there."""
    task = TaskFile.model_validate(document)
    if task.environment.sandbox:
        (folder / "_shared" / "sandboxes" / task.environment.sandbox).mkdir(parents=True)
    solutions: tuple[Solution, ...] = ()
    if task.reference:
        solutions = (task.reference.solution, *task.reference.counterexamples)
    named = [name for one in solutions for name in (one.patch, one.script, one.transcript) if name]
    for name in (*named, *grader_files(task)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    around = Surroundings(folder / str(task.suite) / "task.yaml", folder, SHIPPED)
    assert list(findings(task, around)) == []


def check_gates(document: dict[str, Any], folder: Path) -> None:
    (folder / "gates.yaml").write_text(yaml.safe_dump(document))
    assert isinstance(read_policy(folder / "gates.yaml", "gates.yaml"), Policy)


def check_replies(document: dict[str, Any], folder: Path) -> None:
    (folder / "replies.yaml").write_text(yaml.safe_dump(document))
    RecordedJudge.from_folder(folder)
    for entry in document["replies"]:
        read_reply(entry["reply"], ["first", "second"])


def check_deployments(document: dict[str, Any], folder: Path) -> None:
    for deployment in document["deployments"]:
        RunRequest.model_validate(deployment["parameters"]["request"])
        assert deployment["entrypoint"] in {f"passgate.flows.{gate}.{gate}" for gate in GateName}


KINDS = {
    "task": check_task,
    "part of a task": lambda part, folder: check_task(merged(task_document(), part), folder),
    "gates.yaml": check_gates,
    "part of gates.yaml": lambda part, folder: check_gates(merged(SHIPPED_FILE, part), folder),
    "sandbox.yaml": lambda document, folder: SandboxFile.model_validate(document),
    "recorded replies": check_replies,
    "prefect.yaml": check_deployments,
}


@pytest.mark.parametrize("block", blocks("yaml"))
def test_yaml_examples_say_what_they_are_and_are_valid(block: Block, tmp_path: Path) -> None:
    KINDS[block.title](yaml.safe_load(block.text), tmp_path)


@pytest.mark.parametrize("block", blocks("json"))
def test_json_examples_are_transcripts_or_judges_replies(block: Block) -> None:
    document = json.loads(block.text)
    if "messages" in document:
        assert transcript_of(document).complete
        assert own_names(Transcript) - {"end", "detail", "wall_time_seconds"} <= set(
            re.findall(r'"(\w+)":', block.text)
        )
    else:
        read_reply(block.text, ["first", "second"] if "checks" in document else [])


@pytest.mark.parametrize("block", [one for one in blocks("python") if one.values[0].page == "docs/agents.md"])
async def test_python_agents_run(block: Block, tmp_path: Path) -> None:
    (tmp_path / "minutes.md").write_text("Monday")
    names: dict[str, Any] = {}
    exec(compile(block.text, block.page, "exec"), names)
    attempt = Attempt(task_id="a", trial=0, prompt="?", inputs={}, workspace=tmp_path, budgets=Budgets())
    if "MeasurementError" in block.text:
        with pytest.raises(MeasurementError) as raised:
            names["answer"](attempt)
        assert raised.value.transient
    else:
        assert transcript_of(await names["answer"](attempt)).output


@pytest.mark.parametrize("block", [one for one in blocks("python") if one.values[0].page == "docs/history.md"])
def test_the_history_is_read_as_it_says(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    task = a_task()
    statuses = (TrialStatus.PASSED, TrialStatus.FAILED)
    finished = [a_finished(task, number, status=status) for number, status in enumerate(statuses)]
    record(a_plan(task), finished)
    exec(compile(block.text, block.page, "exec"), {})
    printed = capsys.readouterr().out
    assert "golden" in printed or "say-yes" in printed


def command_lines(text: str) -> list[list[str]]:
    """The commands of a shell example, in words."""
    lines = text.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


@pytest.mark.parametrize("block", blocks("bash"))
def test_shell_examples_are_accepted_by_the_commands(block: Block) -> None:
    for words in command_lines(block.text):
        if words[0] == "passgate":
            context = COMMANDS[words[1]].make_context(words[1], words[2:])
            if context.params.get("agent"):
                assert parse_agent(context.params["agent"])
        for word in words:
            if word.startswith("request="):
                RunRequest.model_validate_json(word.removeprefix("request="))


def test_readme_has_the_usage_of_every_command() -> None:
    usages = {line.split()[1]: line for line in re.findall(r"`(passgate [^`]+)`", section("README.md", "Commands"))}
    usages.pop("--version")
    assert set(usages) == set(COMMANDS)
    for name, command in COMMANDS.items():
        given = {flag for parameter in command.params for flag in parameter.opts if flag.startswith("--")}
        assert set(re.findall(r"--[a-z]+", usages[name])) == given - {"--help"}, name


def test_every_command_in_the_text_is_one() -> None:
    for page, text in PAGES.items():
        for name in re.findall(r"`passgate ([a-z]+)", text):
            assert name in COMMANDS, f"{page}: passgate {name}"


def test_make_targets_are_documented_and_there() -> None:
    targets = set(re.findall(r"^\.PHONY: (.*)$", (REPOSITORY / "Makefile").read_text(), re.MULTILINE)[0].split())
    assert {cell.removeprefix("make ") for cell in cells(section("CONTRIBUTING.md", "Set-up"))} == targets
    for page, text in PAGES.items():
        assert set(re.findall(r"`make ([a-z-]+)`", text)) <= targets, page
    assert {"make gate", "make test"} == set(cells(section("README.md", "Two commands")))


def test_exit_codes() -> None:
    rows = re.findall(r"^\| (\d+) \| (\w+) \|", section("README.md", "Verdicts and exit codes"), re.MULTILINE)
    assert {(int(code), name) for code, name in rows} == {(code.value, code.name) for code in ExitCode}


def test_the_shipped_suites_are_as_the_readme_counts_them() -> None:
    tasks = load_tasks(REPOSITORY / "suites", SHIPPED)
    counted = {
        f"| `{suite}` | {sum(task.suite is suite for task in tasks)} | {policy.k} | `{policy.metric}` |"
        for suite, policy in SHIPPED.suites.items()
    }
    for row in counted:
        assert row in README
    merge = [
        task
        for task in tasks
        if GateName.CI_MERGE in task.gates and task.suite in SHIPPED.gates[GateName.CI_MERGE].suites
    ]
    assert f"{len(merge)} tasks, {sum(task.k for task in merge)} trials" in README
    assert f"{len(tasks)} tasks" in PAGES["CHANGELOG.md"]


def test_the_suites_defaults() -> None:
    for suite, policy in SHIPPED.suites.items():
        seconds = policy.budgets.max_seconds
        row = f"| `{suite}` | {policy.k} | `{policy.metric}` | {policy.max_steps} | {seconds:g} |"
        assert row in section("docs/tasks.md", "Suites")


def test_task_keys() -> None:
    documented = cells(section("docs/tasks.md", "Every key"))
    assert set(documented) == set(paths(TaskFile, leave_out=("graders",)))
    needed = {name for name, field in TaskFile.model_fields.items() if field.is_required()}
    assert set(re.findall(r"^\| `(\w+)` \| yes \|", section("docs/tasks.md", "Every key"), re.MULTILINE)) == needed


def test_sandbox_keys() -> None:
    assert set(cells(section("docs/tasks.md", "Sandboxes"))) == set(SandboxFile.model_fields)


def test_metrics_and_their_groups() -> None:
    text = section("docs/tasks.md", "Metrics")
    assert set(cells(text, 1)) == set(TrialMetrics.model_fields)
    expected = [(group, metric) for group, metrics in METRIC_GROUPS.items() for metric in metrics]
    assert list(zip(cells(text), cells(text, 1), strict=True)) == expected


def test_gates_keys() -> None:
    names = {"suites.*": "suites.SUITE", "gates.*": "gates.GATE"}
    expected = {re.sub(r"^\w+\.\*", lambda match: names[match[0]], path) for path in paths(Policy)}
    assert set(cells(section("docs/gates.md", "Every key"))) == expected


def test_rules_and_gates() -> None:
    assert set(cells(section("docs/gates.md", "Rules"))) == {*map(str, Rule), *map(str, GateName)}


def test_verdict_keys() -> None:
    assert set(cells(section("docs/gates.md", "verdict.json"))) == set(Verdict.model_fields)


def test_grader_types() -> None:
    assert set(MODELS) == set(GRADERS)
    assert set(re.findall(r"^\| \[`(\w+)`\]", section("docs/graders.md", "Graders"), re.MULTILINE)) == set(GRADERS)
    assert set(cells(section("docs/graders.md", "Graders"))) == {"type", "name"}


@pytest.mark.parametrize("kind", MODELS)
def test_grader_options(kind: str) -> None:
    text = section("docs/graders.md", kind)
    assert set(cells(text)) == own_names(MODELS[kind])
    assert "- Failed:" in text
    assert "- Error:" in text
    assert f"type: {kind}\n" in PAGES["docs/graders.md"], "an example"


def test_agents() -> None:
    assert set(cells(section("docs/agents.md", "Agents"))) == set(map(str, AgentKind))
    assert cells(section("docs/agents.md", "cli")) == [f"{{{name}}}" for name in PLACEHOLDERS]
    assert set(cells(section("docs/agents.md", "python"))) == {field.name for field in fields(Attempt)}
    transcript = section("docs/agents.md", "The transcript")
    shapes: tuple[type[Frozen], ...] = (Transcript, Message, ToolCall, Usage)
    assert set(cells(transcript)) == {name for shape in shapes for name in shape.model_fields}
    for end in EndReason:
        assert f"`{end}`" in transcript


def test_history_columns_and_files() -> None:
    properties = json.loads((REPOSITORY / "schema" / "trial.schema.json").read_text())["properties"]
    assert cells(section("docs/history.md", "The columns")) == list(properties)
    files = {"plan.json", "journal.jsonl", "verdict.json", *REPORTS}
    assert set(cells(section("docs/history.md", "The run's folder"))) == files


def test_prefect_states_settings_and_parameters() -> None:
    source = (REPOSITORY / "flows" / "evaluate.py").read_text()
    assert set(cells(section("docs/prefect.md", "States"))) == set(re.findall(r'name="(Gate\w+)"', source))
    assert set(cells(section("docs/prefect.md", "A server of your own"))) == set(_SETTINGS)
    assert set(cells(section("docs/prefect.md", "Deployments"))) == set(RunRequest.model_fields)
    deployments = yaml.safe_load((REPOSITORY / "prefect.yaml").read_text())["deployments"]
    for deployment in deployments:
        gate = deployment["entrypoint"].rpartition(".")[2]
        assert f"{gate}/{deployment['name']}" in PAGES["docs/prefect.md"]


def test_environment_variables() -> None:
    sources = [file for folder in ("flows", "tasks") for file in (REPOSITORY / folder).rglob("*.py")]
    used = {name for file in sources for name in re.findall(r"PASSGATE_[A-Z_]+", file.read_text())}
    assert used - INTERNAL_VARIABLES <= set(re.findall(r"PASSGATE_[A-Z_]+", "".join(PAGES.values())))


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    assert dead_links(page, PAGES[page]) == []
    hosts = set(re.findall(r"https?://([\w.-]+)", PAGES[page]))
    assert hosts - HOSTS <= {"127.0.0.1"}


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_of_one_machine(page: str) -> None:
    assert re.findall(r"(?:/root|/home/|/Users/|/work/|/opt/|/mnt/|/tmp/)\S*", PAGES[page]) == []
    assert re.findall(r"(?i)pypi\.org|pythonhosted|index-url|artifactory", PAGES[page]) == []


@pytest.mark.parametrize("picture", sorted((REPOSITORY / "docs" / "images").glob("*.svg")), ids=lambda path: path.name)
def test_pictures_are_shown_and_load_nothing(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    ElementTree.fromstring(text)
    assert set(re.findall(r"https?://[^\"'\s<)]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|@font-face|<script|href=", text)
    assert f"docs/images/{picture.name}" in README


def test_the_readme_is_short_and_every_page_is_in_it() -> None:
    assert len(README.splitlines()) <= 150
    for page in PAGES:
        assert page == "README.md" or f"]({page})" in README, page


def test_the_changelog_has_this_version() -> None:
    assert f"## [{__version__}]" in PAGES["CHANGELOG.md"]


def test_what_is_wrong_is_noticed(tmp_path: Path) -> None:
    assert dead_links("README.md", "[a](nowhere.md) [b](docs/tasks.md#nowhere) [c](docs/tasks.md#sandboxes)") == [
        "nowhere.md",
        "docs/tasks.md#nowhere",
    ]
    assert cells("| `a` | b |\n| `c`, `d` | `e` |\n") == ["a"]
    with pytest.raises(ValueError, match="contans"):
        check_task(task_document(graders=[{"type": "output_check", "contans": ["a"]}]), tmp_path)
    with pytest.raises(AssertionError):
        check_task(task_document(graders=[{"type": "output_check"}]), tmp_path)
    check_gates(SHIPPED_FILE, tmp_path)
    with pytest.raises(AssertionError):
        check_gates(merged(SHIPPED_FILE, {"surprise": 1}), tmp_path)
    assert "reference.counterexamples[].name" in set(paths(TaskFile))
