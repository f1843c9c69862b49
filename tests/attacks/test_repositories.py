"""Attacks by git: the history, the branches and the checkout that the gate finds."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.attacks.conftest import ANOTHER_SUITE, BROKEN, GATES, LAX, A, Attacked, Clone, task
from tests.repositories import GitRepository


def test_branch_from_an_old_commit(attacked: Attacked) -> None:
    attacked.checkout("main")
    attacked.land(LAX)
    attacked.branch("old")
    attacked.agent(BROKEN)
    attacked.checkout("main")
    attacked.land({A: task("a")})
    attacked.checkout("old")
    outcome = attacked.gate(1)
    assert outcome.edits == []
    assert any("newer on the target branch" in note for note in outcome.verdict["notes"])


def test_branch_from_before_a_suite(attacked: Attacked) -> None:
    attacked.checkout("main")
    adversarial = GATES.replace("golden", "adversarial").replace("adversarial_regression, ", "")
    easy = task("easy", "exists: false").replace("golden", "adversarial")
    attacked.land({"gates.yaml": adversarial, A: None, "suites/adversarial/a.yaml": easy})
    attacked.branch("old")
    attacked.agent(BROKEN)
    attacked.checkout("main")
    both = GATES.replace("[golden]", "[golden, adversarial]").replace("gates:", ANOTHER_SUITE)
    attacked.land({"gates.yaml": both, A: task("a")})
    attacked.checkout("old")
    attacked.gate(1)


@pytest.mark.parametrize("is_detached", [True, False])
def test_branch_of_a_merge_queue(attacked: Attacked, is_detached: bool) -> None:
    branch = "gh-readonly-queue/main/pr-7-0123456789abcdef"
    attacked.change(LAX)
    attacked.git("checkout", "--quiet", "-b", branch, "main")
    attacked.git("merge", "--quiet", "--no-ff", "--message", "Merge pull request 7", "change")
    if is_detached:
        attacked.git("checkout", "--quiet", "--detach")
    outcome = attacked.gate(1, CI="true", GITHUB_EVENT_NAME="merge_group", GITHUB_REF_NAME=branch)
    assert outcome.edits == [A]
    assert outcome.verdict["revision"]["branch"] == branch


def refused(clone: Clone, said: str, **environment: str) -> None:
    """In CI the gate is inconclusive before anything is run, and says what is missing."""
    outcome = clone.gate(3, CI="true", **environment)
    assert outcome.verdict == {}, "nothing was run"
    assert said in outcome.printed


def test_branch_that_calls_itself_main(attacked: Attacked) -> None:
    attacked.change(LAX)
    attacked.git("branch", "--force", "main", "change")
    attacked.checkout("main")
    attacked.git("update-ref", "-d", "refs/remotes/origin/main")
    refused(attacked, "git fetch origin +refs/heads/main")


@pytest.mark.parametrize("name", ["main", "origin/main"])
def test_tag_that_calls_itself_a_branch(attacked: Attacked, name: str) -> None:
    own = attacked.change(LAX)
    attacked.git("tag", name, own)
    for base in (None, name):
        outcome = attacked.gate(1, base=base, CI="true", GITHUB_BASE_REF="main")
        assert outcome.edits == [A]
        assert own not in outcome.verdict["integrity"]["base"]


@pytest.mark.parametrize("state", ["no repository", "no commit"])
def test_checkout_without_a_history(attacked: Attacked, state: str) -> None:
    attacked.change(LAX)
    if state == "no repository":
        shutil.rmtree(attacked.path / ".git")
    else:
        attacked.git("symbolic-ref", "HEAD", "refs/heads/unborn")
    refused(attacked, "so nothing was run", GITHUB_BASE_REF="main")


@pytest.mark.parametrize("kind", ["worktree", "reference"])
def test_objects_that_lie_elsewhere(attacked: Attacked, tmp_path: Path, kind: str) -> None:
    attacked.change(LAX)
    attacked.checkout("main")
    clone = tmp_path / "clone"
    if kind == "worktree":
        attacked.git("worktree", "add", "--quiet", str(clone), "change")
    else:
        url = attacked.path.as_uri()
        attacked.git("clone", "--quiet", "--reference", str(attacked.path), "--branch", "change", url, str(clone))
    assert Clone(clone).gate(0, 1, CI="true", GITHUB_BASE_REF="main").edits == [A]


MISSING = "the target of this change, is missing here"
TARGETS = {"target_that_is_an_expression": "main~1", "target_that_is_an_option": "--output=written"}


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_target_is_a_branch_of_this_very_name(attacked: Attacked, target: str) -> None:
    refused(attacked, MISSING, GITHUB_BASE_REF=target)


def clone_of(attacked: Attacked, *options: str) -> Clone:
    attacked.change(LAX)
    folder = attacked.path.parent / "clone"
    attacked.checkout("main")  # the default branch of a clone is what is checked out there
    attacked.git("clone", "--quiet", *options, "--branch", "change", attacked.path.as_uri(), str(folder))
    return Clone(folder)


def test_clone_of_one_branch(attacked: Attacked) -> None:
    refused(clone_of(attacked, "--single-branch"), f"the branch 'main', {MISSING}", GITHUB_BASE_REF="main")


def test_shallow_clone(attacked: Attacked) -> None:
    refused(clone_of(attacked, "--depth", "1", "--no-single-branch"), "fetch-depth: 0")


def test_orphan_branch(attacked: Attacked) -> None:
    attacked.git("checkout", "--quiet", "--orphan", "alone")
    attacked.change(LAX)
    assert any("have no commit in common" in note for note in attacked.gate(1).verdict["notes"])
    refused(attacked, "so nothing was run")


def test_sparse_checkout(attacked: Attacked) -> None:
    attacked.checkout("main")
    attacked.land({"suites/golden/b.yaml": task("b"), "agent.sh": "printf ok > a.txt; printf ok > b.txt\n"})
    attacked.branch("sparse")
    attacked.agent("printf ok > b.txt\n")
    attacked.git("sparse-checkout", "set", "--no-cone", "/*", f"!/{A}")
    assert not (attacked.path / A).exists()
    assert "golden/a" in attacked.gate(1).printed


@pytest.fixture
def of_submodule(attacked: Attacked) -> GitRepository:
    """The repository of a submodule, in which the suites of the gate are."""
    tasks = GitRepository(attacked.path.parent / "tasks")
    tasks.write("golden/a.yaml", task("a"))
    tasks.commit()
    attacked.checkout("main")
    attacked.git("rm", "-rqf", "suites")
    attacked.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(tasks.path), "suites")
    attacked.land()
    attacked.branch("moves")
    attacked.agent(BROKEN)
    return GitRepository(attacked.path / "suites")


def test_submodule_that_moves(attacked: Attacked, of_submodule: GitRepository) -> None:
    of_submodule.write("golden/a.yaml", LAX[A])
    of_submodule.commit("Loosen")
    attacked.change({})
    assert attacked.gate(1).edits == ["suites"]


@pytest.mark.parametrize("files", [LAX, {"suites/golden/b.yaml": task("b")}], ids=["changed", "added"])
def test_submodule_with_other_files(attacked: Attacked, of_submodule: GitRepository, files: dict[str, str]) -> None:
    attacked.git("config", "submodule.suites.ignore", "all")
    attacked.put(files)
    assert attacked.gate(1).edits == [of_submodule.path.name]


def test_file_marked_as_unchanged(attacked: Attacked) -> None:
    attacked.git("update-index", "--assume-unchanged", A)
    attacked.put(LAX)
    assert attacked.gate(1).edits == [A]


def test_grafted_history(attacked: Attacked) -> None:
    own = attacked.change(LAX)
    attacked.write(".git/info/grafts", f"{attacked.git('rev-parse', 'main')} {own}\n")
    attacked.gate(1)


def test_replaced_commits(attacked: Attacked) -> None:
    own = attacked.change(LAX)
    attacked.git("replace", attacked.git("rev-parse", "main"), own)
    attacked.gate(1)


def test_lock_of_git(attacked: Attacked) -> None:
    attacked.change(LAX)
    attacked.put({f".git/{name}.lock": "" for name in ("index", "HEAD", "config", "packed-refs")})
    attacked.gate(1)


@pytest.fixture
def program(attacked: Attacked) -> Iterator[Path]:
    """A program that must not be run."""
    program = attacked.write("program.sh", "#!/bin/sh\ntouch was-run\n")
    program.chmod(0o755)
    yield program
    assert not (attacked.path / "was-run").exists()


def test_programs_in_the_git_configuration(attacked: Attacked, program: Path) -> None:
    attacked.change(LAX)
    for name in ("core.fsmonitor", "diff.external", "core.pager", "core.sshCommand", "diff.text.textconv"):
        attacked.git("config", name, str(program))
    attacked.write(".git/hooks/post-index-change", program.read_text()).chmod(0o755)
    attacked.gate(1)


def test_git_variables_in_a_file(attacked: Attacked, program: Path) -> None:
    variables = (
        "GIT_DIR=/nowhere\nGIT_WORK_TREE=/tmp\nGIT_CONFIG_COUNT=1\nGIT_CONFIG_KEY_0=core.fsmonitor\n"
        f"GIT_CONFIG_VALUE_0={program}\nGIT_EXTERNAL_DIFF={program}\nGIT_SSH_COMMAND={program}\n"
    )
    attacked.change({".env": variables, **LAX})
    assert A in attacked.gate(1).edits


FAILING_GIT = """\
#!/bin/sh
for word in "$@"; do
  case "$word" in -*) ;; *=*) ;; *) echo "$word" >> "$LOG"; break;; esac
