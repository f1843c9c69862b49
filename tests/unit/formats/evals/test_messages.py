"""Messages of eval files, in every form that they have."""

from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.model.messages import ContentBlock, MessageCall, TaskMessage
from passgate.tasks.model.task import EvalTask
from tests.unit.formats.evals.eval_tasks import SOUND, Answer, read_file, read_test, read_tests

BARE = {"id": "t", "criteria": "c"}


def asked(root: Path, value: Any, **files: str) -> Answer:
    """A test whose input this is."""
    return read_tests(
        root, BARE | {"input": value}, files={name.replace("_", "."): text for name, text in files.items()}
    )


def attached(root: Path, *names: str, kind: str = "file", **options: Any) -> Answer:
    """A test whose message has these files."""
    blocks = [{"type": kind, "value": name} for name in names]
    return read_tests(root, BARE | {"input": [{"role": "user", "content": blocks}]}, **options)


def texts(task: EvalTask) -> list[str]:
    return [f"{message.role}: {message.text}" for message in task.messages]


def test_a_text_or_one_user_message_is_what_the_user_says(tmp_path: Path) -> None:
    task = asked(tmp_path, "What is 2 + 2?").one
    assert (task.prompt, task.inputs, task.messages) == ("What is 2 + 2?", {"prompt": "What is 2 + 2?"}, ())
    for value in ({"role": "user", "content": "Hi"}, [{"role": "user", "content": "Hi"}]):
        assert asked(tmp_path, value).one.inputs == {"prompt": "Hi"}


def test_several_messages_stay_messages_and_a_mapping_without_a_role_is_a_payload(tmp_path: Path) -> None:
    said = [{"role": "system", "content": "Be short."}, {"role": "user", "content": "Hi"}]
    task = asked(tmp_path, said).one
    assert (task.inputs, texts(task)) == ({"messages": said}, ["system: Be short.", "user: Hi"])
    assert task.prompt == "@[System]:\nBe short.\n\n@[User]:\nHi"
    payload = {"ticket": {"title": "broken"}}
    (message,) = asked(tmp_path, payload).one.messages
    assert message == TaskMessage(role="user", content=(ContentBlock(type="json", value=payload),))


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
    files = {"evals/deep/near.md": "1", "evals/far.md": "2", "root.md": "3", "evals/above.md": "4"}
    names = "near.md", "../far.md", "/root.md", "above.md"
    content: Any = attached(tmp_path, *names, name="evals/deep/EVAL.yaml", files=files).one.messages[0].content
    assert [(block.value, block.text) for block in content] == list(files.items())


def test_a_file_that_is_not_there_or_outside_of_the_repository(tmp_path: Path) -> None:
    answer = attached(tmp_path, "gone.md")
    assert answer.cannot_run == ["tests[0].input[0].content[0].value: no file 'gone.md'"]
    (reason,) = answer.one.cannot_run
    assert reason.startswith("EVAL.yaml:8:14: tests[0].input[0].content[0].value: no file")
    assert attached(tmp_path, "../../etc/passwd").problems == [
        "tests[0].input[0].content[0].value: '../../etc/passwd' leaves the repository"
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [(b"\xff\xfe", "'f.md' is not UTF-8 text"), (b"x" * (1024 * 1024 + 1), "'f.md' is larger than 1 MiB")],
    ids=["bytes", "large"],
)
def test_a_file_that_is_no_text_of_bounded_size_cannot_run(tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "f.md").write_bytes(content)
    assert attached(tmp_path, "f.md").cannot_run == [f"tests[0].input[0].content[0].value: {message}"]


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


def calls(arguments: str) -> list[dict[str, Any]]:
    call = {"id": "c", "type": "function", "function": {"name": "find", "arguments": arguments}}
    return [{"role": "user", "content": "x"}, {"role": "assistant", "tool_calls": [call]}]


NO_MAPPING = "[1].tool_calls[0].function.arguments: arguments are a mapping"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (42, ": expected a text, a message or messages, not 42"),
        (["Hi"], '[0]: expected a message with `role` and `content`, not "Hi"'),
        ([{"role": "usr", "content": "Hi"}], '[0].role: "usr" is not one of the allowed values; did you mean'),
        ([{"role": "user"}], "[0]: a message needs `content` or `tool_calls`"),
        ([{"role": "user", "content": "Hi", "contnt": "x"}], "[0].contnt: unknown key; did you mean 'content'?"),
        (
            [{"role": "user", "content": [{"type": "fil"}]}],
            '[0].content[0]: "fil" is not a kind of content; did you mean',
        ),
        ([{"role": "user", "content": [{"type": "file"}]}], "[0].content[0]: the key 'value' is missing"),
        (calls("{"), NO_MAPPING),
        (calls("[1]"), NO_MAPPING),
        (calls('{"a": NaN}'), NO_MAPPING),
    ],
)
def test_what_is_no_message_is_a_problem(tmp_path: Path, value: Any, problem: str) -> None:
    assert asked(tmp_path, value).problems[0].startswith(f"tests[0].input{problem}")


