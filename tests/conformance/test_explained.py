"""A difference is explained by the row that it stands in, and a grader that passgate lacks by nothing."""

import pytest

from tests.conformance.compare import TRIAL, Compared, Finding, types_of
from tests.conformance.explained import explanation_of
from tests.conformance.rows import Row


def difference(path: str, test_id: str, kind: str = TRIAL, dropped: tuple[str, ...] = ("composite",)) -> Compared:
    row = Row(version="v4.42.4", source="probes", path=path, test_id=test_id, score=0.9, status="ok")
    return Compared(Finding.DIFFERING, kind, row, "g: passgate has no such grader", dropped)


def test_a_dropped_grader_is_explained_in_its_own_row_alone() -> None:
    known = explanation_of(difference("probes/evals/composite.eval.yaml", "minimum"))
    assert known is not None
    assert known.name == "dropped aggregator"
    assert explanation_of(difference("probes/evals/composite.eval.yaml", "weights")) is None
    assert explanation_of(difference("examples/evals/composite.eval.yaml", "minimum")) is None
    assert explanation_of(difference("probes/evals/composite.eval.yaml", "minimum", dropped=())) is None


def test_an_agent_that_did_not_start_is_explained_in_its_own_row_alone() -> None:
    known = difference("probes/evals/exp_runs.eval.yaml", "mixed")
    assert explanation_of(known) is None
    crashed = known._replace(row=known.row.model_copy(update={"status": "execution_error"}))
    explained = explanation_of(crashed)
    assert explained is not None
    assert explained.name == "agent that did not start"
    elsewhere = crashed.row.model_copy(update={"path": "probes/evals/codegrader.eval.yaml"})
    assert explanation_of(crashed._replace(row=elsewhere)) is None


@pytest.mark.parametrize("kind", ["min-words", "contains", "composite"])
def test_a_grader_that_passgate_lacks_is_explained_by_nothing(kind: str) -> None:
    assert explanation_of(difference("probes/evals/composite.eval.yaml", "minimum", kind)) is None


def test_a_type_that_is_no_ones_is_a_program_of_the_repository() -> None:
    assert types_of("min-words") == types_of("not-min-words") == {"code_grader"}
    assert types_of("not-contains") == {"contains"}


def test_a_formula_that_differs_is_explained_of_its_own_graders_alone() -> None:
    path, test_id = "probes-head/evals/codegrader.eval.yaml", "over"
    for kind in ("script", "code-grader", TRIAL):
        known = explanation_of(difference(path, test_id, kind))
        assert known is not None
        assert known.name == "code_grader"
    assert explanation_of(difference(path, test_id, "contains")) is None
    assert explanation_of(difference(path, "ok")) is None
