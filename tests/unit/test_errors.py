"""Exceptions: their texts, their exit codes, and the way through a pickle."""

import pickle

import pytest

from passgate.tasks.errors import (
    ExitCode,
    InputError,
    MeasurementError,
    PassgateError,
    Problem,
    StorageError,
    UsageError,
    first_known,
)


def problem(file: str = "a.yaml", line: int = 1, column: int = 1, path: str = "", message: str = "wrong") -> Problem:
    return Problem(file=file, line=line, column=column, path=path, message=message)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UsageError("no such thing"), 2),
        (InputError([problem(), problem(line=2)]), 2),
        (StorageError("full"), 3),
        (MeasurementError("down", transient=True), 3),
        (MeasurementError("broken"), 3),
        (PassgateError("x"), 70),
    ],
)
def test_every_error_has_its_exit_code_also_after_a_pickle(error: PassgateError, code: int) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert (type(copy), str(copy), vars(copy)) == (type(error), str(error), vars(error))
    assert error.exit_code == copy.exit_code == code


def test_the_exit_codes() -> None:
    codes = {"PASS": 0, "FAIL": 1, "BAD_INPUT": 2, "INCONCLUSIVE": 3, "BUG": 70, "INTERRUPTED": 130}
    assert {code.name: int(code) for code in ExitCode} == codes


def test_a_problem_is_a_line_that_editors_understand_in_the_order_of_the_files() -> None:
    assert str(problem(line=3, column=7, path="graders[0]")) == "a.yaml:3:7: graders[0]: wrong"
    error = InputError([problem("b.yaml"), problem(line=10), problem(line=9, column=2), problem(line=9)])
    places = ["a.yaml:9:1", "a.yaml:9:2", "a.yaml:10:1", "b.yaml:1:1"]
    assert str(error).splitlines() == [f"{place}: wrong" for place in places]


def test_the_first_error_of_ours_is_found_among_errors_that_came_together() -> None:
    ours = UsageError("no such thing")
    together = ExceptionGroup("trials", [ValueError(), ExceptionGroup("more", [ours, StorageError("full")])])
    assert first_known(together) is first_known(ours) is ours
    assert first_known(ExceptionGroup("trials", [ValueError()])) is first_known(ValueError()) is None
