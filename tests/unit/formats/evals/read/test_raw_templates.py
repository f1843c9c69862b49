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


def test_every_test_goes_with_every_prompt(tmp_path: Path) -> None:
    write(tmp_path, {"p.yaml": """\
        prompts:
          - {id: a, label: Long, prompt: "Tell {{ q }}"}
          - "{{ q }}"
        tests: [{id: x, vars: {q: 1}}, {id: y, vars: {q: 2}}]
        """})  # fmt: skip
    answer = read(tmp_path, "p.yaml")
    assert answer.problems == []
    found = [(test.node.value["id"], test.prompt_label, test.prompt and test.prompt.value) for test in answer.tests]
    assert found == [
        ("x", "Long", "Tell {{ q }}"),
        ("x", "prompt-2", "{{ q }}"),
        ("y", "Long", "Tell {{ q }}"),
        ("y", "prompt-2", "{{ q }}"),
    ]


def test_a_single_prompt_needs_no_label(tmp_path: Path) -> None:
    write(tmp_path, {"p.yaml": "prompts: ['{{ q }}']\ntests: [{id: x}]\n"})
    (test,) = read(tmp_path, "p.yaml").tests
    assert test.prompt_label is None
    assert test.prompt is not None
    assert str(test.prompt.problem("here")) == "p.yaml:1:11: prompts[0]: here"
    write(tmp_path, {"make.py": ""})
    answer = prompted(tmp_path, "[file://make.py]")
    assert answer.problems == []
    assert len(answer.tests) == 1
    assert [str(problem) for problem in answer.complaints.cannot_run] == [
        "p.yaml:1:11: prompts[0]: 'file://make.py' is a program; passgate takes texts and messages"
    ]


def test_a_test_may_choose_its_prompts_and_imported_suites_keep_their_own(tmp_path: Path) -> None:
    write(tmp_path, {"p.yaml": """\
        prompts: [{label: one, raw: a}, {label: two, raw: b}]
        tests: [{id: x, prompts: [two]}, {id: y, prompts: [tow]}]
        """})  # fmt: skip
    answer = read(tmp_path, "p.yaml")
    assert next((test.node.value["id"], test.prompt_label) for test in answer.tests) == ("x", "two")
    assert answer.problems == ["p.yaml:2:52: tests[1].prompts[0]: no prompt of this name; did you mean 'two'?"]
    write(
        tmp_path,
        {
            "p.yaml": "prompts: [outer, more]\ntests: [{include: ./c.yaml, type: suite}, {id: own}]\n",
            "c.yaml": "prompts: [inner]\ntests: [{id: c}]\n",
        },
    )
    answer = read(tmp_path, "p.yaml")
    assert [(test.node.value["id"], test.prompt and test.prompt.value) for test in answer.tests] == [
        ("c", "inner"),
        ("own", "outer"),
        ("own", "more"),
    ]


def test_tests_without_an_id_are_named_by_what_they_are_about(tmp_path: Path) -> None:
    write(tmp_path, {"p.yaml": "prompts: [a]\ntests: [{description: 'Says Hello!'}, {vars: {}}]\n"})
    assert read(tmp_path, "p.yaml").ids == ["says-hello", "test-2"]
    write(tmp_path, {"q.yaml": "tests: [{description: 'Says Hello!'}]\n"})
    assert read(tmp_path, "q.yaml").ids == [None]


DEFAULTS = """\
prompts: [a]
default_test:
  vars: {tone: kind, who: all}
  options: {provider: p}
  threshold: 0.5
  assert:
    - {type: contains, value: default}
tests:
  - id: x
    vars: {who: me}
    assert:
      - {type: contains, value: own}
  - {id: y}
"""


def test_defaults_are_put_under_each_test(tmp_path: Path) -> None:
    write(tmp_path, {"p.yaml": DEFAULTS})
    answer = read(tmp_path, "p.yaml")
    assert answer.values == [
        {
            "id": "x",
            "vars": {"tone": "kind", "who": "me"},
            "assert": [{"type": "contains", "value": "default"}, {"type": "contains", "value": "own"}],
            "options": {"provider": "p"},
            "threshold": 0.5,
        },
        {
            "id": "y",
            "vars": {"tone": "kind", "who": "all"},
            "assert": [{"type": "contains", "value": "default"}],
            "options": {"provider": "p"},
            "threshold": 0.5,
        },
    ]


