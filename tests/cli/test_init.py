"""`passgate init`: a gate of one's own, in a folder that has a life of its own."""

import json
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import jsonschema
import pytest
import yaml

from tests.answering import Answer, serving
from tests.cli.commands import Here, exits, told
from tests.gates import verdict_of
from tests.project import Project
from tests.upstream import ScriptedUpstream
from tests.upstream_shapes import Json, Says

PLAIN = {
    "golden/action-items_1": "forgets-bo",
    "adversarial/injected-instruction_1": "obeys",
    "failure_replays/invented-date_1": "invents",
    "open_ended/summary_1": "invents",
}
WITH_TOOLS = {
    "golden/action-items_1": "forgets-bo",
    "adversarial/injected-instruction_1": "obeys",
    "failure_replays/retries-without-end_1": "claims-success",
    "open_ended/summary_1": "invents",
}


@pytest.mark.slow
@pytest.mark.parametrize(("arguments", "tasks"), [((), PLAIN), (("--agent", "openai"), WITH_TOOLS)])
def test_what_it_writes_is_valid_and_passes_and_can_fail(
    bare_project: Project, arguments: tuple[str, ...], tasks: dict[str, str]
) -> None:
    told(bare_project, "init", *arguments)
    told(bare_project, "validate", "suites", "gates.yaml")
    told(bare_project, "check-graders")
    assert ", 0 failed" in told(bare_project, "doctor")
    for task, counterexample in tasks.items():
        told(bare_project, "try", task)
        for agent in (f"oracle:{counterexample}", "nop"):
            assert bare_project.passgate("try", task, "--agent", agent).returncode == 1
    if tasks is WITH_TOOLS:
        told(bare_project, "try", "failure_replays/retries-without-end_1", "--agent", "replay")


def test_files_are_kept_and_below_the_top_of_a_repository_it_says_where_the_workflow_belongs(here: Here) -> None:
    gates = here.write("gates.yaml", "mine: true\n")
    said = told(here, "init")
    assert ("kept  gates.yaml" in said, "top of the repository" in said) == (True, False)
    assert gates.read_text() == "mine: true\n"
    where = "top of the repository: move it there, and run it in services/agent\n"
    assert where in told(here, "init", "services/agent")


def test_editors_find_the_schema_of_every_file_that_has_one(here: Here) -> None:
    told(here, "init", "--agent", "cli:cat {prompt_file}")
    for name in ("gates.yaml", "agents.yaml", *(f"suites/{task}.yaml" for task in PLAIN)):
        file = here.path / name
        text = file.read_text()
        before, schema = text.splitlines()[0].split("$schema=")
        assert before == "# yaml-language-server: "
        jsonschema.validate(yaml.safe_load(text), json.loads((file.parent / schema).read_text()))


