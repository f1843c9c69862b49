"""Assumed pass rates as a file."""

from pathlib import Path

import pytest

from passgate.tasks.formats.project_files import read_rates

TASKS = ("golden/a", "golden/b")


def read(folder: Path, text: str):
    file = folder / "rates.json"
    file.write_text(text)
    return read_rates(file, "rates.json", TASKS)


def problems(folder: Path, text: str) -> list[str]:
    found = read(folder, text)
    assert isinstance(found, list), found
    return list(map(str, found))


def test_a_mapping_names_some_tasks(tmp_path: Path) -> None:
    assert read(tmp_path, '{"golden/b": 1}') == {"golden/b": 1.0}


def test_a_list_has_them_in_their_order(tmp_path: Path) -> None:
    assert read(tmp_path, "[0, 0.98]") == {"golden/a": 0.0, "golden/b": 0.98}


def test_an_unknown_task_is_named_with_its_place_and_the_nearest_one(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, '{\n  "golden/bb": 0.9\n}')
    assert problem == "rates.json:2:3: golden/bb: the gate has no task 'golden/bb'; did you mean 'golden/b'?"


@pytest.mark.parametrize("value", ["1.01", "-0.1", '"0.9"', "true", "null", "[0.9]"])
def test_a_rate_is_a_number_from_0_to_1(tmp_path: Path, value: str) -> None:
    (problem,) = problems(tmp_path, f'{{"golden/a": 0.5,\n "golden/b": {value}}}')
    assert problem.startswith("rates.json:2:")
    assert "expected a rate from 0 to 1" in problem


def test_a_list_has_one_rate_for_each_task(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "[0.9]")
    assert "1 rates for the 2 tasks of the gate" in problem


def test_an_empty_mapping_says_nothing_and_is_told_so(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path, "\n{}")
    assert problem.startswith(
        'rates.json:2:1: the file gives no rate: expected a mapping as in {"golden/task_id": 0.98}'
    )


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ('{"golden/a": 0.9, "golden/b":\n', "1:30"),
        ('{"golden/a": 0.9,\n "golden/b": 0.8\n\n\n', "2:17"),
        ('{"golden/a" 0.9}', "1:13"),
    ],
)
def test_broken_json_is_told_as_json_where_the_name_says_that_it_is(tmp_path: Path, text: str, place: str) -> None:
    (problem,) = problems(tmp_path, text)
    assert problem.startswith(f"rates.json:{place}: not valid JSON: ")


def test_in_a_file_of_another_name_it_is_yaml(tmp_path: Path) -> None:
    file = tmp_path / "rates.yaml"
    file.write_text('{"golden/a": 0.9,')
    (problem,) = read_rates(file, "rates.yaml", TASKS)
    assert "not valid YAML" in str(problem)
    file.write_text("golden/a: 0.9  # as in June\n")
    assert read_rates(file, "rates.yaml", TASKS) == {"golden/a": 0.9}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"golden/a": 1, "golden/a": 1}', "a second time"),
        ("[" * 100_000, "nested deeper than 64 levels"),
        ('{"golden/a": ' + "9" * 5000 + "}", "more than 100 characters"),
    ],
)
def test_what_json_does_not_mind_is_told_too(tmp_path: Path, text: str, said: str) -> None:
    (problem,) = problems(tmp_path, text)
    assert said in problem


@pytest.mark.parametrize("text", ["0.99", '"x"', ""])
def test_anything_else_is_told_what_is_expected(tmp_path: Path, text: str) -> None:
    (problem,) = problems(tmp_path, text)
    assert "expected a mapping" in problem


def test_every_problem_is_told(tmp_path: Path) -> None:
    assert len(problems(tmp_path, '{"golden/x": 2, "golden/a": 3}')) == 3


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    found = read_rates(tmp_path / "none.json", "none.json", TASKS)
    assert isinstance(found, list)
    assert "none.json:1:1: cannot be read" in str(found[0])
