"""docs/history.ipynb: its cells run as they stand, and say what they say."""

import json
from pathlib import Path

import pytest
from bench.change_points import Planted
from bench.generated_history import write_generated

from tests.project import REPOSITORY

NOTEBOOK = json.loads((REPOSITORY / "docs" / "history.ipynb").read_text(encoding="utf-8"))
CELLS = [cell for cell in NOTEBOOK["cells"] if cell["cell_type"] == "code"]
REGRESSION = Planted("", "passed", 12, 50, 0.7)


def printed(cell: dict[str, list[dict[str, list[str]]]]) -> str:
    return "".join(line for output in cell["outputs"] for line in output["text"])


@pytest.mark.slow
def test_the_cells_print_what_the_notebook_keeps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_generated(str(tmp_path), 60, 11, (REGRESSION,))
    monkeypatch.setenv("PASSGATE_HISTORY_URL", str(tmp_path))
    names: dict[str, object] = {}
    for cell in CELLS:
        exec("".join(cell["source"]), names)
        assert capsys.readouterr().out == printed(cell)


def test_the_notebook_is_small_and_knows_no_machine() -> None:
    text = json.dumps(NOTEBOOK)
    assert len(text) < 20_000
    assert not any(place in text for place in ("/home/", "/tmp/", "/work/", "/root/", "Users"))
    assert [cell["execution_count"] for cell in CELLS] == list(range(1, len(CELLS) + 1))
