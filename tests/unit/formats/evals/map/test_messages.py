"""Messages of eval files, in every form that they have."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.messages import ContentBlock, MessageCall, TaskMessage
from passgate.tasks.model.task import EvalTask
from tests.unit.formats.evals.eval_tasks import SOUND, Answer, read_file, read_test, read_tests


def asked(root: Path, value: Any, **files: str) -> Answer:
    """A test whose input this is."""
    named = {name.replace("_", "."): text for name, text in files.items()}
    return read_tests(root, {"id": "t", "input": value, "criteria": "c"}, files=named)


def test_a_text_or_one_user_message_is_what_the_user_says(tmp_path: Path) -> None:
    task = asked(tmp_path, "What is 2 + 2?").one
    assert (task.prompt, task.inputs, task.messages) == ("What is 2 + 2?", {"prompt": "What is 2 + 2?"}, ())
    for value in ({"role": "user", "content": "Hi"}, [{"role": "user", "content": "Hi"}]):
        assert asked(tmp_path, value).one.inputs == {"prompt": "Hi"}


def test_several_messages_stay_messages_and_a_mapping_without_a_role_is_a_payload(tmp_path: Path) -> None:
    said = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hi"}]
    task = asked(tmp_path, said).one
    assert task.inputs == {"messages": said}
    assert [(message.role, message.text) for message in task.messages] == [("system", "Be short."), ("user", "Hi")]
    assert task.prompt == "@[System]:\nBe short.\n\n@[User]:\nHi"
    (message,) = asked(tmp_path, {"ticket": {"title": "broken"}}).one.messages
    assert message == TaskMessage(
        role="user", content=(ContentBlock(type="json", value={"ticket": {"title": "broken"}}),)
    )


def test_blocks_hold_texts_files_images_and_json(tmp_path: Path) -> None:
    blocks = [
        {"type": "text", "value": "Review:"},
        {"type": "file", "value": "./code.js"},
        {"type": "image", "value": "./shot.png"},
        {"type": "json", "value": [1, None]},
        "a plain text",
    ]
    task = asked(tmp_path, [{"role": "user", "content": blocks}], code_js="let a = 1", shot_png="png").one
    (message,) = task.messages
    assert message.content == (
        ContentBlock(type="text", value="Review:"),
        ContentBlock(type="file", value="code.js", text="let a = 1"),
        ContentBlock(type="image", value="shot.png"),
        ContentBlock(type="json", value=[1, None]),
        ContentBlock(type="text", value="a plain text"),
    )
    assert task.inputs["messages"][0]["content"][1] == {"type": "file", "value": "code.js"}


def test_files_are_found_from_the_file_upwards_and_from_the_repository_on(tmp_path: Path) -> None:
    blocks = [{"type": "file", "value": name} for name in ("near.md", "../far.md", "/root.md", "above.md")]
    files = {"evals/deep/near.md": "1", "evals/far.md": "2", "root.md": "3", "evals/above.md": "4"}
    test = {"id": "t", "criteria": "c", "input": [{"role": "user", "content": blocks}]}
    task = read_tests(tmp_path, test, name="evals/deep/EVAL.yaml", files=files).one
    content: Any = task.messages[0].content
    assert [(block.value, block.text) for block in content] == [
        ("evals/deep/near.md", "1"),
        ("evals/far.md", "2"),
        ("root.md", "3"),
        ("evals/above.md", "4"),
    ]


def test_a_file_that_is_not_there_or_outside_of_the_repository(tmp_path: Path) -> None:
    answer = asked(tmp_path, [{"role": "user", "content": [{"type": "file", "value": "gone.md"}]}])
    assert answer.cannot_run == ["tests[0].input[0].content[0].value: no file 'gone.md'"]
    (reason,) = answer.one.cannot_run
    assert reason.startswith("EVAL.yaml:7:14: tests[0].input[0].content[0].value: no file")
    answer = asked(tmp_path, [{"role": "user", "content": [{"type": "file", "value": "../../etc/passwd"}]}])
    assert answer.problems == ["tests[0].input[0].content[0].value: '../../etc/passwd' leaves the repository"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(b"\xff\xfe", "'f.md' is not UTF-8 text", id="bytes"),
        pytest.param(b"x" * (1024 * 1024 + 1), "'f.md' is larger than 1 MiB", id="large"),
    ],
)
def test_a_file_that_is_no_text_of_bounded_size_keeps_the_test_from_running(
    tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "f.md").write_bytes(content)
    answer = asked(tmp_path, [{"role": "user", "content": [{"type": "file", "value": "f.md"}]}])
    assert answer.cannot_run == [f"tests[0].input[0].content[0].value: {message}"]


def test_an_image_in_the_file_itself_is_a_data_url(tmp_path: Path) -> None:
    base64 = "iVBORw0KGgo" + "A" * 293
    images = [
        {"type": "image", "value": value} for value in (base64, "data:image/gif;base64,R0", "https://x.org/a.png")
    ]
    content: Any = asked(tmp_path, [{"role": "user", "content": images}]).one.messages[0].content
    assert [block.value for block in content] == [
        f"data:image/png;base64,{base64}",
        "data:image/gif;base64,R0",
        "https://x.org/a.png",
    ]


def test_tool_calls_of_openai_and_of_agentv_are_the_same(tmp_path: Path) -> None:
    openai = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": '{"name": "Ann"}'}}
    agentv = {"tool": "find", "input": {"name": "Ann"}, "output": [1], "id": "c2", "duration_ms": 5, "status": "ok"}
    said = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "tool_calls": [openai, agentv]},
        {"role": "tool", "tool_call_id": "c1", "name": "find", "content": "Ann, 30"},
    ]
    _, assistant, tool = asked(tmp_path, said).one.messages
    assert assistant.tool_calls == (
        MessageCall(id="c1", tool="find", arguments={"name": "Ann"}),
        MessageCall(id="c2", tool="find", arguments={"name": "Ann"}, result=[1], duration_ms=5),
    )
    assert (tool.role, tool.tool_call_id, tool.name, tool.text) == ("tool", "c1", "find", "Ann, 30")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (42, "tests[0].input: expected a text, a message or messages, not 42"),
        (["Hi"], 'tests[0].input[0]: expected a message with `role` and `content`, not "Hi"'),
        (
            [{"role": "usr", "content": "Hi"}],
            "tests[0].input[0].role: \"usr\" is not one of the allowed values; did you mean 'user'?",
        ),
        ([{"role": "user"}], "tests[0].input[0]: a message needs `content` or `tool_calls`"),
        (
            [{"role": "user", "content": "Hi", "contnt": "x"}],
            "tests[0].input[0].contnt: unknown key; did you mean 'content'?",
        ),
        (
            [{"role": "user", "content": [{"type": "fil", "value": "x"}]}],
            "tests[0].input[0].content[0]: \"fil\" is no kind of content; did you mean 'file'?",
        ),
        (
            [{"role": "user", "content": [{"type": "file"}]}],
            "tests[0].input[0].content[0]: the key 'value' is missing",
        ),
    ],
)
def test_what_is_no_message_is_a_problem(tmp_path: Path, value: Any, problem: str) -> None:
    assert problem in asked(tmp_path, value).problems


@pytest.mark.parametrize("arguments", ["{", "[1]", '{"a": NaN}'])
def test_arguments_that_are_no_json_mapping_are_a_problem(tmp_path: Path, arguments: str) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": arguments}}
    said = [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [call]}]
    (problem,) = asked(tmp_path, said).problems
    assert problem.startswith("tests[0].input[1].tool_calls[0].function.arguments: arguments are a mapping")


def test_the_expected_answer_is_a_text_a_value_or_messages(tmp_path: Path) -> None:
    assert read_test(tmp_path, expected_output="Yes").one.expected_output == "Yes"
    assert read_test(tmp_path, expected_output=42).one.reference_answer == "42"
    assert read_test(tmp_path, expected_output={"name": "Ann", "role": "admin"}).one.expected_output == {
        "name": "Ann",
        "role": "admin",
    }
    said = [{"role": "assistant", "content": "one"}, {"role": "assistant", "content": {"a": 1}}]
    task = read_test(tmp_path, expected_output=said).one
    assert (task.expected_output, task.reference_answer) == (None, '{\n  "a": 1\n}')
    assert read_test(tmp_path, expected_messages=said).one.expected_messages == task.expected_messages


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


def test_two_spellings_of_input_and_answer_must_say_the_same(tmp_path: Path) -> None:
    messages = [{"role": "user", "content": "Hi"}]
    assert read_tests(tmp_path, BARE | {"input_messages": messages}).one.prompt == "Hi"
    assert read_tests(tmp_path, BARE | {"input": messages, "input_messages": messages}).one.prompt == "Hi"
    (problem,) = read_test(tmp_path, input_messages=messages).problems
    assert problem == "tests[0].input_messages: 'input' and 'input_messages' mean the same and differ; keep one of them"
    messages = [{"role": "assistant", "content": "Yes"}]
    assert read_test(tmp_path, expected_output="Yes", expected_messages=messages).problems == []
    (problem,) = read_test(tmp_path, expected_output="No", expected_messages=messages).problems
    assert problem == "tests[0].expected_messages: says something else than expected_output; keep one of them"


def test_attached_files_go_before_a_text_alone(tmp_path: Path) -> None:
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
    test = SOUND | {"input": [{"role": "user", "content": "Hi"}], "input_files": ["a.md"]}
    (problem,) = read_tests(tmp_path, test, files={"a.md": ""}).problems
    assert problem == "tests[0].input_files: `input_files` are for a text as input; write them as content blocks"


def test_a_test_without_input_has_the_prompt_file_among_its_files(tmp_path: Path) -> None:
    files = {"texts/PROMPT.md": "Do it.", "PROMPT.md": "Not this.", "log.txt": "L"}
    task = read_tests(tmp_path, BARE | {"input_files": ["./log.txt", "./texts/PROMPT.md"]}, files=files).one
    assert texts(task) == ['user: <file path="log.txt">\nL\n</file>\n\nDo it.']


def test_without_an_input_the_prompt_file_beside_the_eval_file_counts(tmp_path: Path) -> None:
    files = {"one/PROMPT.md": "Do it.", "one/log.txt": "L"}
    assert read_tests(tmp_path, BARE, name="one/EVAL.yaml", files=files).one.prompt == "Do it."
    task = read_tests(tmp_path, BARE | {"input_files": ["log.txt"]}, name="one/EVAL.yaml", files=files).one
    assert texts(task) == ['user: <file path="one/log.txt">\nL\n</file>\n\nDo it.']
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


def test_variables_are_filled_into_all_that_a_test_says_for_each_test_anew(tmp_path: Path) -> None:
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
    (problem,) = templated(tmp_path, {"q": "x"}, "{% if %}").problems
    assert problem.startswith("prompts[0]: not a template that can be rendered")


def test_a_prompt_may_be_messages_with_variables_or_one_variable(tmp_path: Path) -> None:
    chat = [{"role": "system", "content": "Help."}, {"role": "user", "content": "{{ a }} + {{ b }}?"}]
    for prompt in (chat, '[{"role": "system", "content": "Help."}, {"role": "user", "content": "{{ a }} + {{ b }}?"}]'):
        assert texts(templated(tmp_path, {"a": 1, "b": 2}, prompt).one) == ["system: Help.", "user: 1 + 2?"]
    said = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hi"}]
    assert texts(templated(tmp_path, {"input": said}, "{{ input }}").one) == ["system: Be short.", "user: Hi"]


def test_every_prompt_makes_a_test_of_its_own(tmp_path: Path) -> None:
    prompts = [{"label": "long", "raw": "Please: {{ q }}"}, {"label": "short", "raw": "{{ q }}"}]
    answer = templated(tmp_path, {"q": "x?"}, *prompts)
    assert answer.problems == []
    assert [(task.task_id, task.prompt) for task in answer.tasks] == [("t#long", "Please: x?"), ("t#short", "x?")]


def test_graders_and_the_expected_output_get_the_variables_there_but_not_what_a_judge_is_told(tmp_path: Path) -> None:
    said = [
        {"type": "contains", "value": "{{ vars.city }}"},
        {"type": "llm-rubric", "value": "{{ city }} in {{ output }}"},
    ]
    variables = {"q": "x?", "city": "Rome", "output": "no"}
    contains, judge = templated(tmp_path, variables, "{{ q }}", **{"assert": said}).one.graders
    assert contains.value == "Rome"
    assert judge.criteria == "Rome in {{ output }}"
    variables = {"q": "x?", "expected": {"answer": "Paris"}, "expected_output": "{{ vars.expected.answer }}"}
    assert templated(tmp_path, variables, "{{ q }}").one.expected_output == "Paris"
