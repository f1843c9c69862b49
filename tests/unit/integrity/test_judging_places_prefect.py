"""Which settings of Prefect a change edits in the files that Prefect reads from the working folder."""

from pathlib import Path

import pytest

from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.judging_places import edited_prefect_settings
from tests.repositories import GitRepository


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    made = GitRepository(tmp_path.resolve() / "repository")
    made.write(".env", "KEY=1\nPREFECT_API_URL=http://127.0.0.1/api\n")
    made.write("pyproject.toml", '[project]\nname = "x"\n[tool.prefect.logging]\nlevel = "INFO"\n')
    made.commit()
    return made


def edited(repository: GitRepository, folder: str = ".") -> tuple[str, ...]:
    first = repository.git("rev-list", "--max-parents=0", "HEAD")
    with Checkout(repository.path / folder) as checkout:
        return edited_prefect_settings(checkout, first)


def test_other_settings_and_files_that_git_does_not_have_are_no_matter(repository: GitRepository) -> None:
    repository.write(".env", "KEY=2\nPREFECT_API_URL=http://127.0.0.1/api\n")
    repository.write("pyproject.toml", '[project]\nname = "y"\n[tool.prefect.logging]\nlevel = "INFO"\n')
    repository.write("prefect.toml", "[api]\n")
    assert edited(repository) == ()


@pytest.mark.parametrize(
    ("file", "text"),
    [
        (".env", "PREFECT_LOGGING_SETTINGS_PATH=evil.yml\n"),
        (".env", "prefect_logging_settings_path=evil.yml\n"),
        (".env", "export PREFECT_HOME=.\n"),
        (".env", "\udcff"),
        ("prefect.toml", '[logging]\nconfig_path = "evil.yml"\n'),
        ("prefect.toml", "not toml"),
        ("pyproject.toml", '[tool.prefect.logging]\nconfig_path = "evil.yml"\n'),
        ("pyproject.toml", "tool = 3\n"),
    ],
)
@pytest.mark.parametrize("committed", [True, False])
def test_a_setting_that_a_change_brings_is_found(
    repository: GitRepository, file: str, text: str, committed: bool
) -> None:
    (repository.path / file).write_bytes(text.encode("utf-8", "surrogateescape"))
    repository.git("add", "--all")
    if committed:
        repository.commit()
    assert edited(repository) == (file,)


def test_only_the_working_folder_counts_and_a_link_in_it(repository: GitRepository) -> None:
    repository.write("inner/.env", "PREFECT_HOME=x\n")
    repository.commit()
    assert (edited(repository), edited(repository, "inner")) == ((), (".env",))
    repository.write("evil.toml", '[logging]\nconfig_path = "evil.yml"\n')
    (repository.path / "prefect.toml").symlink_to("evil.toml")
    repository.commit()
    assert edited(repository) == ("prefect.toml",)
