"""Assumed pass rates as a file."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from passgate.tasks.formats.project_files import read_rates
from tests.unit.formats.reading import read_text

TASKS = ("golden/a", "golden/b")


def read(folder: Path, text: str) -> Mapping[str, float] | list[str]:
    return read_text(folder / "rates.json", text, lambda file, name: read_rates(file, name, TASKS))


def test_a_mapping_names_some_tasks_and_a_list_has_all_in_their_order(tmp_path: Path) -> None:
    assert read(tmp_path, '{"golden/b": 1}') == {"golden/b": 1.0}
    assert read(tmp_path, "[0, 0.98]") == {"golden/a": 0.0, "golden/b": 0.98}


def test_in_a_file_of_another_name_it_is_yaml(tmp_path: Path) -> None:
    file = tmp_path / "rates.yaml"
    file.write_text("golden/a: 0.9  # as in June\n")
    assert read_rates(file, "rates.yaml", TASKS) == {"golden/a": 0.9}
    file.write_text('{"golden/a": 0.9,')
    assert "not valid YAML" in str(read_rates(file, "rates.yaml", TASKS)[0])


@pytest.mark.parametrize("value", ["1.01", "-0.1", '"0.9"', "true", "null", "[0.9]"])
def test_a_rate_is_a_number_from_0_to_1(tmp_path: Path, value: str) -> None:
    (problem,) = read(tmp_path, f'{{"golden/a": 0.5,\n "golden/b": {value}}}')
    assert problem.startswith("2:")
    assert "expected a rate from 0 to 1" in problem


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{\n  "golden/bb": 0.9\n}', "2:3: golden/bb: the gate has no task 'golden/bb'; did you mean 'golden/b'?"),
        ("[0.9]", "1 rates for the 2 tasks of the gate"),
        ("\n{}", '2:1: the file gives no rate: expected a mapping as in {"golden/task_id": 0.98}'),
        ('{"golden/a": 0.9, "golden/b":\n', "1:30: not valid JSON: "),
        ('{"golden/a": 0.9,\n "golden/b": 0.8\n\n\n', "2:17: not valid JSON: "),
        ('{"golden/a" 0.9}', "1:13: not valid JSON: "),
        ('{"golden/a": 1, "golden/a": 1}', "duplicate key"),
        ("[" * 100_000, "nested deeper than 64 levels"),
        ('{"golden/a": ' + "9" * 5000 + "}", "more than 100 characters"),
        ("0.99", "expected a mapping"),
        ('"x"', "expected a mapping"),
        ("", "expected a mapping"),
    ],
)
def test_what_cannot_be_used_is_told(tmp_path: Path, text: str, says: str) -> None:
    (problem,) = read(tmp_path, text)
    assert says in problem


def test_a_file_that_is_not_there_and_every_problem_is_told(tmp_path: Path) -> None:
    found = read_rates(tmp_path / "none.json", "none.json", TASKS)
    assert isinstance(found, list)
    assert "none.json:1:1: cannot be read" in str(found[0])
    assert len(read(tmp_path, '{"golden/x": 2, "golden/a": 3}')) == 3
