"""What an agent is made of, in one digest."""

import os
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


def test_the_same_agent_has_the_same_digest_wherever_it_lies(folder: Path, tmp_path: Path) -> None:
    first = agent_digest(SPEC, folder, PATTERNS)
    assert len(first) == 64
    assert agent_digest(SPEC, folder, PATTERNS) == first
    assert agent_digest(SPEC, folder, tuple(reversed(PATTERNS))) == first
    folder.rename(tmp_path / "elsewhere")
    assert agent_digest(SPEC, tmp_path / "elsewhere", PATTERNS) == first


def test_the_working_folder_may_be_the_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = agent_digest(SPEC, folder, PATTERNS)
    monkeypatch.chdir(folder)
    assert agent_digest(SPEC, Path(), PATTERNS) == whole


@pytest.mark.parametrize(
    ("name", "content"),
    [("src/agent.py", "agent 2"), ("src/deep/tools.py", ""), ("prompt.md", "Be rude."), ("src/new.py", "")],
)
def test_a_change_of_a_file_is_another_agent(folder: Path, name: str, content: str) -> None:
    before = agent_digest(SPEC, folder, PATTERNS)
    (folder / name).write_text(content)
    assert agent_digest(SPEC, folder, PATTERNS) != before


def test_a_name_a_missing_file_and_the_right_to_run_count_too(folder: Path) -> None:
    digests = {agent_digest(SPEC, folder, PATTERNS)}
    (folder / "src/agent.py").chmod(0o755)
    digests.add(agent_digest(SPEC, folder, PATTERNS))
    (folder / "src/agent.py").rename(folder / "src/agent2.py")
    digests.add(agent_digest(SPEC, folder, PATTERNS))
    (folder / "src/deep/tools.py").unlink()
    digests.add(agent_digest(SPEC, folder, PATTERNS))
    assert len(digests) == 4


def test_other_files_do_not_count(folder: Path) -> None:
    before = agent_digest(SPEC, folder, PATTERNS)
    (folder / "src/notes.txt").write_text("other notes")
    (folder / "src/__pycache__").mkdir()
    (folder / "src/__pycache__/agent.py").write_text("compiled")
    assert agent_digest(SPEC, folder, PATTERNS) == before


@pytest.mark.parametrize("changing", [".passgate/runs/1/journal.jsonl", ".git/index", "src/__pycache__/agent.pyc"])
def test_what_runs_change_is_never_the_agent(folder: Path, changing: str) -> None:
    before = agent_digest(SPEC, folder, ["**/*"])
    (folder / changing).parent.mkdir(parents=True)
    (folder / changing).write_text("changed")
    assert agent_digest(SPEC, folder, ["**/*"]) == before


@pytest.mark.parametrize("change", [{"target": "my-agent --fast"}, {"model": "m"}, {"variables": {"A": "b"}}])
def test_the_spec_counts(folder: Path, change: dict[str, object]) -> None:
    other = SPEC.model_copy(update=change)
    assert agent_digest(other, folder, PATTERNS) != agent_digest(SPEC, folder, PATTERNS)
    assert agent_digest(other, folder, ()) != agent_digest(SPEC, folder, ())


def test_without_patterns_it_is_the_spec_alone(folder: Path) -> None:
    assert agent_digest(SPEC, folder, ()) == agent_digest(SPEC, folder / "src", ()) != ""


def test_a_pattern_that_matches_nothing_is_refused(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"no file of .* matches the pattern 'scr/\*\.py'.*`reuse\.agent_files`"):
        agent_digest(SPEC, folder, (*PATTERNS, "scr/*.py"))


@pytest.mark.parametrize("pattern", ["src", "src/deep", "__pycache__/*"])
def test_folders_are_no_files(folder: Path, pattern: str) -> None:
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__/a.pyc").write_text("")
    with pytest.raises(UsageError, match="no file of"):
        agent_digest(SPEC, folder, [pattern])


@pytest.mark.parametrize("pattern", ["../*", "src/../../*", "/etc/passwd"])
def test_a_pattern_that_leads_out_is_refused(folder: Path, pattern: str) -> None:
    (folder.parent / "outside.txt").write_text("")
    with pytest.raises(UsageError, match="leads out of"):
        agent_digest(SPEC, folder, [pattern])


@pytest.mark.parametrize("pattern", ["", ".", "a\0b", "["])
def test_what_is_no_pattern_is_refused(folder: Path, pattern: str) -> None:
    with pytest.raises(UsageError, match=r"`reuse\.agent_files`"):
        agent_digest(SPEC, folder, [pattern])


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


@pytest.mark.timeout(20)
def test_what_never_ends_is_no_file(folder: Path) -> None:
    os.mkfifo(folder / "src/pipe.py")
    assert agent_digest(SPEC, folder, PATTERNS)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_cannot_be_read_is_refused(folder: Path) -> None:
    (folder / "prompt.md").chmod(0)
    with pytest.raises(UsageError, match=r"prompt\.md is an agent's file and cannot be read"):
        agent_digest(SPEC, folder, PATTERNS)
