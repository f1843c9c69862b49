"""Where links in a repository lead."""

from pathlib import Path

import pytest

from passgate.tasks.integrity.judging_places import linked_places


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "repository"
    for name in ("suites/golden/a.yaml", "shared/b.yaml", "shared/deep/c.yaml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    return folder


def link(root: Path, name: str, target: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).symlink_to(target)


def test_without_links_nothing_is_led_to(root: Path) -> None:
    assert linked_places(root, ["suites", "gates.yaml", "gone/x"]) == set()


def test_every_link_on_the_way_counts(root: Path) -> None:
    link(root, "suites/golden/b.yaml", "../../second/b.yaml")
    link(root, "second", "third")
    link(root, "third", "shared")
    assert linked_places(root, ["suites"]) == {"suites/golden/b.yaml", "second", "third", "shared/b.yaml"}
    assert linked_places(root, ["second/b.yaml"]) == {"second", "third", "shared/b.yaml"}


def test_a_folder_that_is_led_to_may_have_links_again(root: Path) -> None:
    link(root, "suites/all", "../shared")
    link(root, "shared/more", "../more")
    link(root, "more/d.yaml", str(root / "gone.yaml"))
    places = {"suites/all", "shared", "shared/more", "more", "more/d.yaml", "gone.yaml"}
    assert linked_places(root, ["suites"]) == places


def test_circles_and_ways_out_end(root: Path, tmp_path: Path) -> None:
    link(root, "suites/a", "b")
    link(root, "suites/b", "a")
    link(root, "suites/up", "..")
    link(root, "suites/out", str(tmp_path))
    assert linked_places(root, ["suites"]) >= {"suites/a", "suites/b", "suites/up", "suites/out", "."}


def test_some_places_can_be_left_out(root: Path) -> None:
    link(root, "suites/box/files/agent", "../../../shared")
    link(root, "suites/node_modules/x", "../../shared")
    assert linked_places(root, ["suites"], ["suites/box/files"]) == set()
