"""What loading a large JSONL data set costs: `python -m bench.load_jsonl [--tests 10000]`.

Every figure is of a process of its own: reading the lines with the json module alone, and loading them as passgate
does, with a sidecar whose graders apply to every test. Prints seconds without the start of Python, and the peak of
memory.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SIDECAR = """\
name: large
assert:
  - {name: polite, type: llm_judge, prompt: "Is it polite?"}
  - {name: short, type: regex, value: "^.{1,200}$"}
"""
ROUNDS = 3


def write_data_set(folder: Path, tests: int) -> None:
    """A suites folder with one JSONL file and its sidecar."""
    folder.mkdir(parents=True)
    (folder / "large.yaml").write_text(SIDECAR, encoding="utf-8")
    with (folder / "large.jsonl").open("w", encoding="utf-8") as lines:
        for number in range(tests):
            lines.write(json.dumps(a_test(number)) + "\n")


def a_test(number: int) -> dict[str, object]:
    """One test of the size that data sets of questions have."""
    return {
        "id": f"question-{number}",
        "criteria": f"Names the capital of country {number}",
        "input": [
            {"role": "system", "content": "You answer in one sentence."},
            {"role": "user", "content": f"What is the capital of country {number}?"},
        ],
        "expected_output": f"City {number} is the capital of country {number}.",
        "metadata": {"source": "generated", "difficulty": number % 5},
        "assert": [{"type": "contains", "value": f"City {number}"}],
    }


def measure(what: str, folder: Path) -> None:
    """Do one thing and print its seconds and the peak of memory in MiB."""
    if what == "passgate":
        from passgate.tasks.formats.loading import load_tasks, policy_or_default

        policy = policy_or_default(Path("gates.yaml"))
        started = time.perf_counter()
        count = len(load_tasks(folder, policy))
    else:
        started = time.perf_counter()
        count = len([json.loads(line) for line in (folder / "large.jsonl").read_text("utf-8").splitlines()])
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "peak": peak, "count": count}))


def measured(what: str, folder: Path) -> dict[str, float]:
    """The figures of a process of its own."""
    command = [sys.executable, "-m", "bench.load_jsonl", "--measure", what, "--folder", str(folder)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ.copy())
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tests", type=int, default=10_000)
    parser.add_argument("--measure", choices=["json", "passgate"], help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure, options.folder)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "suites"
        write_data_set(folder, options.tests)
        for _ in range(ROUNDS):
            bare, loaded = measured("json", folder), measured("passgate", folder)
            print(
                f"{loaded['count']:,.0f} tests: json {bare['seconds']:.2f} s, {bare['peak']:.0f} MiB; "
                f"passgate {loaded['seconds']:.2f} s ({loaded['seconds'] / bare['seconds']:.0f} times), "
                f"{loaded['peak']:.0f} MiB"
            )


if __name__ == "__main__":
    main()
