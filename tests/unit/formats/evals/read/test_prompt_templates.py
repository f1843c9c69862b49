"""Prompts of eval files."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.formats.evals.eval_files import Answer, read, write


def prompted(tmp_path: Path, prompts: str) -> Answer:
    write(tmp_path, {"p.yaml": f"prompts: {prompts}\ntests: [{{id: x}}]\n"})
    return read(tmp_path, "p.yaml")


def contents(answer: Answer) -> list[Any]:
    return [test.prompt and test.prompt.value for test in answer.tests]


def test_prompts_stand_in_the_file_or_in_others(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "prompts/a.txt": "One {{ q }}\n---\nTwo\n",
            "prompts/b.md": "Three\n---\nstill\n",
            "chat.json": '[{"role": "user", "content": "{{ q }}"}]',
            "chat.yaml": "- {role: user, content: Four}\n",
        },
    )
    answer = prompted(
        tmp_path,
        "[file://prompts/a.txt, file://prompts/*.md, {label: chat, file: ./chat.json}, [{role: user, content: Five}], "
        "./chat.yaml]",
    )
    assert answer.problems == []
    assert contents(answer) == [
        "One {{ q }}",
        "Two",
        "Three\n---\nstill",
        [{"role": "user", "content": "{{ q }}"}],
        [{"role": "user", "content": "Five"}],
        [{"role": "user", "content": "Four"}],
    ]
    labels = [test.prompt_label for test in answer.tests]
    assert labels == ["a-1", "a-2", "b", "chat-4", "prompt-5", "chat-6"]


@pytest.mark.parametrize(
    ("prompts", "problem"),
    [
        ("3", "p.yaml:1:10: prompts: expected a list of prompts"),
        ("[]", "p.yaml:1:10: prompts: expected a list of prompts"),
        ("[3]", "p.yaml:1:11: prompts[0]: expected a prompt"),
        ("[file://gone.txt]", "p.yaml:1:11: prompts[0]: no file 'gone.txt'"),
        ("[{label: a}]", "p.yaml:1:11: prompts[0]: expected one of: raw, prompt, file"),
        ("[{raw: a, prompt: b}]", "p.yaml:1:11: prompts[0]: expected one of: raw, prompt, file"),
        ("[{raw: a, labl: b}]", "p.yaml:1:20: prompts[0].labl: unknown key; did you mean 'label'?"),
        ("[{raw: 3}]", "p.yaml:1:17: prompts[0].raw: expected a text or a list of messages"),
        ("[file://map.yaml]", "map.yaml:1:1: expected a list of messages"),
        ("[file://folder]", "p.yaml:1:11: prompts[0]: this is no file"),
    ],
)
def test_what_is_no_prompt_is_a_problem(tmp_path: Path, prompts: str, problem: str) -> None:
    write(tmp_path, {"map.yaml": "a: 1\n", "folder/a": ""})
    answer = prompted(tmp_path, prompts)
    assert len(answer.problems) == 1
    assert answer.problems[0].startswith(problem)


def test_a_prompt_that_is_a_program_keeps_the_test_from_running(tmp_path: Path) -> None:
    write(tmp_path, {"make.py": ""})
    answer = prompted(tmp_path, "[file://make.py]")
    assert answer.problems == []
    assert len(answer.tests) == 1
    assert [str(problem) for problem in answer.complaints.cannot_run] == [
        "p.yaml:1:11: prompts[0]: 'file://make.py' is a program; passgate takes texts and messages"
    ]