done
[ "$word" != "$FAILS_AT" ] || {how}
exec {git} "$@"
"""


@pytest.fixture(params=["exit 128", "exit 129", "kill -9 $$", "exec sleep 600"])
def failing_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """A git that fails in some way at the command that FAILS_AT names; the file with the commands it was asked for."""
    program, asked = tmp_path / "bin/git", tmp_path / "asked"
    program.parent.mkdir()
    program.write_text(FAILING_GIT.replace("{how}", request.param).replace("{git}", str(shutil.which("git"))))
    program.chmod(0o755)
    for limit in ("git.SECONDS", "git.LONG_SECONDS"):
        monkeypatch.setattr(f"passgate.tasks.integrity.{limit}", 5)
    for name, value in {"PATH": f"{program.parent}:{os.environ['PATH']}", "LOG": str(asked), "FAILS_AT": ""}.items():
        monkeypatch.setenv(name, value)
    return asked


@pytest.mark.parametrize("files", [LAX, {"agent.sh": BROKEN + "\n"}], ids=["an edit", "no edit"])
def test_git_that_fails_or_is_slow(attacked: Attacked, failing_git: Path, files: dict[str, str]) -> None:
    attacked.change(files)
    attacked.gate(1, CI="true")
    for command in set(failing_git.read_text().split()):
        outcome = attacked.gate(1, 2, 3, CI="true", FAILS_AT=command)
        assert "Traceback" not in outcome.printed
        assert outcome.code != 1 or outcome.edits == attacked.gate(1, CI="true").edits, command
