"""What the agent is asked, wherever a file says it."""

from pathlib import Path
from typing import Any

from passgate.tasks.model.task import EvalTask
from tests.unit.formats.evals.eval_tasks import SOUND, read_file, read_test, read_tests

BARE = {"id": "t", "criteria": "c"}


def texts(task: EvalTask) -> list[str]:
    return [f"{message.role}: {message.text}" for message in task.messages]


def test_the_input_of_a_file_goes_before_that_of_every_test(tmp_path: Path) -> None:
    top = {"input": "Be short."}
    first, second = read_tests(
        tmp_path, SOUND, SOUND | {"id": "alone", "execution": {"skip_defaults": True}}, top=top
    ).tasks
    assert texts(first) == ["user: Be short.", "user: Hi"]
    assert (second.prompt, second.messages) == ("Hi", ())


def test_two_spellings_of_the_input_must_say_the_same(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "Hi"}]
    assert read_tests(tmp_path, BARE | {"input_messages": messages}).one.prompt == "Hi"
    assert read_tests(tmp_path, BARE | {"input": messages, "input_messages": messages}).one.prompt == "Hi"
    (problem,) = read_test(tmp_path, input_messages=messages).problems
    assert problem == "tests[0].input_messages: 'input' and 'input_messages' mean the same and differ; keep one of them"


def test_attached_files_go_before_a_text(tmp_path: Path) -> None:
    files = {"a.md": "A", "b.md": "B"}
    top = {"input_files": ["./a.md"]}
    of_file, own, alone, messages = read_tests(
        tmp_path,
        SOUND,
        SOUND | {"id": "own", "input_files": ["./b.md"]},
        SOUND | {"id": "alone", "execution": {"skip_defaults": True}},
        SOUND | {"id": "messages", "input": [{"role": "user", "content": "Hi"}]},
        top=top,
        files=files,
    ).tasks
    assert texts(of_file) == ['user: <file path="a.md">\nA\n</file>\n\nHi']
    assert texts(own) == ['user: <file path="b.md">\nB\n</file>\n\nHi']
    assert (alone.prompt, messages.prompt) == ("Hi", "Hi")


def test_own_files_beside_messages_are_not_dropped_but_a_problem(tmp_path: Path) -> None:
    test = SOUND | {"input": [{"role": "user", "content": "Hi"}], "input_files": ["a.md"]}
    (problem,) = read_tests(tmp_path, test, files={"a.md": ""}).problems
    assert problem == "tests[0].input_files: `input_files` are for a text as input; write them as content blocks"


def test_a_test_without_input_has_the_prompt_file_among_its_files(tmp_path: Path) -> None:
    files = {"texts/PROMPT.md": "Do it.", "PROMPT.md": "Not this.", "log.txt": "L"}
    task = read_tests(tmp_path, BARE | {"input_files": ["./log.txt", "./texts/PROMPT.md"]}, files=files).one
    assert texts(task) == ['user: <file path="log.txt">\nL\n</file>\n\nDo it.']


def test_else_the_prompt_file_beside_the_eval_file(tmp_path: Path) -> None:
    files = {"one/PROMPT.md": "Do it.", "one/log.txt": "L"}
    assert read_tests(tmp_path, BARE, name="one/EVAL.yaml", files=files).one.prompt == "Do it."
    task = read_tests(tmp_path, BARE | {"input_files": ["log.txt"]}, name="one/EVAL.yaml", files=files).one
    assert texts(task) == ['user: <file path="one/log.txt">\nL\n</file>\n\nDo it.']


def test_an_input_goes_before_every_prompt_file(tmp_path: Path) -> None:
    assert read_test(tmp_path).one.prompt == "Hi"
    assert read_tests(tmp_path, SOUND, files={"PROMPT.md": "Not this."}).one.prompt == "Hi"


def test_the_folder_of_a_case_has_a_prompt_file_and_a_workspace(tmp_path: Path) -> None:
    files = {
        "cases/fix/case.yaml": "criteria: It is fixed.",
        "cases/fix/PROMPT.md": "Fix it.",
        "cases/fix/workspace/a.txt": "",
    }
    top = {"tests": "./cases/", "workspace": {"template": "./shared", "repos": [{"repo": "a/b"}]}}
    (tmp_path / "shared").mkdir()
    task = read_file(tmp_path, top, files=files).one
    assert (task.task_id, task.prompt) == ("fix", "Fix it.")
    assert task.workspace is not None
    assert (task.workspace.template, len(task.workspace.repos)) == ("cases/fix/workspace", 1)


