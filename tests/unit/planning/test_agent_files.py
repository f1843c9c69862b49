"""What an agent is made of, in one digest."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from passgate.tasks.errors import UsageError
from passgate.tasks.model.agent import AgentKind, AgentSpec
from passgate.tasks.planning.plan import agent_digest

SPEC = AgentSpec(kind=AgentKind.CLI, target="my-agent")
PATTERNS = ("src/**/*.py", "prompt.md")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    (folder / "src" / "deep").mkdir(parents=True)
    (folder / "src" / "agent.py").write_text("agent")
    (folder / "src" / "deep" / "tools.py").write_text("tools")
    (folder / "src" / "notes.txt").write_text("notes")
    (folder / "prompt.md").write_text("Be kind.")
    return folder


def test_the_same_agent_has_the_same_digest_wherever_it_lies(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = agent_digest(SPEC, folder, PATTERNS)
    assert len(first) == 64
    assert agent_digest(SPEC, folder, tuple(reversed(PATTERNS))) == first
    monkeypatch.chdir(folder.rename(tmp_path / "elsewhere"))
    assert agent_digest(SPEC, tmp_path / "elsewhere", PATTERNS) == agent_digest(SPEC, Path(), PATTERNS) == first


def changed(file: str, content: str = "changed") -> Callable[[Path], object]:
    return lambda folder: (folder / file).write_text(content)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(changed("src/agent.py"), id="content"),
        pytest.param(changed("src/deep/tools.py", ""), id="deep"),
        *(pytest.param(changed("prompt.md"), id="prompt"), pytest.param(changed("src/new.py", ""), id="new")),
        pytest.param(lambda folder: (folder / "src/agent.py").chmod(0o755), id="right to run"),
        pytest.param(lambda folder: (folder / "src/agent.py").rename(folder / "src/agent2.py"), id="name"),
        pytest.param(lambda folder: (folder / "src/deep/tools.py").unlink(), id="gone"),
    ],
)
def test_a_change_of_a_file_is_another_agent(folder: Path, change: Callable[[Path], object]) -> None:
    before = agent_digest(SPEC, folder, PATTERNS)
    change(folder)
    assert agent_digest(SPEC, folder, PATTERNS) != before


@pytest.mark.parametrize(
    ("changing", "patterns"),
    [
        (".passgate/runs/1/journal.jsonl", ["**/*"]),
        *((".git/index", ["**/*"]), ("src/__pycache__/agent.pyc", ["**/*"]), ("src/__pycache__/agent.py", PATTERNS)),
        ("src/notes.txt", PATTERNS),
    ],
)
def test_other_files_and_what_runs_change_are_never_the_agent(
    folder: Path, changing: str, patterns: Sequence[str]
) -> None:
    before = agent_digest(SPEC, folder, patterns)
    (folder / changing).parent.mkdir(parents=True, exist_ok=True)
    (folder / changing).write_text("changed")
    assert agent_digest(SPEC, folder, patterns) == before


@pytest.mark.parametrize("change", [{"target": "my-agent --fast"}, {"model": "m"}, {"variables": {"A": "b"}}])
def test_the_spec_counts_and_without_patterns_alone(folder: Path, change: dict[str, object]) -> None:
    other = SPEC.model_copy(update=change)
    assert agent_digest(other, folder, PATTERNS) != agent_digest(SPEC, folder, PATTERNS)
    assert agent_digest(other, folder, ()) != agent_digest(SPEC, folder, ())
    assert agent_digest(SPEC, folder, ()) == agent_digest(SPEC, folder / "src", ()) != ""


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("scr/*.py", r"no file of .* matches the pattern 'scr/\*\.py'.*`reuse\.agent_files`"),
        *(("src", "no file of"), ("src/deep", "no file of"), ("__pycache__/*", "no file of")),
        *(("../*", "leads out of"), ("src/../../*", "leads out of"), ("/etc/passwd", "leads out of")),
        *[(pattern, r"`reuse\.agent_files`") for pattern in ("", ".", "a\0b", "[")],
    ],
)
def test_a_pattern_that_matches_no_file_leads_out_or_is_none_is_refused(folder: Path, pattern: str, why: str) -> None:
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/a.pyc").write_text("")
    (folder.parent / "outside.txt").write_text("")
    with pytest.raises(UsageError, match=why):
        agent_digest(SPEC, folder, (*PATTERNS, pattern))


@pytest.mark.parametrize("way", ["file", "folder"])
def test_a_link_that_leads_out_is_refused(folder: Path, way: str) -> None:
    outside = folder.parent / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text("secret")
    target, link = (outside / "secret.py", "src/link.py") if way == "file" else (outside, "src/link")
    (folder / link).symlink_to(target)
    with pytest.raises(UsageError, match=r"is a link that leaves"):
        agent_digest(SPEC, folder, ["src/*.py", "src/link/*.py"] if way == "folder" else ["src/*.py"])


def test_a_link_inside_counts_as_what_it_leads_to(folder: Path) -> None:
    (folder / "main.md").symlink_to(folder / "prompt.md")
    before = agent_digest(SPEC, folder, ["main.md"])
    (folder / "prompt.md").write_text("Be rude.")
    assert agent_digest(SPEC, folder, ["main.md"]) != before


def test_what_never_ends_is_no_file(folder: Path) -> None:
    os.mkfifo(folder / "src/pipe.py")
    assert agent_digest(SPEC, folder, PATTERNS)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_cannot_be_read_is_refused(folder: Path) -> None:
    (folder / "prompt.md").chmod(0)
    with pytest.raises(UsageError, match=r"prompt\.md is an agent's file and cannot be read"):
        agent_digest(SPEC, folder, PATTERNS)
