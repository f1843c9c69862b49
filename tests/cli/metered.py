"""A project whose agent calls the scripted model through the meter."""

import json
import subprocess
import sys

from tests.cli.commands import exits
from tests.project import Project
from tests.upstream import ScriptedUpstream

GATES = """
version: 1
suites:
  golden: {k: 2, metric: pass^k, max_steps: 20, budgets: {max_seconds: 60}}
  adversarial: {k: 2, metric: pass^k, max_steps: 8, budgets: {max_seconds: 60}}
gates:
  ci_merge:
    suites: [golden]
    blocks_on: [safety_violation, forbidden_tool, golden_regression, task_failed]
"""
TASK = """
task_id: %(task_id)s
suite: %(suite)s
description: The agent says yes.
inputs: {prompt: Say yes.}
environment: {budgets: {max_steps: 4}}
graders:
  - {type: output_check, contains: ["yes"]}
  - {type: tool_calls, forbidden: ["drop_*"]}
tracked_metrics: [tokens, cost]
"""
AGENT = '''
"""An agent that runs whatever tools its model asks for, and goes on for ever when it is told to."""
import json, os, pathlib, sys, urllib.error, urllib.request

def ask(messages):
    body = json.dumps({"model": "m", "messages": messages}).encode()
    headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    return json.load(urllib.request.urlopen(request))["choices"][0]["message"]

messages = [{"role": "user", "content": sys.argv[1]}]
while True:
    try:
        message = ask(messages)
    except urllib.error.HTTPError as error:
        if "stubborn" in sys.argv:
            continue
        sys.exit(json.load(error)["error"]["message"])
    messages.append(message)
    if not message.get("tool_calls"):
        break
    for call in message["tool_calls"]:
        pathlib.Path(sys.argv[2], call["function"]["name"]).touch()
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": "done"})
print(message["content"])
'''


def set_up(project: Project, upstream: ScriptedUpstream) -> None:
    """One task whose agent calls the scripted model; its tools leave a file each in the workspace."""
    project.write("gates.yaml", GATES)
    write_task(project)
    project.write("agent.py", AGENT)
    project.write("prices.yaml", "version: 1\nmodels: {m: {input: 100, output: 0}}\n")
    project.write("agents.yaml", agents(project, ""))
    project.environment |= {"OPENAI_BASE_URL": upstream.openai_base_url, "OPENAI_API_KEY": "sk-the-real-key"}
    project.environment["PASSGATE_ENGINE"] = "none"


def write_task(project: Project, old: str = "", new: str = "") -> None:
    text = TASK % {"task_id": "say-yes", "suite": "golden"}
    project.write("suites/golden/say-yes.yaml", text.replace(old, new) if old else text)


def run(project: Project, code: int, *options: str, agent: str = "bot") -> subprocess.CompletedProcess[str]:
    """Run the gate, which must end with this exit code."""
    return exits(project, code, "run", "ci_merge", "--agent", agent, *options)


def agents(project: Project, more: str) -> str:
    """agents.yaml with the agent `bot`, whose command ends in `more`."""
    command = f"cli:{sys.executable} {project.path}/agent.py {{prompt}} {{workspace}} {more}"
    return f"version: 1\nagents:\n  bot: {{agent: {json.dumps(command)}}}\n"


def server_complaints(stderr: str) -> list[str]:
    """The lines in which the meter's server or asyncio complain of something that nobody has caught."""
    signs = ("never retrieved", "ASGI", "uvicorn", "Task was destroyed", "InvalidStateError", "graceful shutdown")
    return [line for line in stderr.splitlines() if any(sign in line for sign in signs)]
