"""Tools for agents without files and a shell of their own. They act on the workspace of the trial."""

import subprocess
from pathlib import Path


def read_file(path: str) -> str:
    return Path(path).read_text(encoding="utf-8")


def write_file(path: str, content: str) -> str:
    Path(path).write_text(content, encoding="utf-8")
    return "written"


def run(command: str) -> str:
    done = subprocess.run(command, shell=True, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    return f"{done.stdout}exit code {done.returncode}"
