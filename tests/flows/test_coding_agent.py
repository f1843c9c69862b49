"""Real coding agents from npm, as their owners run them, with a scripted provider behind the meter."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from passgate.tasks.model.agent import AgentKind, AgentSpec, Endpoint
from passgate.tasks.model.price import Price, PriceTable
from passgate.tasks.model.task import Budgets, EvalTask
from passgate.tasks.model.trial import FinishedTrial, TrialStatus
from tests.builders import a_task
from tests.flows.coding_agents import installed_commands
from tests.flows.trials import trial_of
from tests.processes import marked_processes
from tests.upstream import Says, ScriptedUpstream

PRICES = PriceTable(models={"scripted-model": Price(input=1.0, output=10.0)})
MARK = f"coding-agent-of-{os.getpid()}"
CODEX = """
exec "$1/codex" exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox --model scripted-model \\
  -c model_provider=metered -c model_providers.metered.name=metered -c model_providers.metered.wire_api=responses \\
  -c model_providers.metered.env_key=OPENAI_API_KEY -c "model_providers.metered.base_url=$OPENAI_BASE_URL" \\
  -c analytics.enabled=false "$2"
"""
PI = """
mkdir -p "$HOME/.pi/agent"
cat > "$HOME/.pi/agent/models.json" << END
{{"providers": {{"metered": {{
  "api": "{api}", "baseUrl": "${base_url}", "apiKey": "OPENAI_API_KEY", "models": [{{"id": "scripted-model"}}]
}}}}}}
END
PI_OFFLINE=1 exec "$1/pi" --print --no-session --provider metered --model scripted-model "$2"
"""

pytestmark = [pytest.mark.slow, pytest.mark.skipif(shutil.which("npm") is None, reason="npm is not on this machine")]


@dataclass(frozen=True)
class CodingAgent:
    """A client: the script that starts it with the folder of its commands and the prompt, and its shell tool."""

    script: str
    shell_tool: str
    argument: str

    def asks(self, command: str, text: str = "") -> Says:
        """The model's wish to have a command run."""
        return Says(text, calls=[(self.shell_tool, {self.argument: command})])


AGENTS = {
    "codex": CodingAgent(CODEX, "exec_command", "cmd"),
    "pi, chat completions": CodingAgent(
        PI.format(api="openai-completions", base_url="OPENAI_BASE_URL"), "bash", "command"
    ),
    "pi, responses": CodingAgent(PI.format(api="openai-responses", base_url="OPENAI_BASE_URL"), "bash", "command"),
    "pi, messages": CodingAgent(PI.format(api="anthropic-messages", base_url="ANTHROPIC_BASE_URL"), "bash", "command"),
}
Run = Callable[[CodingAgent, EvalTask], FinishedTrial]
each_agent = pytest.mark.parametrize("client", AGENTS.values(), ids=AGENTS)


@pytest.fixture(autouse=True)
def _folder_of_the_gate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Commands of trials see it, however full /tmp is.
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="session")
def commands() -> Path:
    """The folder of the installed clients' commands."""
    return installed_commands()


async def tried(client: CodingAgent, task: EvalTask, upstream: ScriptedUpstream, commands: Path, folder: Path):
    upstreams = {
        "openai": Endpoint(base_url=upstream.openai_base_url),
        "anthropic": Endpoint(base_url=upstream.anthropic_base_url),
    }
    suites, script = folder / "suites", folder / "agent.sh"
    suites.mkdir()
    script.write_text(client.script, encoding="utf-8")
    agent = AgentSpec(kind=AgentKind.CLI, target=f"sh {script} {commands} {{prompt}}", upstreams=upstreams)
    return await trial_of(agent, task, suites, prices=PRICES)


@each_agent
async def test_it_does_its_work_and_the_transcript_says_how(
    client: CodingAgent, upstream: ScriptedUpstream, commands: Path, tmp_path: Path
) -> None:
    upstream.says(
        client.asks("cat greeting.txt", "I look first."),
        client.asks("sed -i s/hello/goodbye/ greeting.txt"),
        Says("The greeting says goodbye now."),
    )
    task = a_task(
        inputs={"prompt": "Make greeting.txt say goodbye."},
        reset=("echo hello > greeting.txt",),
        budgets=Budgets(max_steps=4, max_cost_usd=1.0, max_seconds=300),
        graders=[
            {"type": "state_check", "expect": [{"file": "greeting.txt", "equals": "goodbye\n"}]},
            {"type": "tool_calls", "required": [client.shell_tool]},
        ],
    )
    finished = await tried(client, task, upstream, commands, tmp_path)
    trial, transcript = finished.trial, finished.transcript
    assert (trial.status, trial.reason) == (TrialStatus.PASSED, ""), transcript.tool_calls
    assert upstream.count == 3
    assert [message.content for message in transcript.steps] == ["I look first.", "", "The greeting says goodbye now."]
    assert "Make greeting.txt say goodbye." in [message.content for message in transcript.messages]
    first, second = transcript.tool_calls
    assert (first.tool, first.arguments) == (client.shell_tool, {client.argument: "cat greeting.txt"})
    assert "hello" in str(first.result)
    assert second.arguments == {client.argument: "sed -i s/hello/goodbye/ greeting.txt"}
    assert (trial.metrics.steps, trial.metrics.tool_call_count) == (3, 2)
    assert (trial.metrics.tokens_in, trial.metrics.tokens_out) == (300, 60)
    assert trial.metrics.cost == pytest.approx(300 * 1e-6 + 60 * 1e-5)
    assert transcript.complete


@each_agent
async def test_it_is_ended_at_its_step_budget_with_all_that_it_has_started(
    client: CodingAgent, upstream: ScriptedUpstream, commands: Path, tmp_path: Path
) -> None:
    upstream.says(client.asks(f"(setsid sleep 4242 {MARK} < /dev/null > /dev/null 2>&1 &); echo still at it"))
    task = a_task(inputs={"prompt": f"Never stop. {MARK}"}, budgets=Budgets(max_steps=4, max_seconds=300))
    finished = await tried(client, task, upstream, commands, tmp_path)
    assert upstream.count == 4
    assert finished.trial.status is TrialStatus.FAILED
    assert "over budget: max_steps" in finished.trial.reason
    assert finished.trial.metrics.steps == 4
    assert [call.tool for call in finished.transcript.tool_calls] == [client.shell_tool] * 4
    assert "still at it" in str(finished.transcript.tool_calls[3].result)
    assert marked_processes(MARK) == []
