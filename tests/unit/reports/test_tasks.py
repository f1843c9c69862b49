"""Tasks as text."""

import yaml
from tests.builders import a_task

from passgate.tasks.reports.tasks import tasks_as_yaml


def test_yaml_leaves_out_what_goes_without_saying() -> None:
    (task,) = yaml.safe_load_all(tasks_as_yaml([a_task(description="", tags=("b", "a"))]))
    assert task == {
        "task_id": "say-yes",
        "suite": "golden",
        "tags": ["b", "a"],
        "inputs": {"prompt": "Say yes."},
        "budgets": {"max_steps": 20, "max_seconds": 20.0},
        "k": 3,
        "metric": "pass^k",
        "graders": [{"type": "output_check", "contains": ["yes"]}],
        "tracked_metrics": ["cost"],
        "gates": ["ci_merge", "nightly", "release_candidate"],
        "file": "suites/golden/say-yes.yaml",
    }


def test_messages_are_shown_once_with_what_their_files_held() -> None:
    blocks = [{"type": "file", "value": "a.txt", "text": "A"}]
    inputs = {"messages": [{"role": "user", "content": [{"type": "file", "value": "a.txt"}]}], "files": ["x"]}
    task = a_task(inputs=inputs, messages=[{"role": "user", "content": blocks}])
    (shown,) = yaml.safe_load_all(tasks_as_yaml([task]))
    assert shown["inputs"] == {"files": ["x"], "messages": [{"role": "user", "content": blocks}]}
    assert "messages" not in shown


def test_every_task_is_a_document() -> None:
    tasks = [a_task(), a_task(task_id="other")]
    assert [task["task_id"] for task in yaml.safe_load_all(tasks_as_yaml(tasks))] == ["say-yes", "other"]


def test_texts_of_several_lines_are_blocks_and_what_is_not_seen_is_escaped() -> None:
    text = tasks_as_yaml([a_task(inputs={"prompt": "one\ntwo\n", "odd": "\x1b[31m\u200b\ntab\t"})])
    assert "prompt: |\n    one\n    two\n" in text
    assert "\x1b" not in text
    assert "\u200b" not in text
    (task,) = yaml.safe_load_all(text)
    assert task["inputs"]["odd"] == "\x1b[31m\u200b\ntab\t"
