"""The attacks that docs/integrity.md lists, held against those that are tried."""

from collections.abc import Iterator

from tests.attacks import test_agents, test_changes, test_repositories, test_runs
from tests.docs.pages import entries, section


def tried() -> Iterator[str]:
    """The names of the attacks: of tests, or of the cases of a table that have names."""
    for module in (test_agents, test_changes, test_repositories, test_runs):
        for name, test in vars(module).items():
            if name.startswith("test_"):
                tables = [mark.kwargs.get("ids") for mark in getattr(test, "pytestmark", ())]
                yield from next((table for table in tables if isinstance(table, dict)), [name.removeprefix("test_")])


def test_every_attack_is_listed_with_what_it_tries_and_every_listed_one_is_tried() -> None:
    listed = entries(section("docs/integrity.md", "Attacks"))
    assert sorted(entry.name for entry in listed) == sorted(tried())
    assert all(entry.meaning for entry in listed)
