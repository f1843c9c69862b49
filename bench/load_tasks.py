"""What loading a folder of task files costs: `python -m bench.load_tasks [--tasks 2000] [--tools]`.

Prints the CPU seconds that passgate takes to read, validate and digest the files, and those that PyYAML's C loader
takes for them alone. Every figure is of a process of its own, without the start of Python and the imports.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

ROUNDS = 3
GATES = """\
version: 1
suites:
  golden: {k: 5, metric: pass^k, max_steps: 20}
gates:
  nightly:
    suites: [golden]
    blocks_on: []
"""
TASK = """\
task_id: t%(number)04d
suite: golden
description: Answer with the order's code.
inputs:
  prompt: "Task t%(number)04d: what is the status of order %(number)04d? Reply with the order code."
environment:
  budgets: {max_steps: 8, max_seconds: 120}
%(tools)sgraders:
  - type: output_check
    contains: [confirmed]
    matches: "Code: OK-%(number)04d\\\\b"
%(calls)stracked_metrics: [tokens, trajectory]
"""
TOOL = """\
    - name: %(name)s
      description: %(name)s by its number
      parameters: {type: object, properties: {order: {type: string}}, required: [order]}
      function: _shared/tools/desk.py:%(name)s
"""
TOOLS = "  tools:\n" + "".join(TOOL % {"name": name} for name in ("lookup_order", "delete_order"))
CALLS = """\
  - type: tool_calls
    required: [lookup_order]
    forbidden: [delete_order]
"""
DESK = """\
def lookup_order(order):
    return "found"


def delete_order(order):
    return "deleted"
"""


def write_tasks(folder: Path, tasks: int, *, with_tools: bool = False) -> None:
    """A gates file and a suites folder with so many tasks, every second one with tools where that is asked for."""
    golden, tools = folder / "suites" / "golden", folder / "suites" / "_shared" / "tools"
    golden.mkdir(parents=True)
    tools.mkdir(parents=True)
    (folder / "gates.yaml").write_text(GATES, encoding="utf-8")
    (tools / "desk.py").write_text(DESK, encoding="utf-8")
    for number in range(tasks):
        parts = (TOOLS, CALLS) if with_tools and number % 2 else ("", "")
        text = TASK % {"number": number, "tools": parts[0], "calls": parts[1]}
        (golden / f"t{number:04d}.yaml").write_text(text, encoding="utf-8")


def measure(what: str, folder: Path) -> None:
    """Do one thing and print its CPU seconds."""
    if what == "passgate":
        from passgate.tasks.formats.loading import load_paths, load_policy

        policy = load_policy(folder / "gates.yaml")
        started = cpu_seconds()
        loaded = load_paths([folder / "suites"], policy)
        count = 0 if loaded.problems else len(loaded.tasks)
    else:
        started = cpu_seconds()
        files = sorted((folder / "suites" / "golden").iterdir())
        count = len([yaml.load(file.read_bytes(), Loader=yaml.CSafeLoader) for file in files])
    print(json.dumps({"seconds": cpu_seconds() - started, "count": count}))


def cpu_seconds() -> float:
    """What this process has used so far, in user and in system mode."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measured(what: str, folder: Path) -> dict[str, float]:
    """The figures of a process of its own."""
    command = [sys.executable, "-m", "bench.load_tasks", "--measure", what, "--folder", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=2000)
    parser.add_argument("--tools", action="store_true", help="every second task has two tools and a grader of calls")
    parser.add_argument("--measure", choices=["yaml", "passgate"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options.folder)
        return
    with tempfile.TemporaryDirectory() as name:
        write_tasks(Path(name), options.tasks, with_tools=options.tools)
        for _ in range(ROUNDS):
            bare, loaded = measured("yaml", Path(name)), measured("passgate", Path(name))
            print(
                f"{loaded['count']:,.0f} tasks: yaml.CSafeLoader {bare['seconds']:.2f} s of CPU; "
                f"passgate {loaded['seconds']:.2f} s ({loaded['seconds'] / bare['seconds']:.1f} times)"
            )


if __name__ == "__main__":
    main()
