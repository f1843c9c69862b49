"""Which commit a change is compared with, by a gates file that it may not have edited."""

from pathlib import Path

import pytest

from passgate.tasks.formats.loading import policy_of_run
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.merge_base import request_base
from passgate.tasks.model.run import Base, RunRequest
from tests.repositories import GitRepository
from tests.unit.changes import gate_on_main, gates


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> GitRepository:
    """A gate on main that names the branch `develop`; `feature`, which is checked out, comes from there."""
    made = gate_on_main(tmp_path / "repository", monkeypatch)
    made.write("gates.yaml", gates(rest="baseline: {branch: develop}\n"))
    made.commit()
    made.git("branch", "--force", "main")
    made.branch("develop")
    made.commit("Later")
    made.branch("feature")
    made.write("gates.yaml", gates(rest="baseline: {branch: feature}\n"))
    made.commit("Look away")
    return made


def found(repository: GitRepository, **request: str) -> Base:
    asked = RunRequest(**request)
    with Checkout(repository.path) as checkout:
        return request_base(checkout, asked, policy_of_run(repository.path / asked.gates)[0])


def test_the_gates_file_of_the_default_branch_names_the_branch(repository: GitRepository) -> None:
    base = found(repository)
    assert (base.commit, base.note) == (repository.git("rev-parse", "develop"), "")


def test_a_gates_file_that_is_a_link_is_read_too(repository: GitRepository) -> None:
    repository.checkout("main")
    repository.git("mv", "gates.yaml", "real.yaml")
    (repository.path / "gates.yaml").symlink_to("real.yaml")
    repository.commit()
    repository.git("branch", "--force", "develop")
    repository.branch("another")
    (repository.path / "gates.yaml").unlink()
    repository.write("gates.yaml", gates(rest="baseline: {branch: another}\n"))
    repository.commit()
    assert found(repository).commit == repository.git("rev-parse", "develop")


@pytest.mark.parametrize("text", ["broken: [", None])
def test_without_a_word_of_it_the_usual_branch_counts(repository: GitRepository, text: str | None) -> None:
    repository.checkout("main")
    (repository.path / "gates.yaml").unlink()
    if text is not None:
        repository.write("gates.yaml", text)
    base = repository.commit()
    repository.branch("another")
    repository.write("gates.yaml", gates(rest="baseline: {branch: another}\n"))
    repository.commit()
    answer = found(repository)
    assert (answer.commit, answer.note) == (base, "")


def test_a_gates_file_outside_of_the_repository_is_taken_at_its_word(repository: GitRepository, tmp_path: Path) -> None:
    (tmp_path / "gates.yaml").write_text(gates(rest="baseline: {branch: feature}\n"))
    assert found(repository, gates="../gates.yaml").commit == repository.git("rev-parse", "feature")
