"""The pages as such: links, pictures, length, and nothing in them that is of one machine."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from passgate import __version__
from passgate.tasks.formats.loading import load_tasks
from passgate.tasks.model.task import GateName
from tests.builders import SHIPPED
from tests.docs.pages import PAGES, README, dead_links, section, terms
from tests.project import REPOSITORY

HOSTS = {
    *("arxiv.org", "docs.prefect.io", "github.com", "keepachangelog.com", "semver.org"),
    *("api.anthropic.com", "api.openai.com", "desk.example", "models.example", "search.example"),
    *("generativelanguage.googleapis.com", "NAME.openai.azure.com"),
}


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    assert dead_links(page, PAGES[page]) == []
    hosts = set(re.findall(r"https?://([\w.-]+)", PAGES[page]))
    assert hosts - HOSTS <= {"127.0.0.1"}


@pytest.mark.parametrize("page", PAGES)
def test_nothing_is_of_one_machine(page: str) -> None:
    assert re.findall(r"(?:/root|/home/|/Users/|/work/|/opt/|/mnt/|/tmp/)\S*", PAGES[page]) == []
    assert re.findall(r"(?i)pypi\.org|pythonhosted|index-url|artifactory", PAGES[page]) == []


@pytest.mark.parametrize("picture", sorted((REPOSITORY / "docs" / "images").glob("*.svg")), ids=lambda path: path.name)
def test_pictures_are_shown_and_load_nothing(picture: Path) -> None:
    text = picture.read_text(encoding="utf-8")
    ElementTree.fromstring(text)
    assert set(re.findall(r"https?://[^\"'\s<)]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"@import|@font-face|<script|href=", text)
    assert any(f"images/{picture.name})" in text for text in PAGES.values())


def test_the_readme_is_short_and_every_page_is_in_it() -> None:
    assert len(README.splitlines()) <= 120
    for page in PAGES:
        assert page == "README.md" or f"]({page})" in README, page
    assert f"## [{__version__}]" in PAGES["CHANGELOG.md"]


def test_the_shipped_suites_are_as_the_pages_count_them() -> None:
    tasks = load_tasks(REPOSITORY / "suites", SHIPPED)
    counted = {
        f"| `{suite}` | {sum(task.suite is suite for task in tasks)} | {policy.k} | `{policy.metric}` |"
        for suite, policy in SHIPPED.suites.items()
    }
    for row in counted:
        assert row in PAGES["docs/suites.md"]
    merge = [
        task
        for task in tasks
        if GateName.CI_MERGE in task.gates and task.suite in SHIPPED.gates[GateName.CI_MERGE].suites
    ]
    assert f"{len(merge)} tasks, {sum(task.k for task in merge)} trials" in README
    assert f"{len(tasks)} tasks" in PAGES["CHANGELOG.md"]
    for suite, policy in SHIPPED.suites.items():
        seconds = policy.budgets.max_seconds
        row = f"| `{suite}` | {policy.k} | `{policy.metric}` | {policy.max_steps} | {seconds:g} |"
        assert row in section("docs/tasks.md", "Suites")


@pytest.mark.parametrize("folder", ["suites", "plain/suites"])
def test_the_first_suites_are_as_the_readme_counts_them(folder: str) -> None:
    gate = SHIPPED.gates[GateName.CI_MERGE]
    tasks = load_tasks(REPOSITORY / "flows/cli/scaffold" / folder, SHIPPED)
    assert sorted(task.suite for task in tasks) == sorted(SHIPPED.suites), "one for each suite"
    merge = [task for task in tasks if task.suite in gate.suites]
    assert len(merge) == 3
    assert f"runs three of them, {sum(task.k for task in merge)} trials in total" in " ".join(README.split())


def test_what_is_wrong_is_noticed() -> None:
    assert dead_links("README.md", "[a](nowhere.md) [b](docs/tasks.md#nowhere) [c](docs/tasks.md#sandboxes)") == [
        "nowhere.md",
        "docs/tasks.md#nowhere",
    ]
    assert terms("| `a` | b |\n| `c` and `d` | `e` |\n\n- `f`, `g` (1): h\n  i\n  - `j`: k") == ["a", "f", "g", "j"]
