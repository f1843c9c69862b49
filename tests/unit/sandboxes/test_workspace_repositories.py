"""Repositories in workspaces, from real ones beside the suites."""

import asyncio
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.builders import a_task
from tests.unit.sandboxes.conftest import sh

from passgate.tasks.model.task import EvalTask
from passgate.tasks.sandboxes.workspaces import git_address, hide_credentials

IDENTITY = ("-c", "user.name=Somebody", "-c", "user.email=somebody@example.org", "-c", "commit.gpgsign=false")
TEXTS = ["first", "second", "third", "beside"]


def git(folder: Path, *arguments: str) -> str:
    command = ["git", *IDENTITY, *arguments]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def commit(folder: Path, content: str) -> str:
    """Another commit on the branch; its hash."""
    (folder / "app.txt").write_text(content)
    for name in ("src/code.py", "docs/text.md"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    git(folder, "add", "--all")
    git(folder, "commit", "--quiet", "--message", content)
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture(scope="session")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    """A repository of which each test has a copy, and its commits.

    Three are on the default branch, the middle one tagged, and one is beside them on another branch.
    """
    folder = tmp_path_factory.mktemp("app")
    git(folder, "init", "--quiet", "--initial-branch=trunk")
    made = [commit(folder, text) for text in TEXTS[:3]]
    git(folder, "tag", "v2", made[1])
    git(folder, "checkout", "--quiet", "-b", "side", made[0])
    made.append(commit(folder, TEXTS[3]))
    git(folder, "checkout", "--quiet", "trunk")
    return folder, made


@pytest.fixture
def app(suites: Path, original: tuple[Path, list[str]]) -> Path:
    return Path(shutil.copytree(original[0], suites / "app"))


@pytest.fixture
def commits(app: Path, original: tuple[Path, list[str]]) -> list[str]:
    return original[1]


def with_repos(*repos: dict[str, object], **workspace: object) -> EvalTask:
    return a_task(workspace={"repos": [{"repo": "app", **repo} for repo in repos], **workspace})


@pytest.mark.parametrize(
    ("pin", "number", "branch"),
    [
        ({}, 2, "trunk"),
        ({"commit": "v2"}, 1, ""),
        ({"commit": "side"}, 3, "side"),
        ({"commit": "trunk", "ancestor": 2}, 0, "trunk"),
        ({"commit": "v2", "ancestor": 1}, 0, ""),
    ],
)
async def test_the_commit_that_is_said_is_checked_out(sandbox_of, commits, pin, number: int, branch: str) -> None:
    async with sandbox_of(with_repos(pin)) as sandbox:
        shown = await sh(sandbox, "git rev-parse HEAD; git branch --show-current; git status --porcelain")
        assert shown.split() == [commits[number], *branch.split()]
        assert (sandbox.workspace / "app.txt").read_text() == TEXTS[number]


@pytest.mark.parametrize(("number", "length"), [(1, 40), (1, 9), (3, 40)])
async def test_a_commit_of_any_branch_or_none_has_a_hash(sandbox_of, app, commits, number: int, length: int) -> None:
    git(app, "branch", "--delete", "--force", "--quiet", "side")
    async with sandbox_of(with_repos({"commit": commits[number][:length]})) as sandbox:
        assert (sandbox.workspace / "app.txt").read_text() == TEXTS[number]


async def test_what_came_later_cannot_be_found(sandbox_of, commits: list[str]) -> None:
    """An agent that is asked for a repair must not find the repair."""
    async with sandbox_of(with_repos({"commit": commits[1]})) as sandbox:
        assert await sh(sandbox, "git log --all --format=%s; git tag; git remote") == "second\nfirst\n"
        objects = await sh(sandbox, "git cat-file --batch-all-objects --batch-check='%(objectname)'")
        assert [commit in objects for commit in commits] == [True, True, False, False]
        kept = [file for file in (sandbox.workspace / ".git").rglob("*") if file.is_file()]
        assert not any(b"suites/app" in file.read_bytes() for file in kept)


async def test_repositories_lie_where_they_are_wanted(sandbox_of, suites: Path, commits: list[str]) -> None:
    (suites / "template/kept").mkdir(parents=True)
    (suites / "template/app.txt").write_text("of the template")
    (suites / "template/kept/own.txt").write_text("of the template")
    repos = [{"path": "./one", "sparse": ["./src"]}, {"path": "deep/two", "commit": "v2"}, {"path": "."}]
    texts = {
        "one/app.txt": "third",
        "deep/two/app.txt": "second",
        "app.txt": "third",
        "kept/own.txt": "of the template",
    }
    async with sandbox_of(with_repos(*repos, template="template")) as sandbox:
        assert {place: (sandbox.workspace / place).read_text() for place in texts} == texts, "what comes later stays"
        assert {file.name for file in (sandbox.workspace / "one").iterdir()} == {".git", "app.txt", "src"}


async def test_a_repository_is_fetched_once_per_run(workbench_of, app: Path, commits: list[str]) -> None:
    """What happens to it meanwhile is nothing to the run."""

    async def text(**repo: object) -> str:
        async with workbench.sandbox(with_repos(repo)) as sandbox:
            return (sandbox.workspace / "app.txt").read_text()

    with workbench_of() as workbench:
        assert await asyncio.gather(text(), text(path="."), text(commit="trunk")) == ["third"] * 3
        commit(app, "fourth")
        assert await text(commit="trunk", path="./") == "third"
    with workbench_of() as workbench:
        assert await text() == "fourth"


async def test_the_checkouts_of_trials_are_independent(isolation: str, workbench_of, app: Path, commits) -> None:
    task = with_repos({})
    change = shlex.join(["git", *IDENTITY, "commit", "--quiet", "--allow-empty", "--message", "mine"])
    with workbench_of() as workbench:
        async with workbench.sandbox(task) as first, workbench.sandbox(task) as second:
            await sh(first, change)
            assert await sh(second, "git rev-parse HEAD; git status --porcelain") == f"{commits[2]}\n"
        async with workbench.sandbox(task) as third:
            assert await sh(third, "git rev-parse HEAD") == f"{commits[2]}\n"
    assert git(app, "rev-parse", "HEAD") == commits[2]


async def test_a_shallow_repository_will_do(sandbox_of, suites: Path, app: Path, commits: list[str]) -> None:
    git(suites, "clone", "--quiet", "--depth=1", f"file://{app}", "shallow")
    async with sandbox_of(with_repos({"repo": "shallow"})) as sandbox:
        assert (sandbox.workspace / "app.txt").read_text() == "third"


async def test_no_program_of_the_user_runs_and_no_other_repository_is_touched(
    sandbox_of, commits: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when a hook of git runs the gate."""
    other, hook = tmp_path / "other", tmp_path / "hooks/post-checkout"
    for folder in (other, hook.parent):
        folder.mkdir()
    git(other, "init", "--quiet")
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    (tmp_path / "config").write_text(f"[core]\n\thooksPath = {hook.parent}\n[init]\n\ttemplateDir = {tmp_path}\n")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / "config"))
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git/index"))
    async with sandbox_of(with_repos({})) as sandbox:
        assert (sandbox.workspace / "app.txt").read_text() == "third"
    assert not (tmp_path / "ran").exists()
    assert not (other / ".git/index").exists()


@pytest.mark.parametrize(
    ("repo", "message"),
    [
        ({"commit": "gone"}, r"the repository app: git fetch exited 128: .*gone"),
        ({"commit": "--upload-pack=touch x"}, "the repository app has no commit --upload-pack=touch x"),
        ({"commit": "v2", "ancestor": 9}, "the repository app has no commit 9 before v2"),
        ({"ancestor": 9}, "the repository app has no commit 9 before its last one"),
        ({"repo": "golden"}, r"git clone exited 128: .*golden"),
        ({"repo": "file:///nowhere/at-all"}, r"the repository file:///nowhere/at-all: git clone exited 128: .*nowhere"),
        (
            {"repo": "neither this nor that"},
            "'neither this nor that' is neither a URL nor a folder nor an OWNER/NAME of GitHub",
        ),
        ({"path": "../outside"}, r"the repository's path '\.\./outside' is outside the workspace"),
        ({"path": "/outside"}, "the repository's path '/outside' is outside the workspace"),
        ({"path": "leaves"}, "the repository's path 'leaves' is outside the workspace"),
        ({"path": "taken"}, "there is already a repository at 'taken' of the workspace"),
    ],
)
async def test_a_repository_that_cannot_be_had_is_an_error(
    cannot_begin, suites: Path, commits: list[str], tmp_path: Path, repo: dict[str, object], message: str
) -> None:
    (suites / "golden").mkdir()
    (suites / "template/taken/.git").mkdir(parents=True)
    (suites / "template/taken/.git/x").write_text("")
    (suites / "template/leaves").symlink_to(tmp_path)
    await cannot_begin(with_repos(repo, template="template"), message)


async def test_a_clone_that_takes_too_long_is_an_error(cannot_begin, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("passgate.tasks.sandboxes.workspaces.GIT_SECONDS", 0.2)
    monkeypatch.setenv("GIT_SSH_COMMAND", "sleep 600; true")
    await cannot_begin(with_repos({"repo": "git@example.org:a/b.git"}), r"git clone took longer than 0\.2 s")


async def test_nobody_is_asked_for_a_password(cannot_begin, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asks = tmp_path / "asks"
    asks.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\n")
    asks.chmod(0o755)
    monkeypatch.setenv("SSH_ASKPASS", str(asks))
    monkeypatch.setenv("GIT_ASKPASS", str(asks))

    async def wants_a_password(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        headers = b'WWW-Authenticate: Basic realm="x"\r\nContent-Length: 0\r\nConnection: close'
        writer.write(b"HTTP/1.1 401 No\r\n" + headers + b"\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(wants_a_password, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/a.git"
        await cannot_begin(with_repos({"repo": url}), "git clone exited 128: .*terminal prompts disabled")
    assert not (tmp_path / "asked").exists()


@pytest.mark.parametrize(
    ("repo", "address"),
    [
        ("https://host/a.git", "https://host/a.git"),
        ("git@host:a/b.git", "git@host:a/b.git"),
        ("ssh://git@host/a", "ssh://git@host/a"),
        ("owner/name", "https://github.com/owner/name.git"),
        ("owner/name.git", "https://github.com/owner/name.git"),
        ("owner/folder", "SUITES/owner/folder"),
        ("../suites/owner", "SUITES/owner"),
    ],
)
def test_a_folder_goes_before_a_repository_of_github(suites: Path, repo: str, address: str) -> None:
    (suites / "owner/folder").mkdir(parents=True)
    assert git_address(repo, suites) == address.replace("SUITES", str(suites))


def test_a_password_in_an_address_is_not_shown() -> None:
    assert (
        hide_credentials("https://me:secret@host/a.git")
        == hide_credentials("https://secret@host/a.git")
        == "https://host/a.git"
    )