def test_variables_are_filled_into_all_that_a_test_says(tmp_path: Path) -> None:
    test = {
        "id": "t",
        "vars": {"who": {"name": "Ann"}, "n": 3, "file": "a.md", "answer": {"a": [1]}},
        "input": "Hello {{ who.name }}, {{unknown}}",
        "criteria": "Greets {{who.name}} {{n}} times",
        "expected_output": "{{ answer }}",
        "input_files": ["./{{file}}"],
    }
    task = read_tests(tmp_path, test, top={"input": "To {{who.name}}"}, files={"a.md": "A"}).one
    assert texts(task) == ["user: To Ann", 'user: <file path="a.md">\nA\n</file>\n\nHello Ann, {{unknown}}']
    assert (task.criteria, task.expected_output) == ("Greets Ann 3 times", {"a": [1]})


def test_the_input_of_a_file_is_filled_for_each_test_anew(tmp_path: Path) -> None:
    tests = [SOUND | {"id": name, "vars": {"name": name}} for name in ("ann", "bob")]
    first, second = read_tests(tmp_path, *tests, top={"input": "For {{name}}"}).tasks
    assert (texts(first)[0], texts(second)[0]) == ("user: For ann", "user: For bob")


def templated(root: Path, variables: dict[str, Any], *prompts: Any, **test: Any):
    return read_tests(
        root,
        {"id": "t", "vars": variables, "assert": [{"type": "contains", "value": "x"}], **test},
        top={"prompts": list(prompts)},
    )


def test_a_prompt_template_gets_the_variables(tmp_path: Path) -> None:
    variables = {"name": "Ann", "question": "Who is {{ vars.name }}?"}
    assert templated(tmp_path, variables, "{{ question }} {{ missing }}!").one.prompt == "Who is Ann? !"


def test_a_prompt_that_is_one_variable_may_be_messages(tmp_path: Path) -> None:
    said = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hi"}]
    assert texts(templated(tmp_path, {"input": said}, "{{ input }}").one) == ["system: Be short.", "user: Hi"]


def test_a_prompt_may_be_messages_with_variables(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "Help."}, {"role": "user", "content": "{{ a }} + {{ b }}?"}]
    for prompt in (chat, '[{"role": "system", "content": "Help."}, {"role": "user", "content": "{{ a }} + {{ b }}?"}]'):
        assert texts(templated(tmp_path, {"a": 1, "b": 2}, prompt).one) == ["system: Help.", "user: 1 + 2?"]


def test_every_prompt_makes_a_test_of_its_own(tmp_path: Path) -> None:
    prompts = [{"label": "long", "raw": "Please: {{ q }}"}, {"label": "short", "raw": "{{ q }}"}]
    answer = templated(tmp_path, {"q": "x?"}, *prompts)
    assert answer.problems == []
    assert [(task.task_id, task.prompt) for task in answer.tasks] == [("t#long", "Please: x?"), ("t#short", "x?")]


def test_the_expected_output_is_a_variable_there(tmp_path: Path) -> None:
    variables = {"q": "x?", "expected": {"answer": "Paris"}, "expected_output": "{{ vars.expected.answer }}"}
    assert templated(tmp_path, variables, "{{ q }}").one.expected_output == "Paris"


def test_graders_get_the_variables_there_but_not_what_a_judge_is_told(tmp_path: Path) -> None:
    said = [
        {"type": "contains", "value": "{{ vars.city }}"},
        {"type": "llm-rubric", "value": "{{ city }} in {{ output }}"},
    ]
    variables = {"q": "x?", "city": "Rome", "output": "no"}
    contains, judge = templated(tmp_path, variables, "{{ q }}", **{"assert": said}).one.graders
    assert contains.value == "Rome"
    assert judge.criteria == "Rome in {{ output }}"


def test_a_template_that_cannot_be_rendered_is_a_problem(tmp_path: Path) -> None:
    (problem,) = templated(tmp_path, {"q": "x"}, "{% if %}").problems
    assert problem.startswith("prompts[0]: not a template that can be rendered")
