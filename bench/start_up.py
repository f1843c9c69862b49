"""How long the commands take to start: `python -m bench.start_up [--repeats 5]`.

The median wall and CPU time of whole processes, beside a bare interpreter and `import prefect`.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time

SUITES = "suites"
COMMANDS = {
    "python": ["-c", "pass"],
    "import prefect": ["-c", "import prefect"],
    "passgate --version": ["-m", "passgate", "--version"],
    "passgate validate suites": ["-m", "passgate", "validate", SUITES],
}


def once(arguments: list[str]) -> tuple[float, float]:
    """Wall and CPU seconds of one process."""
    before, start = os.times(), time.perf_counter()
    subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - start, cpu


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    for name, arguments in COMMANDS.items():
        times = [once(arguments) for _ in range(repeats)]
        wall, cpu = (statistics.median(column) for column in zip(*times, strict=True))
        print(f"{name:<26} {wall:6.2f} s wall  {cpu:6.2f} s CPU")


if __name__ == "__main__":
    main()