def test_the_expected_answer_is_a_text_a_value_or_messages(tmp_path: Path) -> None:
    for value in ("Yes", {"name": "Ann", "role": "admin"}):
        assert read_test(tmp_path, expected_output=value).one.expected_output == value
    assert read_test(tmp_path, expected_output=42).one.reference_answer == "42"
    said = [{"role": "assistant", "content": "one"}, {"role": "assistant", "content": {"a": 1}}]
    task = read_test(tmp_path, expected_output=said).one
    assert (task.expected_output, task.reference_answer) == (None, '{\n  "a": 1\n}')
    assert read_test(tmp_path, expected_messages=said).one.expected_messages == task.expected_messages


def test_the_input_of_a_file_goes_before_that_of_every_test(tmp_path: Path) -> None:
    alone = SOUND | {"id": "alone", "execution": {"skip_defaults": True}}
    first, second = read_tests(tmp_path, SOUND, alone, top={"input": "Be short."}).tasks
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
    messages = SOUND | {"input": [{"role": "user", "content": "Hi"}]}
    of_file, own, alone, of_messages = read_tests(
        tmp_path,
        SOUND,
        SOUND | {"id": "own", "input_files": ["./b.md"]},
        SOUND | {"id": "alone", "execution": {"skip_defaults": True}},
        messages | {"id": "messages"},
        top={"input_files": ["./a.md"]},
        files={"a.md": "A", "b.md": "B"},
    ).tasks
    assert texts(of_file) == ['user: <file path="a.md">\nA\n</file>\n\nHi']
    assert texts(own) == ['user: <file path="b.md">\nB\n</file>\n\nHi']
    assert (alone.prompt, of_messages.prompt) == ("Hi", "Hi")
    assert read_tests(tmp_path, messages | {"input_files": ["a.md"]}).problems == [
        "tests[0].input_files: `input_files` are for a text as input; write them as content blocks"
    ]


@pytest.mark.parametrize(
    ("input_files", "asks"),
    [
        (["./log.txt", "./texts/PROMPT.md"], 'user: <file path="one/log.txt">\nL\n</file>\n\nDo this.'),
        (["log.txt"], 'user: <file path="one/log.txt">\nL\n</file>\n\nDo it.'),
    ],
)
def test_without_an_input_a_prompt_file_counts(tmp_path: Path, input_files: list[str], asks: str) -> None:
    files = {"one/texts/PROMPT.md": "Do this.", "one/PROMPT.md": "Do it.", "one/log.txt": "L"}
    tests = BARE | {"input_files": input_files}, BARE | {"id": "u"}, SOUND | {"id": "v"}
    first, second, third = read_tests(tmp_path, *tests, name="one/EVAL.yaml", files=files).tasks
    assert (texts(first), second.prompt, third.prompt) == ([asks], "Do it.", "Hi")


def test_the_folder_of_a_case_has_a_prompt_file_and_a_workspace(tmp_path: Path) -> None:
    files = {"case.yaml": "criteria: It is fixed.", "PROMPT.md": "Fix it.", "workspace/a.txt": ""}
    top = {"tests": "./cases/", "workspace": {"template": "./shared", "repos": [{"repo": "a/b"}]}}
    (tmp_path / "shared").mkdir()
    task = read_file(tmp_path, top, files={f"cases/fix/{name}": text for name, text in files.items()}).one
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


def templated(root: Path, variables: dict[str, Any], *prompts: Any, **test: Any) -> Answer:
    graders = {"assert": [{"type": "contains", "value": "x"}]}
    return read_tests(root, {"id": "t", "vars": variables, **graders, **test}, top={"prompts": list(prompts)})


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


def test_graders_and_the_expected_output_get_the_variables_there_but_not_what_a_judge_is_told(tmp_path: Path) -> None:
    said = [
        {"type": "contains", "value": "{{ vars.city }}"},
        {"type": "llm-rubric", "value": "{{ city }} in {{ output }}"},
    ]
    variables = {"q": "x?", "city": "Rome", "output": "no", "expected_output": "{{ vars.city }}!"}
    prompts = {"label": "long", "raw": "Please: {{ q }}"}, {"label": "short", "raw": "{{ q }}"}
    answer = templated(tmp_path, variables, *prompts, **{"assert": said})
    assert answer.problems == []
    assert [(task.task_id, task.prompt) for task in answer.tasks] == [("t#long", "Please: x?"), ("t#short", "x?")]
    for task in answer.tasks:
        contains, judge = task.graders
        assert (contains.value, judge.criteria, task.expected_output) == ("Rome", "Rome in {{ output }}", "Rome!")
