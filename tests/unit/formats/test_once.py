"""What must not grow with the size of a folder of tasks: how often each file is opened and parsed."""

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from bench.load_tasks import write_tasks
from jsonschema import Draft202012Validator

from passgate.tasks.formats.loading import load_folder, load_paths
from passgate.tasks.model.task import EvalTask
from tests.builders import SHIPPED

TASKS = 20
HEAD_EVENTS = 8
"""Of a file's events: as many as tell what kind of file it is."""
Load = Callable[[Path], tuple[EvalTask, ...]]
_opened: list[str] = []


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and str(arguments[0]).endswith(".yaml"):
        _opened.append(str(arguments[0]))


@pytest.fixture(scope="session", autouse=True)
def _hook() -> None:
    sys.addaudithook(_note)  # there is no way to take one off again


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tasks(tmp_path, TASKS, with_tools=True)
    return tmp_path / "suites"


@pytest.fixture(
    params=[lambda folder: load_paths([folder], SHIPPED).tasks, lambda folder: load_folder(folder, SHIPPED).tasks]
)
def load(request: pytest.FixtureRequest) -> Load:
    found: Load = request.param
    return found


def test_each_file_is_opened_and_parsed_once_but_for_its_first_key(
    folder: Path, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    composed: Counter[str] = Counter()
    heads: Counter[str] = Counter()
    compose, parse = yaml.compose, yaml.parse

    def counted_compose(text: str, **options: Any) -> Any:
        composed[text] += 1
        return compose(text, **options)

    def counted_parse(text: str, **options: Any) -> Iterator[Any]:
        for event in parse(text, **options):
            heads[text] += 1
            yield event

    monkeypatch.setattr(yaml, "compose", counted_compose)
    monkeypatch.setattr(yaml, "parse", counted_parse)
    _opened.clear()
    assert len(load(folder)) == TASKS
    counts = Counter(name for name in _opened if name.startswith(str(folder)))
    assert counts == dict.fromkeys(map(str, (folder / "golden").iterdir()), 1)
    texts = [file.read_text() for file in (folder / "golden").iterdir()]
    assert composed == dict.fromkeys(texts, 1)
    assert set(heads) == set(texts)
    assert max(heads.values()) <= HEAD_EVENTS


def test_the_schema_of_tasks_is_asked_only_for_what_is_wrong(
    folder: Path, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    iter_errors = Draft202012Validator.iter_errors

    def counted(self: Any, instance: Any, *arguments: Any) -> Any:
        if isinstance(instance, dict) and "task_id" in instance:
            asked.append(instance["task_id"])
        return iter_errors(self, instance, *arguments)

    monkeypatch.setattr(Draft202012Validator, "iter_errors", counted)
    load(folder)
    assert asked == []
    file = folder / "golden" / "t0001.yaml"
    file.write_text(f"{file.read_text()}gates: {{later: true}}\n")
    load(folder)
    assert asked[0] == "t0001"
