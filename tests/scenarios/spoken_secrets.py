"""A run whose agent and graders say every secret that they know, in every way that something can be said."""

import json
from pathlib import Path

from tests.scenarios import Scenario

SECRETS = {
    "PLAIN_SECRET": "hunter7hunter8hunter9-Zq4Wn8Lt",
    "SIGNING_KEY": "-----BEGIN KEY-----\nMIIEr4Kx9Tq2LmZw\nPv7Bn3Hs5Jd8Fg1C\n-----END KEY-----\n",
    "DB_PASSWORD": "q7\\Rk\"2m'Xv<9>&z%é/Tn4b",
    "DEPLOY": "deploytoken-Qw3Er5Ty7Ui9Op1As2Df4Gh6",
    "SPACED_TOKEN": "Vy5 Nb8 Mc2 Xz6 Lk4 Jh9",
}
"""The secrets by their variables. `DEPLOY` is declared; the names of the others say what they are."""
SPOKEN = (
    "hunter7", "hunter9-Z", "Zq4Wn8Lt", "MIIEr4Kx", "x9Tq2LmZw", "Pv7Bn3Hs", "Jd8Fg1C", "q7\\Rk", "q7\\\\Rk", "Tn4b",
    "deploytoken-", "Qw3Er5", "Df4Gh6", "Vy5 Nb8", "Lk4 Jh9",
)  # fmt: skip
"""Parts of the secrets, of which none may be found."""
GATES = """\
secrets: [DEPLOY]
suites:
  golden: {k: 1, metric: pass^k, max_steps: 20, budgets: {max_seconds: 60}}
gates:
  ci_merge: {suites: [golden], blocks_on: [safety_violation, forbidden_tool, golden_regression, task_failed]}
error_retries: 0
"""
AGENT = """\
import base64, json, os, sys
names = NAMES
values = [os.environ[name] for name in names]
basic = base64.b64encode(b"user:" + values[0].encode()).decode()
every = "\\n".join([*values, repr(values), json.dumps(values), basic])
long = "".join("y" * gap + value + " " for gap, value in zip((470, 460, 480, 465, 475), values))
task = os.environ["PASSGATE_TASK_ID"]
if task == "files":
    open("text.txt", "w").write(every)
    open("long.txt", "w").write("y" * 480 + values[3] + "z" * 3000)
    open("document.json", "w").write(json.dumps({value: [value] for value in values}))
    open(values[3], "w").write(every)
elif task == "transcript":
    call = {"tool": "send", "arguments": {values[3]: values}, "result": {"said": every}, "is_error": False}
    said = [{"role": "assistant", "content": every, "tool_calls": [call]}]
    json.dump({"messages": said, "output": long}, open(os.environ["PASSGATE_TRANSCRIPT"], "w"))
elif task == "crash":
    print(every)
    sys.exit("x" * 100 + " " + values[3] + "y" * 1985 if len(sys.argv) > 1 else every)
elif task == "late":
    print(every, flush=True)
    sys.stderr.write("".join(value + "z" * 1980 for value in values))
    sys.exit(3)
elif task == "cut":
    kept = 512 * 1024
    for place in range(440, 500):
        folder = "d" * 200 + "/" + "e" * 200
        os.makedirs(folder, exist_ok=True)
        open(folder + "/" + "f" * (place - 402) + values[0], "w").write("long")
    sys.stderr.write(values[0] + "z" * (16_000 - 12))
    print("x" * (kept - 12) + values[0] + "y" * 3 * kept + values[4] + "x" * (kept - 12), end="")
    sys.exit(3)
print(long if task == "long" else every)
"""
GRADER = """\
import os, sys
every = [os.environ.get(name, "") for name in NAMES]
answer = sys.stdin.read()
if "--crash" in sys.argv:
    sys.exit("z" * 480 + answer)
print(answer.replace("{", "("))
sys.exit(1)
"""
TASK = """\
task_id: {name}
suite: golden
description: Say nothing that is secret.
inputs: {{prompt: Say nothing that is secret.}}
graders: {graders}
tracked_metrics: [trajectory]
"""
GRADERS: dict[str, list[dict[str, object]]] = {
    "files": [
        {
            "type": "state_check",
            "expect": [
                {"file": "text.txt", "equals": "done"},
                {"file": "long.txt", "equals": "done"},
                {"json_file": "document.json", "equals": {"a": 1}},
                {"command": "cat text.txt; exit 4"},
                {"command": "cat text.txt >&2; exit 4"},
                {"command": "cat long.txt", "stdout_equals": "done"},
            ],
        }
    ],
    "transcript": [
        {"type": "tool_calls", "forbidden": ["send"], "required": ["other"]},
        {"type": "policy_check", "deny_tools": ["send"], "secrets": True},
        {"type": "output_check", "equals": "done"},
    ],
    "crash": [{"type": "output_check", "contains": ["done"]}],
    "cut": [{"type": "output_check", "contains": ["done"]}],
    "late": [{"type": "output_check", "contains": ["done"]}],
    "long": [{"type": "output_check", "equals": "done", "json_schema": {"type": "object"}}],
}
EVAL = """\
name: secrets
suite: golden
tests:
  - id: of-programs
    criteria: Say nothing that is secret.
    input: Say nothing that is secret.
    expected_output: ${{ DEPLOY }} ${{ DB_PASSWORD }}
    assertions:
      - {type: equals, value: done}
      - {type: is-json}
      - {type: contains-all, value: [done]}
      - {type: code-grader, command: [python3, grader.py], name: says}
      - {type: code-grader, command: [python3, grader.py, --crash], name: crashes}
      - {type: python, value: "raise ValueError(output)", name: raises}
      - {type: python, value: "{'pass': False, 'score': 0, 'reason': output}", name: reasons}
"""


