"""Where what judges lies in the repository."""

from dataclasses import replace
from pathlib import Path

import pytest

from passgate.tasks.integrity.judging_places import JudgingPlaces, What, judging_places, linked_places

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
