"""The files that decide a verdict: their places, the targets of links, the edits of a change."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from passgate.tasks.errors import UsageError
from passgate.tasks.integrity.checkout import Checkout
from passgate.tasks.integrity.judging_places import (
    JudgingPlaces,
    What,
    edited_prefect_settings,
    find_edits,
    judging_places,
    linked_places,
)
from tests.repositories import GitRepository

BESIDE: dict[str, What] = {"prices.yaml": "prices"}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "repository"
    (folder / "evals/suites").mkdir(parents=True)
    return folder


def places(root: Path, working_folder: Path, suites: str = "suites", gates: str = "gates.yaml") -> JudgingPlaces:
    found = judging_places(root, working_folder, suites, gates, BESIDE)
    assert found is not None
    return found


def test_at_the_top_of_the_repository(root: Path) -> None:
    assert places(root, root, "evals/suites/") == JudgingPlaces(
        suites="evals/suites",
        gates="gates.yaml",
        what={"evals/suites": "tasks and graders", "gates.yaml": "policy", "prices.yaml": "prices"},
    )


@pytest.mark.parametrize("gates", ["../policies/gates.yaml", "{root}/policies/gates.yaml"])
def test_from_a_folder_inside_of_it(root: Path, gates: str) -> None:
    found = places(root, root / "evals", gates=gates.format(root=root))
    assert found == JudgingPlaces(
        suites="evals/suites",
        gates="policies/gates.yaml",
        what={"evals/suites": "tasks and graders", "policies/gates.yaml": "policy", "policies/prices.yaml": "prices"},
    )


def test_the_repository_may_be_the_suites_folder(root: Path) -> None:
    found = places(root, root, ".")
    assert (found.suites, found.what["."], found.what["gates.yaml"]) == (".", "tasks and graders", "policy")


def test_where_a_link_leads_judges_too(root: Path) -> None:
    (root / "suites").symlink_to("evals/suites")
    found = places(root, root)
    assert found.suites == "suites"
    assert {name for name, what in found.what.items() if what == "tasks and graders"} == {"suites", "evals/suites"}


def test_a_working_folder_behind_a_link_is_the_folder_itself(root: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(root)
    assert places(root, tmp_path / "link/evals") == places(root, root / "evals")
    named_by_link = places(root, root, str(tmp_path / "link/evals/suites"))
    assert named_by_link == places(root, root, "evals/suites")


@pytest.mark.parametrize(("suites", "gates"), [("../suites", "gates.yaml"), ("evals/suites", "/elsewhere/gates.yaml")])
def test_outside_of_the_repository_nothing_is_known(root: Path, suites: str, gates: str) -> None:
    assert judging_places(root, root, suites, gates, BESIDE) is None


def test_of_a_link_that_leads_out_only_the_link_judges(root: Path, tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (root / "suites").symlink_to(tmp_path / "shared")
    found = places(root, root)
    assert (found.suites, {*found.what}) == ("suites", {"suites", "gates.yaml", "prices.yaml"})
    assert found.leads_out
    (root / "suites").unlink()
    assert places(root, root) == replace(found, leads_out=False)


def test_graders_judge_wherever_in_the_repository_they_lie(root: Path) -> None:
    found = places(root, root / "evals")
    more = found.add(["../../graders/a.py", "golden/../../b.py", "../../../elsewhere.py"], above=[".tool/prompts"])
    assert set(more.what) - set(found.what) == {
        "graders/a.py",
        "evals/b.py",
        "evals/.tool/prompts",
        ".tool/prompts",
    }
    assert more.what["graders/a.py"] == "tasks and graders"
    assert found.add(["..", "../..", "golden/../.."], above=[]) == found, "they hold the suites folder"
    again = found.add(["../gates.yaml"], above=[])
    assert again.what["evals/gates.yaml"] == "policy"


@pytest.fixture
def linked(root: Path) -> Path:
    for name in ("suites/golden/a.yaml", "shared/b.yaml", "shared/deep/c.yaml"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).touch()
    return root


def link(root: Path, name: str, target: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).symlink_to(target)


def test_without_links_nothing_is_led_to(linked: Path) -> None:
    assert linked_places(linked, ["suites", "gates.yaml", "gone/x"]) == set()


def test_every_link_on_the_way_counts(linked: Path) -> None:
    link(linked, "suites/golden/b.yaml", "../../second/b.yaml")
    link(linked, "second", "third")
    link(linked, "third", "shared")
    assert linked_places(linked, ["suites"]) == {"suites/golden/b.yaml", "second", "third", "shared/b.yaml"}
    assert linked_places(linked, ["second/b.yaml"]) == {"second", "third", "shared/b.yaml"}


def test_a_folder_that_is_led_to_may_have_links_again(linked: Path) -> None:
    link(linked, "suites/all", "../shared")
    link(linked, "shared/more", "../more")
    link(linked, "more/d.yaml", str(linked / "gone.yaml"))
    places = {"suites/all", "shared", "shared/more", "more", "more/d.yaml", "gone.yaml"}
    assert linked_places(linked, ["suites"]) == places


def test_circles_and_ways_out_end(linked: Path, tmp_path: Path) -> None:
    link(linked, "suites/a", "b")
    link(linked, "suites/b", "a")
    link(linked, "suites/up", "..")
    link(linked, "suites/out", str(tmp_path))
    assert linked_places(linked, ["suites"]) >= {"suites/a", "suites/b", "suites/up", "suites/out", "."}


def test_some_places_can_be_left_out(linked: Path) -> None:
    link(linked, "suites/box/files/agent", "../../../shared")
    link(linked, "suites/node_modules/x", "../../shared")
    assert linked_places(linked, ["suites"], ["suites/box/files"]) == set()


JUDGING: dict[str, What] = {
    "suites": "tasks and graders",
    "gates.yaml": "policy",
    "prices.yaml": "prices",
    "quarantine.yaml": "quarantine",
    "baseline.yaml": "baseline pins",
}


@pytest.fixture
def repository(tmp_path: Path) -> GitRepository:
    """A committed gate, and an agent that is not among what judges."""
    made = GitRepository(tmp_path / "repository")
    for name in ("suites/golden/a.yaml", "suites/golden/b.yaml", "gates.yaml", "agent.py", "agents.yaml"):
        made.write(name)
    made.commit()
    return made


def edits_of(repository: GitRepository, judging: Mapping[str, What] = JUDGING) -> list[tuple[str, str, str]]:
    edits = find_edits(Checkout(repository.path), repository.git("rev-parse", "main"), judging)
    return [(edit.path, edit.kind, edit.what) for edit in edits]


def test_neither_the_agent_nor_what_is_ignored_or_only_touched_is_an_edit(repository: GitRepository) -> None:
    for name in ("agent.py", "agents.yaml", "prices/prices.yaml"):
        repository.write(name, "y")
    repository.write(".gitignore", "*.log\n")
    repository.write("suites/golden/run.log")
    repository.write("suites/_shared/hidden/__pycache__/test.pyc")
    (repository.path / "gates.yaml").touch()
    repository.write("suites/golden/a.yaml")
    assert edits_of(repository) == []


@pytest.mark.parametrize("how", ["committed", "staged", "in the working tree"])
def test_edits_count_wherever_they_are(repository: GitRepository, how: str) -> None:
    repository.branch("change")
    repository.write("suites/golden/a.yaml", "y")
    (repository.path / "suites/golden/b.yaml").unlink()
    repository.write("suites/golden/new.yaml")
    repository.write("suites/_shared/hidden/test.py")
    for name in ("gates", "prices", "quarantine", "baseline"):
        repository.write(f"{name}.yaml", "y")
    if how == "committed":
        repository.commit()
    elif how == "staged":
        repository.git("add", "--all")
    assert edits_of(repository) == [
        ("baseline.yaml", "added", "baseline pins"),
        ("gates.yaml", "changed", "policy"),
        ("prices.yaml", "added", "prices"),
        ("quarantine.yaml", "added", "quarantine"),
        ("suites/_shared/hidden/test.py", "added", "tasks and graders"),
        ("suites/golden/a.yaml", "changed", "tasks and graders"),
        ("suites/golden/b.yaml", "deleted", "tasks and graders"),
        ("suites/golden/new.yaml", "added", "tasks and graders"),
    ]


def test_an_edit_that_was_taken_back_is_none(repository: GitRepository) -> None:
    repository.branch("change")
    repository.write("gates.yaml", "y")
    repository.commit()
    repository.write("gates.yaml")
    assert edits_of(repository) == []


def test_a_moved_file_is_deleted_and_added_and_one_that_is_no_program_any_more_changed(
    repository: GitRepository,
) -> None:
    repository.git("mv", "suites/golden/a.yaml", "suites/golden/z.yaml")
    (repository.path / "suites/golden/b.yaml").chmod(0o755)
    assert edits_of(repository) == [
        ("suites/golden/a.yaml", "deleted", "tasks and graders"),
        ("suites/golden/b.yaml", "changed", "tasks and graders"),
        ("suites/golden/z.yaml", "added", "tasks and graders"),
    ]


def test_a_file_that_git_has_forgotten_is_still_the_same_file(repository: GitRepository) -> None:
    repository.git("rm", "--quiet", "--cached", "gates.yaml")
    repository.write("gates.yaml", "y")
    assert edits_of(repository) == [("gates.yaml", "changed", "policy")]


def test_names_of_any_kind(repository: GitRepository) -> None:
    repository.write("suites/golden/naïve *?[x] \n\t.yaml")
    (repository.path / "suites/golden").joinpath("bad\udcff.yaml").write_text("")
    assert edits_of(repository) == [
        ("suites/golden/bad�.yaml", "added", "tasks and graders"),
        ("suites/golden/naïve *?[x] \n\t.yaml", "added", "tasks and graders"),
    ]


def test_a_name_with_a_pattern_in_it_is_that_name(repository: GitRepository) -> None:
    repository.write("suites/golden/a.yaml", "y")
    assert edits_of(repository, {"suit*": "tasks and graders"}) == []
    assert edits_of(repository, {}) == []


def test_the_innermost_place_says_what_a_file_is(repository: GitRepository) -> None:
    repository.write("suites/gates.yaml", "y")
    repository.write("agent.py", "y")
    assert edits_of(repository, {".": "tasks and graders", "suites/gates.yaml": "policy"}) == [
        ("agent.py", "changed", "tasks and graders"),
        ("suites/gates.yaml", "added", "policy"),
    ]


def test_the_repositorys_own_settings_run_nothing_and_hide_nothing(repository: GitRepository, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    script = tmp_path / "script.sh"
    script.write_text(f"#!/bin/sh\ntouch {mark}\n")
    script.chmod(0o755)
    for setting in ("core.fsmonitor", "diff.external", "diff.x.command", "diff.x.textconv"):
        repository.git("config", setting, str(script))
    repository.git("config", "diff.renames", "copies")
    repository.write(".gitattributes", "* diff=x\n")
    repository.write("gates.yaml", "y")
    assert edits_of(repository) == [("gates.yaml", "changed", "policy")]
    assert not mark.exists()


def test_where_git_cannot_compare_the_run_is_refused(repository: GitRepository) -> None:
    """Else it would pass for a change without edits."""
    with pytest.raises(UsageError, match="git cannot list what this change edits of the files that judge it: fatal"):
        find_edits(Checkout(repository.path), "0" * 40, JUDGING)


@pytest.fixture
def settings(tmp_path: Path) -> GitRepository:
    made = GitRepository(tmp_path.resolve() / "repository")
    made.write(".env", "KEY=1\nPREFECT_API_URL=http://127.0.0.1/api\n")
    made.write("pyproject.toml", '[project]\nname = "x"\n[tool.prefect.logging]\nlevel = "INFO"\n')
    made.commit()
    return made


def edited(settings: GitRepository, folder: str = ".") -> tuple[str, ...]:
    first = settings.git("rev-list", "--max-parents=0", "HEAD")
    with Checkout(settings.path / folder) as checkout:
        return edited_prefect_settings(checkout, first)


def test_other_settings_and_files_that_git_does_not_have_are_no_matter(settings: GitRepository) -> None:
    settings.write(".env", "KEY=2\nPREFECT_API_URL=http://127.0.0.1/api\n")
    settings.write("pyproject.toml", '[project]\nname = "y"\n[tool.prefect.logging]\nlevel = "INFO"\n')
    settings.write("prefect.toml", "[api]\n")
    assert edited(settings) == ()


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
    settings: GitRepository, file: str, text: str, committed: bool
) -> None:
    (settings.path / file).write_bytes(text.encode("utf-8", "surrogateescape"))
    settings.git("add", "--all")
    if committed:
        settings.commit()
    assert edited(settings) == (file,)


def test_only_the_working_folder_counts_and_a_link_in_it(settings: GitRepository) -> None:
    settings.write("inner/.env", "PREFECT_HOME=x\n")
    settings.commit()
    assert (edited(settings), edited(settings, "inner")) == ((), (".env",))
    settings.write("evil.toml", '[logging]\nconfig_path = "evil.yml"\n')
    (settings.path / "prefect.toml").symlink_to("evil.toml")
    settings.commit()
    assert edited(settings) == ("prefect.toml",)