BROKEN = """\
name: broken
tests:
  - {id: a, criteria: x, input: x, assertions: [{type: "${{ DEPLOY }}"}, {type: "${{ DB_PASSWORD }}"}]}
"""


def of_every_secret(made: Scenario) -> None:
    """A run, and what other commands print of it: `try`, `doctor`, `show`, `judge`, `report`."""
    made.environment |= SECRETS
    names = repr(list(SECRETS))
    made.write("gates.yaml", GATES)
    made.write("agent.py", AGENT.replace("NAMES", names))
    made.write("agents.yaml", 'agents: {talker: {agent: "cli:python3 {project}/agent.py"}}\n')
    for name, graders in GRADERS.items():
        made.write(f"suites/golden/{name}.yaml", TASK.format(name=name, graders=json.dumps(graders)))
    made.write("suites/golden/EVAL.yaml", EVAL)
    made.write("suites/golden/grader.py", GRADER.replace("NAMES", names))
    made.write(".gitignore", ".passgate/\n")
    made.git("add", "-A")
    made.git("commit", "-q", "-m", "Write the suites")
    made.keep("run", "run", "ci_merge", "--agent", "talker")
    (run,) = made.run_folders()
    for name in (*GRADERS, "of-programs"):
        made.keep(f"try-{name}", "try", f"golden/{name}", "--agent", "talker")
        made.keep(f"show-{name}", "show", run.name, "--task", f"golden/{name}", "--trial", "0")
    made.keep("try-json", "try", "golden/files", "--agent", "talker", "--json")
    made.keep("doctor", "doctor", "talker", "--try")
    made.keep("doctor-json", "doctor", "talker", "--try", "--json")
    made.keep("show-tasks", "show", "suites/golden/EVAL.yaml")
    made.keep("show-tasks-json", "show", "suites/golden/EVAL.yaml", "--format", "json")
    made.write("broken/EVAL.yaml", BROKEN)
    made.keep("validate", "validate", "broken")
    made.keep("show-broken", "show", "broken", GITHUB_ACTIONS="true")
    made.keep("judge", "judge", run.name)
    made.keep("report", "report", run.name)
    made.keep("json", "run", "ci_merge", "--agent", "talker", "--json")


def kept_files(place: Path) -> list[Path]:
    """What the commands have written: the runs, the history, and what they printed."""
    return [file for file in (*place.parent.glob("*.json"), *(place / ".passgate").rglob("*")) if file.is_file()]
