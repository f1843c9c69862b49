"""Which files are looked at, and what world a file belongs to."""

from pathlib import Path

import pytest

from passgate.tasks.formats.discover import files_below, root_of, suite_of, suites_folder_of
from passgate.tasks.model.task import Suite


def make(root: Path, *names: str) -> None:
    for name in names:
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("")


def test_files_of_every_kind_are_found_however_deep_but_no_shared_and_hidden_ones(tmp_path: Path) -> None:
    found = ["README.md", "adversarial/deep/c.yaml", "golden/a.json", "golden/b.yaml"]
    hidden = "_shared/a.yaml", "golden/_shared/a.yaml", ".git/a.yaml", ".a.yaml", "_a.yaml", "node_modules/a.yaml"
    make(tmp_path, *found, *hidden)
    assert sorted(str(file.relative_to(tmp_path)) for file in files_below(tmp_path)) == found


def test_folders_behind_links_are_not_followed(tmp_path: Path) -> None:
    make(tmp_path, "golden/a.yaml")
    (tmp_path / "golden/circle").symlink_to(tmp_path)
    (tmp_path / "golden/gone.yaml").symlink_to(tmp_path / "nowhere")
    (tmp_path / "folder.yaml").mkdir()
    assert list(files_below(tmp_path)) == [tmp_path / "golden/a.yaml"]


@pytest.mark.parametrize(
    ("file", "suite"),
    [
        ("suites/golden/a.yaml", Suite.GOLDEN),
        ("suites/golden/deep/a.yaml", Suite.GOLDEN),
        ("golden/adversarial/a.yaml", Suite.ADVERSARIAL),
        ("suites/other/a.yaml", None),
        ("suites/golden.yaml", None),
        ("golden", None),
    ],
)
def test_the_innermost_folder_with_a_suites_name_is_the_suite(file: str, suite: Suite | None) -> None:
    assert suite_of(Path(file)) is suite


def test_the_suites_folder_holds_the_suites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, "suites/golden/deep/a.yaml", "suites/golden/b.yaml", "lonely/c.yaml")
    suites = tmp_path / "suites"
    assert suites_folder_of(suites / "golden/deep/a.yaml") == suites
    assert suites_folder_of(suites / "golden/b.yaml") == suites
    assert suites_folder_of(suites / "golden") == suites
    assert suites_folder_of(tmp_path / "lonely/c.yaml") == tmp_path / "lonely"
    assert suites_folder_of(tmp_path / "lonely") == tmp_path / "lonely"
    make(tmp_path, "golden/a.yaml")
    monkeypatch.chdir(tmp_path / "golden")
    assert suites_folder_of(Path("a.yaml")) == tmp_path


def test_the_root_is_what_holds_the_suite_else_what_was_named(tmp_path: Path) -> None:
    make(tmp_path, "suites/golden/a.yaml", "evals/deep/b.yaml")
    suites, evals = tmp_path / "suites", tmp_path / "evals"
    assert root_of(suites / "golden/a.yaml", tmp_path) == suites
    assert root_of(suites / "golden/a.yaml", suites / "golden/a.yaml") == suites
    assert root_of(evals / "deep/b.yaml", evals) == evals
    assert root_of(evals / "deep/b.yaml", evals / "deep/b.yaml") == evals / "deep"
