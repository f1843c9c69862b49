"""Real git repositories for tests."""

import os
import subprocess
from pathlib import Path

_SETTINGS = ("-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")


class GitRepository:
    """A repository in a folder, on the branch main."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch", "main")

    def git(self, *arguments: str, **environment: str) -> str:
        result = subprocess.run(
            ["git", *_SETTINGS, *arguments],
            cwd=self.path,
            env={**os.environ, **environment},
            check=True,
            capture_output=True,
            text=True,
        )
        return result.stdout.strip()

    def write(self, name: str, text: str = "x\n") -> Path:
        file = self.path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    def commit(self, message: str = "A commit") -> str:
        """Commit everything; gives the hash."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", message)
        return self.git("rev-parse", "HEAD")

    def branch(self, name: str) -> None:
        """Begin a branch here and go on with it."""
        self.git("checkout", "--quiet", "-b", name)

    def checkout(self, name: str) -> None:
        self.git("checkout", "--quiet", name)
