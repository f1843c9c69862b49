"""What kind of file a file is."""

from pathlib import Path

import pytest

from passgate.tasks.formats.evals.read.folder import kind_of

TASK = "task_id: a\nsuite: golden\n"


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.yaml", TASK, "task"),
        ("a.yaml", "tags: [x]\ndescription: {task: 1}\ntask_id: a\ntests: []\n", "task"),
        ("dataset.yaml", TASK, "task"),
        ("a.yaml", "name: x\ntests:\n  - {id: a}\n", "eval"),
        ("a.yml", "{name: x, evalcases: []}", "eval"),
        ("a.yaml", "name: x\ntests: [\n", "eval"),
        ("a.yaml", "prompts: [a]\nproviders: [b]\n", "eval"),
        ("a.yaml", "prompts: [a]\n", None),
        ("a.eval.yaml", "name: x\n", "eval"),
        ("a.EVAL.yaml", "name: x\n", "eval"),
        ("EVAL.yml", "", "eval"),
        ("eval.yaml", "[", "eval"),
        ("dataset-two.yaml", "name: x\n", "eval"),
        ("a.eval.json", "{}", "eval"),
        ("package.json", '{"tests": []}', None),
        ("a.yaml", "- {id: x, input: hi}\n", "cases"),
        ("a.yaml", "id: x\ncriteria: hi\n", "cases"),
        ("case.yaml", "criteria: hi\n", "cases"),
        ("a.yaml", "criteria: hi\n", None),
        ("a.yaml", "- {id: openai, label: x}\n", None),
        ("a.yaml", "- config: []\n  tests: []\n", None),
        ("a.yaml", "- [{id: x, input: y}]\n", None),
        ("a.yaml", "nested:\n  task_id: a\n  tests: []\n", None),
        ("a.yaml", "hello\n", None),
        ("a.yaml", "", None),
        ("a.jsonl", '{"id": "x", "criteria": "y"}\n', "cases"),
        ("a.jsonl", 'broken\n\n{"id": "x", "input": "y"}\n', "cases"),
        ("a.jsonl", '{"timestamp": "x", "test_id": "y", "input": "z"}\n', None),
        ("a.jsonl", '[1]\n3\n{"id": 1}\n', None),
        ("a.jsonl", "[" * 100_000, None),
        ("README.md", "tests: []", None),
    ],
)
def test_a_file_is_told_by_its_content_and_then_by_its_name(
    tmp_path: Path, name: str, content: str, kind: str | None
) -> None:
    (tmp_path / name).write_text(content)
    assert kind_of(tmp_path / name) == kind


def test_a_file_that_cannot_be_read_is_told_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.eval.yaml").write_bytes(b"tests: \xff")
    assert kind_of(tmp_path / "a.eval.yaml") == "eval"
    assert kind_of(tmp_path / "gone.yaml") is None
    assert kind_of(tmp_path / "gone.jsonl") is None
