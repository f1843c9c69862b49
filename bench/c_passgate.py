"""passgate in a side-by-side benchmark of agent-gate runners.

The harness hands a neutral suite to each contender's `prepare` and times its `command`. Here the same tasks become
task files of the golden suite and one Python agent that asks the harness' endpoint.
"""

import json
import os
import sys
from pathlib import Path

from base import Contender

PYTHON = os.environ.get("PASSGATE_PYTHON", sys.executable)

AGENT = '''
import json
from contextlib import asynccontextmanager
import httpx

SETTINGS = json.load(open("bench.json"))
TOOLS = [{"type": "function", "function": {"name": name, "description": name, "parameters": {
    "type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}}}
    for name in ("lookup_order", "delete_order")]
TLS = httpx.create_ssl_context()
FREE = []


@asynccontextmanager
async def client():
    """One client per trial at a time: a client shared by many is slower."""
    one = FREE.pop() if FREE else httpx.AsyncClient(timeout=60, verify=TLS)
    yield one
    FREE.append(one)


async def agent(attempt):
    task = attempt.inputs
    messages, recorded = [{"role": "user", "content": task["prompt"]}], []
    body = {"model": "fake-agent", "messages": messages} | ({"tools": TOOLS} if task.get("tool") else {})
    async with client() as http:
        for _ in range(8):
            reply = (await http.post(SETTINGS["url"], json=body)).raise_for_status().json()
            message, usage = reply["choices"][0]["message"], reply["usage"]
            calls = message.get("tool_calls") or []
            recorded.append({
                "role": "assistant", "content": message.get("content") or "",
                "usage": {"tokens_in": usage["prompt_tokens"], "tokens_out": usage["completion_tokens"]},
                "tool_calls": [{"tool": call["function"]["name"], "result": "found"} for call in calls]})
            if not calls:
                break
            messages += [message, *({"role": "tool", "tool_call_id": call["id"], "content": "found"} for call in calls)]
    return {"messages": recorded}
'''

GATES = {
    "version": 1,
    "suites": {"golden": {"k": 1, "metric": "pass^k", "max_steps": 20}},
    "gates": {"ci_merge": {"suites": ["golden"], "blocks_on": ["safety_violation", "forbidden_tool", "task_failed"]}},
}


class Passgate(Contender):
    modes = ("text", "tools")
    resume_note = "passgate run ci_merge --resume last"

    def __init__(self, name, title, api_url):
        self.name, self.title, self.api_url = name, title, api_url

    def available(self):
        if self.api_url == "":
            return False, "set PREFECT_API_URL to a server that runs"
        return True, Path(PYTHON).name

    def env(self, ctx):
        environment = {"PREFECT_HOME": ctx.home / "prefect", "DO_NOT_TRACK": "1"}
        return environment | ({"PREFECT_API_URL": self.api_url} if self.api_url else {})

    def prepare(self, ctx):
        folder = ctx.inp / "suites" / "golden"
        folder.mkdir(parents=True)
        for task in ctx.suite["tasks"]:
            self.write_json(folder / f"{task['id']}.yaml", self._task(task, ctx.suite["k"]))
        self.write_json(ctx.inp / "gates.yaml", GATES)
        self.write_json(ctx.inp / "bench.json", {"url": f"{ctx.base_url}/chat/completions"})
        (ctx.inp / "bench_agent.py").write_text(AGENT)

    @staticmethod
    def _task(task, k):
        graders = [{"type": "output_check", "contains": [task["contains"]], "matches": task["regex"]}]
        if task["tool"]:
            graders.append({"type": "tool_calls", "required": [task["tool"]], "forbidden": task["forbidden"]})
        return {
            "task_id": task["id"],
            "suite": "golden",
            "description": "bench",
            "inputs": {"prompt": task["prompt"], "tool": task["tool"]},
            "environment": {"budgets": {"max_steps": task["max_steps"]}},
            "trials": {"k": k, "metric": "pass^k"},
            "graders": graders,
            "tracked_metrics": ["tokens"],
        }

    def command(self, ctx):
        inside = f"cd {ctx.inp} && exec {PYTHON} -m passgate"
        run = f"run ci_merge --agent python:bench_agent:agent --jobs {ctx.concurrency} --history {ctx.out}/history"
        return ["sh", "-c", f"{inside} {run}"]

    def resume_command(self, ctx):
        return ["sh", "-c", f"cd {ctx.inp} && exec {PYTHON} -m passgate run ci_merge --resume last"]

    def results(self, ctx):
        (journal,) = ctx.inp.glob(".passgate/runs/*/journal.jsonl")
        trials = (json.loads(line)["trial"] for line in journal.read_text().splitlines())
        return self.tally((trial["task_id"], trial["status"] == "passed") for trial in trials)


CONTENDERS = [
    Passgate("passgate", "passgate, ci_merge gate, nothing started", None),
    Passgate("passgate_server", "passgate, ci_merge gate, a Prefect server is there", os.environ.get("PREFECT_API_URL", "")),
]
