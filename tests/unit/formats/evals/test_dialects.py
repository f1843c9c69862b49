"""A dialect of eval files is a file, which has its `EvalDialect`, and a line in `DIALECTS`."""

from dataclasses import replace
from pathlib import Path

import pytest

from passgate.tasks.formats.evals import dialects
from passgate.tasks.formats.evals.raw import EvalDialect
from passgate.tasks.formats.folder import file_kind
from tests.unit.formats.evals.eval_files import write
from tests.unit.formats.evals.eval_tasks import read_file


def _asks(keys):
    return "checks" in keys


# Its files say `checks`, and every check is made twice: as it is, and in capital letters.
CHECKS = EvalDialect(
    recognises=_asks,
    claims=_asks,
    file_keys={"checks": "tests"},
    test_keys={"called": "id", "ask": "input", "answer": "expected_output"},
    expand=lambda tests, _: [
        *tests,
        *(replace(one, node=one.node.with_value(one.node.value | {"id": f"{one.id}-loud"})) for one in tests),
    ],
)


@pytest.fixture(autouse=True)
def _registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialects, "DIALECTS", [*dialects.DIALECTS, CHECKS])


def test_files_of_a_new_dialect_are_found_and_read(tmp_path: Path) -> None:
    write(tmp_path, {"sums.yaml": "checks: [{called: sum, ask: 2 + 2?, answer: '4'}]\n"})
    assert file_kind(tmp_path / "sums.yaml") == "eval"
    answer = read_file(tmp_path, {"checks": [{"called": "sum", "ask": "2 + 2?", "answer": "4"}]}, name="sums.yaml")
    assert answer.problems == []
    assert answer.ids == ["sums/sum", "sums/sum-loud"]
    assert [(task.inputs, task.expected_output) for task in answer.tasks] == [({"prompt": "2 + 2?"}, "4")] * 2


def test_problems_stand_where_the_file_has_them(tmp_path: Path) -> None:
    answer = read_file(tmp_path, {"checks": [{"called": "sum", "ask": 7, "answer": "4"}]}, name="sums.yaml")
    assert answer.problems[0] == "checks[0].ask: expected a text, a message or messages, not 7"