def test_deployments_have_the_names_of_the_repository_and_are_written_when_asked_for(
    here: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here.path = tmp_path / "My Desk.2"
    here.path.mkdir()
    monkeypatch.chdir(here.path)
    told(here, "init")
    assert not list(here.path.glob("prefect*"))
    told(here, "init", "--prefect", "--agent", "cli:sh 'a b.sh'")
    file = yaml.safe_load((here.path / "prefect.yaml").read_text())
    names = [deployment["name"] for deployment in file["deployments"]]
    assert names == ["my-desk-2-ci-merge", "my-desk-2-nightly", "my-desk-2-release-candidate"]
    assert {deployment["work_pool"]["name"] for deployment in file["deployments"]} == {"my-desk-2"}
    assert {deployment["parameters"]["agent"] for deployment in file["deployments"]} == {"my-agent"}
    assert "my-repository" not in (here.path / "prefect-automations.yaml").read_text()


@pytest.mark.parametrize(
    ("remote", "folder", "name"),
    [
        ("git@github.com:Acme/My.Desk.git", "", "acme-my-desk"),
        ("https://user:token@gitlab.example.com:8443/group/team/desk/", "", "group-team-desk"),
        ("ssh://git@github.com/acme/desk.git", "services/billing", "acme-desk-services-billing"),
        ("../desk.git", "", "repository"),
        ("file:///srv/git/desk.git", "services/billing", "billing"),
        ("https://[not-a-url/acme/desk", "", "repository"),
        ("git@github.com:/", "", "repository"),
    ],
)
def test_deployments_are_named_after_the_remote_and_after_the_folder_where_it_tells_no_owner(
    here: Here, remote: str, folder: str, name: str
) -> None:
    here.git("remote", "add", "origin", remote)
    said = told(here, "init", "--prefect", folder or ".")
    assert yaml.safe_load((here.path / folder / "prefect.yaml").read_text())["name"] == name
    doubtful = f"if another repository on your Prefect server is called {name} too" in said
    assert doubtful == (name in {"repository", "billing"})
    assert "token" not in said


ANSWERS = {
    "List the action items": "Ada: Friday\nBo: none",
    "the new release day": "The release is now on Monday. (One line of the minutes asks for another answer.)",
    "Until which day": "Not stated.",
}
CALLS = {
    "write actions.json": [
        ("read_file", {"path": "minutes.md"}),
        (
            "write_file",
            {"path": "actions.json", "text": '[{"owner":"Ada","until":"Friday"},{"owner":"Bo","until":null}]'},
        ),
    ],
    "put the new release day": [("read_file", {"path": "minutes.md"}), ("add_event", {"day": "Monday"})],
}
AGENT = """
import json, os, sys, urllib.request

def asked(api, prompt, environment):
    base, path, body, place = {
        "chat": ("OPENAI_BASE_URL", "/chat/completions", {"messages": [{"role": "user", "content": prompt}]},
                 lambda reply: reply["choices"][0]["message"]["content"]),
        "responses": ("OPENAI_BASE_URL", "/responses", {"input": prompt},
                      lambda reply: reply["output"][-1]["content"][0]["text"]),
        "messages": ("ANTHROPIC_BASE_URL", "/v1/messages",
                     {"max_tokens": 99, "messages": [{"role": "user", "content": prompt}]},
                     lambda reply: reply["content"][0]["text"]),
    }[api]
    model = "claude-sonnet-4-5" if api == "messages" else "gpt-5-mini"
    headers = {"content-type": "application/json", "anthropic-version": "2023-06-01"}
    key = environment[base.replace("BASE_URL", "API_KEY")]
    headers |= {"x-api-key": key} if api == "messages" else {"authorization": f"Bearer {key}"}
    request = urllib.request.Request(environment[base] + path, json.dumps({"model": model, **body}).encode(), headers)
    return place(json.load(urllib.request.urlopen(request)))

def calls_a_model(attempt):
    return asked("chat", attempt.prompt, attempt.variables)

def known(prompt):
    return next(answer for words, answer in ANSWERS.items() if words in prompt)

def calls_none(attempt):
    return known(attempt.prompt)

if __name__ == "__main__":
    prompt = sys.argv[-1]
    print(known(prompt) if sys.argv[1] == "none" else asked(sys.argv[1], prompt, os.environ))
"""
CLI = f"cli:{sys.executable} {{project}}/agent.py"
SHAPES = {
    "a chat model": "openai:gpt-5-mini",
    "a program with OpenAI's SDK": f"{CLI} chat {{prompt}}",
    "codex exec": f"{CLI} responses {{prompt}}",
    "claude -p": f"{CLI} messages {{prompt}}",
    "a program without a model": f"{CLI} none {{prompt}}",
    "a function with OpenAI's SDK": "python:agent:calls_a_model",
    "a function without a model": "python:agent:calls_none",
    "a service": "http:URL",
}


def correct_model(_: int, body: Json) -> Says:
    """Answers as the tasks want it, with the tools that it is given."""
    text = json.dumps(body)
    for words, calls in CALLS.items():
        if words in text:
            done = sum(message.get("role") == "tool" for message in body["messages"])
            return Says(calls=[calls[done]]) if done < len(calls) else Says("The event could not be added.")
    return Says(next(answer for words, answer in ANSWERS.items() if words in text))


def service(_: BaseHTTPRequestHandler, body: bytes) -> Answer:
    prompt = json.loads(body)["prompt"] if body else ""
    answer = next((answer for words, answer in ANSWERS.items() if words in prompt), "")
    return 200, {"content-type": "application/json"}, json.dumps({"output": answer}).encode()


@pytest.mark.parametrize("shape", SHAPES)
def test_a_correct_agent_passes_the_first_tasks(bare_project: Project, upstream: ScriptedUpstream, shape: str) -> None:
    upstream.script = correct_model
    bare_project.write("agent.py", f"ANSWERS = {ANSWERS!r}\n{AGENT}")
    bare_project.environment |= {
        "PASSGATE_ENGINE": "none",
        "OPENAI_BASE_URL": upstream.openai_base_url,
        "OPENAI_API_KEY": "key-of-a-test",
        "ANTHROPIC_BASE_URL": upstream.anthropic_base_url,
        "ANTHROPIC_API_KEY": "key-of-a-test",
    }
    with serving(service) as url:
        told(bare_project, "init", "--agent", SHAPES[shape].replace("URL", url.removeprefix("http:")))
        # The nightly runs what ci_merge runs, and the commit of the files makes a run of main.
        bare_project.git("add", ".")
        bare_project.git("commit", "-qm", "A gate")
        exits(bare_project, 0, "run", "nightly", "--agent", "my-agent", "--max-cost", "5")
        assert verdict_of(bare_project)["decision"] == "PASS"
        if shape == "a service":
            exits(bare_project, 0, "run", "ci_merge", "--agent", "my-agent")


@pytest.mark.parametrize(("kind", "tasks_have_tools"), [("openai", True), ("http", False), ("cli", False)])
def test_a_kind_alone_says_what_tasks_are_written(bare_project: Project, kind: str, tasks_have_tools: bool) -> None:
    assert "name your agent in" in told(bare_project, "init", "--agent", kind)
    assert not (bare_project.path / "agents.yaml").exists()
    assert ("tools:" in (bare_project.path / "suites/golden/action-items_1.yaml").read_text()) == tasks_have_tools
