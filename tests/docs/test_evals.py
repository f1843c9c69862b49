"""What docs/evals.md says of eval files, and the catalogue of schemas."""

import json
import re
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from passgate.tasks.formats.evals.compose import SuiteWords
from passgate.tasks.formats.evals.runtime import BLOCKS, STRATEGIES
from passgate.tasks.formats.evals.words import names_by_spelling
from passgate.tasks.formats.folder import TESTS_KEYS
from passgate.tasks.model.task import TaskFile
from tests.docs.keys import paths
from tests.docs.pages import PAGES, code_in, entries, listing, rows, section, terms
from tests.project import REPOSITORY

PAGE = "docs/evals.md"
CATALOGUE = REPOSITORY / "docs" / "schema-catalog.json"


def test_the_names_of_the_tests_and_of_what_stands_beside_prompts() -> None:
    said = code_in(next(row[0] for row in rows(section(PAGE, "What is read")) if "`evalcases`" in row[0]))
    assert said >= {*TESTS_KEYS}
    assert said <= {*names_by_spelling(SuiteWords)}


def test_where_the_keys_of_a_task_come_from() -> None:
    assert {*terms(listing(section(PAGE, "From a test to a task")))} <= {*paths(TaskFile)}


def test_strategies_and_their_metrics() -> None:
    documented = entries(listing(section(PAGE, "From a test to a task"), "The metrics"))
    metrics = {name: str(metric) for name, metric in STRATEGIES.items()}
    assert {entry.name: entry.note.strip("`") for entry in documented} == metrics


def test_where_a_file_says_how_it_is_run_and_what_it_asks_for_in_vain() -> None:
    assert {*BLOCKS} <= code_in(section(PAGE, "From a test to a task"))
    assert "preprocessors" in code_in(section(PAGE, "What cannot be run"))


def test_the_catalogue_has_every_schema_of_files_that_people_write_and_finds_them() -> None:
    schemas = json.loads(CATALOGUE.read_text(encoding="utf-8"))["schemas"]
    files = {(CATALOGUE.parent / entry["url"]).resolve().name for entry in schemas}
    # `task` says all that editors need, and more than the format does.
    written = {f"{name}.schema.json" for name in ("transcript", "trial", "summary", "verdict", "four_suite")}
    assert files == {file.name for file in (REPOSITORY / "schema").glob("*.json")} - written
    assert all({"name", "description", "fileMatch", "url"} == set(entry) for entry in schemas)
    patterns = {pattern.removeprefix("**/"): entry["url"] for entry in schemas for pattern in entry["fileMatch"]}
    for name, schema in (("gates.yaml", "gates"), ("suites/golden/a.yaml", "task"), ("EVAL.yaml", "eval")):
        found = {url for pattern, url in patterns.items() if fnmatchcase(name, pattern)}
        assert {PurePosixPath(url).name for url in found} == {f"{schema}.schema.json"}


def test_the_settings_of_editors_name_schemas() -> None:
    for name in re.findall(r"schema/(\w+\.schema\.json)", PAGES[PAGE]):
        assert (REPOSITORY / "schema" / name).is_file(), name
