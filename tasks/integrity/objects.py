"""Read the contents of a repository's commits."""

import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from threading import Timer
from typing import Self

from passgate.tasks.integrity import git
from passgate.tasks.integrity.git import GitError, git_process


class Objects:
    """The contents of a repository's commits, read through one process of git. Use it as a context manager."""

    def __init__(self, folder: Path) -> None:
        """Start git. Raise `GitError` if git cannot be run."""
        command = git_process(folder, "cat-file", "--batch", "--follow-symlinks")
        try:
            self._process = subprocess.Popen(
                **command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
            )
        except OSError as error:
            raise GitError(f"git cannot be run: {error.strerror or error}") from error
        # A partial clone fetches each content when it is read, which may take for ever.
        self._timer = Timer(git.LONG_SECONDS, self._process.kill)
        self._timer.daemon = True
        self._timer.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        # Nothing is lost by a kill: git only reads.
        self._timer.cancel()
        self._process.kill()
        self._process.communicate()

    def read(self, name: str) -> tuple[str, bytes] | None:
        """Return the kind of an object, such as `blob`, and its content, or `None` if it does not exist.

        `name` is a hash or `COMMIT:PATH`. Links in the path are followed as long as they stay in the repository. Raise
        `GitError` if git does not answer.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        if stdin is None or stdout is None or "\n" in name:
            return None
        try:
            stdin.write(name.encode("utf-8", "surrogateescape") + b"\n")
            stdin.flush()
        except OSError:
            pass  # git has exited, so there is no answer to read below
        header = stdout.readline().split()
        if header and header[-1] in {b"missing", b"ambiguous"}:
            return None
        size = int(header[-1]) + 1 if header else 0
        content = stdout.read(size)
        if not header or len(content) < size:
            raise GitError("git cat-file did not answer completely")
        # For a link that leads out of the repository or nowhere, git prints the link's path.
        leads_nowhere = header[0] in {b"dangling", b"loop", b"notdir", b"symlink"}
        return None if leads_nowhere else (header[1].decode(), content[:-1])

    def file(self, commit: str, path: str) -> bytes | None:
        """Return the content of a file in a commit, through links, or `None` if there is none. Raise `GitError`."""
        found = self.read(f"{commit}:{path}")
        return found[1] if found is not None and found[0] == "blob" else None

    def mode(self, commit: str, path: str) -> str:
        """Return the mode of a commit's entry at a path, such as `LINK`, or an empty text. Raise `GitError`."""
        # For a link, git returns its target, and for a submodule nothing, so read the entry from the folder around it.
        place = PurePosixPath(path)
        folder = "" if place.parent == PurePosixPath() else place.parent.as_posix()
        found = self.read(f"{commit}:{folder}")
        name = place.name.encode("utf-8", "surrogateescape")
        if found is None or found[0] != "tree":
            return ""
        return next((mode for mode, entry in _entries(found[1], len(commit) // 2) if entry == name), "")


def _entries(tree: bytes, hash_size: int) -> Iterator[tuple[str, bytes]]:
    """Yield the modes and names in a tree object, which is a row of `MODE NAME`, a null byte and a hash."""
    position = 0
    while position < len(tree):
        end = tree.index(b"\0", position)
        mode, _, name = tree[position:end].partition(b" ")
        yield mode.decode(), name
        position = end + 1 + hash_size