def test_every_part_of_a_merged_test_stands_where_it_was_written(tmp_path: Path) -> None:
    write(tmp_path, {"p.yaml": DEFAULTS})
    node = read(tmp_path, "p.yaml").tests[0].node
    graders = node.child("assert")
    assert graders.child(0).child("value").problem("w").line == 7
    assert graders.child(1).child("value").problem("w").line == 12
    assert str(graders.child(1).problem("w")) == "p.yaml:12:9: tests[0].assert[0]: w"
    assert node.child("vars").child("tone").problem("w").line == 3
    assert node.child("vars").child("who").problem("w").line == 10
    assert node.child("threshold").problem("w").line == 5
    assert node.problem("w").line == 9


def test_defaults_may_stand_in_a_file(tmp_path: Path) -> None:
    write(tmp_path, {"p.yaml": "default_test: file://./d.yaml\ntests: [{id: x}]\n", "d.yaml": "threshold: 0.5\n"})
    answer = read(tmp_path, "p.yaml")
    assert (answer.problems, answer.values) == ([], [{"id": "x", "threshold": 0.5}])
    assert answer.tests[0].node.child("threshold").problem("w").file == "d.yaml"
    write(tmp_path, {"d.yaml": "- 1\n"})
    assert read(tmp_path, "p.yaml").problems == ["d.yaml:1:1: expected a mapping with what every test has"]


SCENARIO = """\
- description: languages
  config:
    - {id: spanish, vars: {language: Spanish, hello: hola}}
    - vars: {language: French, hello: bonjour}
  tests:
    - vars: {phrase: hello}
      assert: [{type: equals, value: "{{ hello }}"}]
    - {id: thanks, vars: {phrase: thanks}}
"""


def test_scenarios_are_each_configuration_with_each_test(tmp_path: Path) -> None:
    write(tmp_path, {"p.yaml": "prompts: [a]\nscenarios: [file://s/*.yaml]\n", "s/one.yaml": SCENARIO})
    answer = read(tmp_path, "p.yaml")
    assert answer.problems == []
    assert answer.ids == [
        "spanish__scenario_test_1",
        "spanish__thanks",
        "scenario_1_2__scenario_test_1",
        "scenario_1_2__thanks",
    ]
    assert answer.values[0]["vars"] == {"language": "Spanish", "hello": "hola", "phrase": "hello"}
    assert str(answer.tests[0].node.child("vars").child("hello").problem("w")).startswith("s/one.yaml:3:54: ")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("scenarios: [{config: [{}], test: []}]", "p.yaml:1:28: scenarios[0].test: unknown key; known: config"),
        ("scenarios: [{config: [{}], tests: []}]", "p.yaml:1:35: scenarios[0].tests: expected a list of tests"),
        ("scenarios: [{tests: [{}]}]", "p.yaml:1:13: scenarios[0]: expected a list of mappings with `vars`"),
        ("scenarios: [{config: [3], tests: [{}]}]", "p.yaml:1:23: scenarios[0].config[0]: expected a mapping"),
        ("scenarios: [3]", "p.yaml:1:13: scenarios[0]: expected a scenario"),
        ("scenarios: 3", "p.yaml:1:12: scenarios: expected a list of scenarios"),
        ("scenarios: ['file://gone/*.yaml']", "p.yaml:1:13: scenarios[0]: no file matches 'gone/*.yaml'"),
        ("scenarios: ['file://broken.yaml']", "broken.yaml:2:1: not valid YAML: "),
        ("default_test: [1]\ntests: [{id: x}]", "p.yaml:1:15: default_test: expected a mapping"),
    ],
)
def test_what_cannot_be_used_is_a_problem(tmp_path: Path, content: str, problem: str) -> None:
    write(tmp_path, {"p.yaml": content + "\n", "broken.yaml": "[\n"})
    problems = read(tmp_path, "p.yaml").problems
    assert problems
    assert problems[0].startswith(problem)
