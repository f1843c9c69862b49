"""Extensions of eval files around trials: what they are told, in which order, and what their faults come to."""

import json
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.programs import needs
from tests.unit.sandboxes.conftest import hook

from passgate.tasks.model.task import EvalTask

# Each function notes in the workspace that it ran, and hands on what the next one is told.
NOTING = """\
import { appendFileSync } from "node:fs";
import { mark } from "./mark";
const note = (name: string) => async (context: any, { hookName }: { hookName: string }) => {
  appendFileSync("log", `${mark}${name}${hookName === name ? "" : "?"}\\n`);
  appendFileSync("told", JSON.stringify(context) + "\\n");
  console.log("a line that is no result");
  const seen = [...(context.provider_context?.seen ?? []), name];
  return { provider_context: { seen, at: context.workspace_path }, metadata: { [name]: 1 }, output: name };
};
export const beforeAll = note("beforeAll");
export default { beforeEach: note("beforeEach"), afterEach: note("afterEach") };
"""


def extending(*hooks: str, module: str = "evals/noting.ts", **workspace: object) -> EvalTask:
    extensions = [{"hook": name, "module": module} for name in hooks]
    return a_task(workspace={"extensions": extensions, **workspace}, metadata={"level": 1}, k=1)


@pytest.fixture(autouse=True)
def _modules(suites: Path) -> None:
    (suites / "evals").mkdir()
    (suites / "evals/noting.ts").write_text(NOTING)
    (suites / "evals/mark.ts").write_text('export const mark: string = "@";\n')
    (suites / "template").mkdir()
    (suites / "template/bunfig.toml").write_text('preload = ["./never.ts"]\n')


@needs("bun")
async def test_functions_run_around_the_agent_and_are_told_what_those_before_returned(
    isolation: str, workbench_of, suites: Path
) -> None:
    task = extending(
        *("afterEach", "beforeEach", "beforeAll"),
        template="template",
        before_all=hook('echo all >> "$WORKSPACE_PATH/log"'),
        before_each=hook('echo each >> "$WORKSPACE_PATH/log"'),
        after_each=hook('tail -n 2 "$WORKSPACE_PATH/log" >&2; exit 3'),
    )
    async with workbench_of() as workbench:
        async with workbench.sandbox(task) as sandbox:
            log, told = ((sandbox.workspace / name).read_text() for name in ("log", "told"))
            await sandbox.run(["sh", "-c", "echo agent >> log"], seconds=60)
            workspace = str(sandbox.workspace)
        (warning,) = workbench.warnings
    assert log == "@beforeAll\nall\n@beforeEach\neach\n"
    assert str(warning).endswith("agent\n@afterEach")
    all_, each = map(json.loads, told.splitlines())
    assert (all_["hook_name"], all_["test_id"], all_["provider_context"]) == ("beforeAll", "__before_all__", {})
    assert (each["hook_name"], each["test_id"], each["workspace_path"]) == ("beforeEach", "say-yes", workspace)
    assert (each["case_input"], each["case_metadata"]) == ("Say yes.", {"level": 1})
    assert each["provider_context"] == {"seen": ["beforeAll"], "at": workspace}
    assert (each["metadata"], each["output"]) == ({"beforeAll": 1}, "beforeAll")
    assert {"eval_run_id", "eval_dir", "workspace_file_dir"} <= each.keys()


THROWING = 'export function beforeEach() { throw new Error("the service is down"); }\n'
FAULTS = {
    "it throws": ("beforeEach", THROWING, "extension exited 1: bad.ts:beforeEach: .*the service is down"),
    "it rejects": (
        "beforeAll",
        "export const beforeAll = () => Promise.reject(new Error('no'))",
        "exited 1: bad.ts:beforeAll: .*no",
    ),
    "it is not there": ("beforeEach", "export const beforeAll = 1", "exports no function beforeEach"),
    "it does not load": ("beforeEach", "export {", "exited 1: bad.ts:beforeEach: .*Expected"),
    "it ends": ("beforeEach", "export const beforeEach = () => process.exit(0)", "ended its process before"),
    "it returns nonsense": (
        "beforeAll",
        "export const beforeAll = () => ({metadata: 3})",
        "`metadata` that is not an obje",
    ),
}


@needs("bun")
@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_of_a_module_is_an_error_of_the_trial(cannot_begin, suites: Path, fault: str) -> None:
    name, text, message = FAULTS[fault]
    (suites / "bad.ts").write_text(text)
    await cannot_begin(extending(name, module="bad.ts"), f"(?s){message}")


@needs("bun")
async def test_a_module_has_its_time_and_leaves_nothing_running(cannot_begin, suites: Path) -> None:
    (suites / "slow.mjs").write_text("export const beforeEach = () => new Promise((done) => setTimeout(done, 60000));")
    extension = {"hook": "beforeEach", "module": "slow.mjs", "timeout_seconds": 1}
    await cannot_begin(
        a_task(workspace={"extensions": [extension]}), "the extension took longer than 1 s: slow.mjs:beforeEach"
    )


async def test_a_machine_without_bun_is_told_so(cannot_begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("passgate.tasks.sandboxes.extensions.BUN", "no-bun")
    monkeypatch.setattr("passgate.tasks.sandboxes.workspaces.BUN", "no-bun")
    await cannot_begin(extending("beforeEach"), "this machine does not have: commands no-bun")


@needs("bun")
async def test_rules_of_the_agent_are_found_or_copied_and_told(isolation: str, sandbox_of, suites: Path) -> None:
    for name in ("template/.claude/skills/sum/SKILL.md", "template/AGENTS.md", "shared/skills/add/SKILL.md"):
        (suites / name).parent.mkdir(parents=True, exist_ok=True)
        (suites / name).write_text(name)
    extensions = [
        {"hook": "beforeAll", "agent_rules": {}},
        {"hook": "beforeEach", "agent_rules": {"skills": ["shared/skills"]}},
        {"hook": "beforeEach", "module": "evals/noting.ts"},
    ]
    async with sandbox_of(a_task(workspace={"template": "template", "extensions": extensions})) as sandbox:
        told = json.loads((sandbox.workspace / "told").read_text())
        root = sandbox.workspace
        copied = root / ".agentv/agent-rules/skills/skills"
        assert (copied / "add/SKILL.md").read_text() == "shared/skills/add/SKILL.md"
    paths = {"skills": [str(root / ".claude/skills"), str(copied)], "rules": [str(root / "AGENTS.md")]}
    assert told["provider_context"]["agent_rules_paths"] == told["agent_rules_paths"] == paths


@pytest.mark.parametrize(("agent", "ran"), [("second", "own second\n"), ("other", "own first\n")])
async def test_hooks_of_the_target_that_is_run(isolation: str, workbench_of, agent: str, ran: str) -> None:
    def noting(word: str) -> dict[str, object]:
        return hook(f'printf "{word}" >> "$WORKSPACE_PATH/log"')

    targets = [
        {"target": "first", "before_each": noting("first\\n")},
        {"target": "second", "before_each": noting("second\\n"), "after_each": hook("exit 4")},
    ]
    task = a_task(workspace={"before_each": noting("own "), "target_hooks": targets})
    async with workbench_of(agent=agent) as workbench:
        async with workbench.sandbox(task) as sandbox:
            assert (sandbox.workspace / "log").read_text() == ran
        assert len(workbench.warnings) == (agent == "second")
