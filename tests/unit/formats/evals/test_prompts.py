from pathlib import Path
from typing import Any

import pytest

from tests.unit.formats.evals.eval_files import Answer, read_first, write


def prompted(tmp_path: Path, prompts: str, tests: str = "[{id: x}]") -> Answer:
    return read_first(tmp_path, {"p.yaml": f"prompts: {prompts}\ntests: {tests}\n"})


def asked(answer: Answer) -> list[tuple[Any, Any, Any]]:
    """Which test is asked what, with the prompt's label."""
    return [(test.id, test.prompt_label, test.prompt and test.prompt.value) for test in answer.tests]


def test_prompts_stand_in_the_file_or_in_others(tmp_path: Path) -> None:
    files = {
        "prompts/a.txt": "One {{ q }}\n---\nTwo\n",
        "prompts/b.md": "Three\n---\nstill\n",
        "chat.json": '[{"role": "user", "content": "{{ q }}"}]',
        "chat.yaml": "- {role: user, content: Four}\n",
    }
    write(tmp_path, files)
    own = "{label: chat, file: ./chat.json}, [{role: user, content: Five}]"
    answer = prompted(tmp_path, f"[file://prompts/a.txt, file://prompts/*.md, {own}, ./chat.yaml]")
    assert answer.problems == []
    assert asked(answer) == [
        ("x", "a-1", "One {{ q }}"),
        ("x", "a-2", "Two"),
        ("x", "b", "Three\n---\nstill"),
        ("x", "chat-4", [{"role": "user", "content": "{{ q }}"}]),
        ("x", "prompt-5", [{"role": "user", "content": "Five"}]),
        ("x", "chat-6", [{"role": "user", "content": "Four"}]),
    ]


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("prompts: 3", "p.yaml:1:10: prompts: expected a list of prompts"),
        ("prompts: []", "p.yaml:1:10: prompts: expected a list of prompts"),
        ("prompts: [3]", "p.yaml:1:11: prompts[0]: expected a prompt"),
        ("prompts: [file://gone.txt]", "p.yaml:1:11: prompts[0]: no file 'gone.txt'"),
        ("prompts: [{label: a}]", "p.yaml:1:11: prompts[0]: expected one of: raw, prompt, file"),
        ("prompts: [{raw: a, prompt: b}]", "p.yaml:1:11: prompts[0]: expected one of: raw, prompt, file"),
        ("prompts: [{raw: a, labl: b}]", "p.yaml:1:20: prompts[0].labl: unknown key; did you mean 'label'?"),
        ("prompts: [{raw: 3}]", "p.yaml:1:17: prompts[0].raw: expected a text or a list of messages"),
        ("prompts: [file://map.yaml]", "map.yaml:1:1: expected a list of messages"),
        ("prompts: [file://folder]", "p.yaml:1:11: prompts[0]: not a file"),
        ("scenarios: [{config: [{}], test: []}]", "p.yaml:1:28: scenarios[0].test: unknown key; known: config"),
        ("scenarios: [{config: [{}], tests: []}]", "p.yaml:1:35: scenarios[0].tests: expected a list of tests"),
        ("scenarios: [{tests: [{}]}]", "p.yaml:1:13: scenarios[0]: expected a list of mappings with `vars`"),
        ("scenarios: [{config: [3], tests: [{}]}]", "p.yaml:1:23: scenarios[0].config[0]: expected a mapping"),
        ("scenarios: [3]", "p.yaml:1:13: scenarios[0]: expected a scenario"),
        ("scenarios: 3", "p.yaml:1:12: scenarios: expected a list of scenarios"),
        ("scenarios: ['file://gone/*.yaml']", "p.yaml:1:13: scenarios[0]: no file matches 'gone/*.yaml'"),
        ("scenarios: ['file://broken.yaml']", "broken.yaml:2:1: not valid YAML: "),
        ("default_test: [1]", "p.yaml:1:15: default_test: expected a mapping"),
        ("default_test: file://list.yaml", "list.yaml:1:1: expected a mapping with what every test has"),
    ],
)
def test_what_cannot_be_used_is_a_problem(tmp_path: Path, content: str, problem: str) -> None:
    write(tmp_path, {"map.yaml": "a: 1\n", "folder/a": "", "broken.yaml": "[\n", "list.yaml": "- 1\n"})
    tests = "" if content.startswith("scenarios") else "tests: [{id: x}]\n"
    problems = read_first(tmp_path, {"p.yaml": f"{content}\n{tests}"}).problems
    assert problems
    assert problems[0].startswith(problem)


def test_every_test_goes_with_every_prompt(tmp_path: Path) -> None:
    prompts = "[{id: a, label: Long, prompt: 'Tell {{ q }}'}, '{{ q }}']"
    answer = prompted(tmp_path, prompts, "[{id: x, vars: {q: 1}}, {id: y, vars: {q: 2}}]")
    assert answer.problems == []
    assert asked(answer) == [
        ("x", "Long", "Tell {{ q }}"),
        ("x", "prompt-2", "{{ q }}"),
        ("y", "Long", "Tell {{ q }}"),
        ("y", "prompt-2", "{{ q }}"),
    ]


def test_a_single_prompt_needs_no_label_and_is_no_program(tmp_path: Path) -> None:
    (test,) = prompted(tmp_path, "['{{ q }}']").tests
    assert test.prompt_label is None
    assert test.prompt is not None
    assert str(test.prompt.problem("here")) == "p.yaml:1:11: prompts[0]: here"
    write(tmp_path, {"make.py": ""})
    answer = prompted(tmp_path, "[file://make.py]")
    assert (answer.problems, len(answer.tests)) == ([], 1)
    assert [str(problem) for problem in answer.complaints.cannot_run] == [
        "p.yaml:1:11: prompts[0]: 'file://make.py' is a program; passgate takes texts and messages"
    ]


def test_a_test_may_choose_its_prompts_and_imported_suites_keep_their_own(tmp_path: Path) -> None:
    tests = "[{id: x, prompts: [two]}, {id: y, prompts: [tow]}]"
    answer = prompted(tmp_path, "[{label: one, raw: a}, {label: two, raw: b}]", tests)
    assert asked(answer)[0] == ("x", "two", "b")
    assert answer.problems == ["p.yaml:2:52: tests[1].prompts[0]: no prompt of this name; did you mean 'two'?"]
    write(tmp_path, {"c.yaml": "prompts: [inner]\ntests: [{id: c}]\n"})
    answer = prompted(tmp_path, "[outer, more]", "[{include: ./c.yaml, type: suite}, {id: own}]")
    assert [(name, prompt) for name, _, prompt in asked(answer)] == [("c", "inner"), ("own", "outer"), ("own", "more")]


def test_tests_without_an_id_are_named_by_what_they_are_about(tmp_path: Path) -> None:
    assert prompted(tmp_path, "[a]", "[{description: 'Says Hello!'}, {vars: {}}]").ids == ["says-hello", "test-2"]
    assert read_first(tmp_path, {"q.yaml": "tests: [{description: 'Says Hello!'}]\n"}).ids == [None]


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
    default, own = {"type": "contains", "value": "default"}, {"type": "contains", "value": "own"}
    said = {"options": {"provider": "p"}, "threshold": 0.5}
    assert read_first(tmp_path, {"p.yaml": DEFAULTS}).values == [
        {"id": "x", "vars": {"tone": "kind", "who": "me"}, "assert": [default, own], **said},
        {"id": "y", "vars": {"tone": "kind", "who": "all"}, "assert": [default], **said},
    ]


def test_every_part_of_a_merged_test_stands_where_it_was_written(tmp_path: Path) -> None:
    node = read_first(tmp_path, {"p.yaml": DEFAULTS}).tests[0].node
    graders, variables = node.child("assert"), node.child("vars")
    assert str(graders.child(1).problem("w")) == "p.yaml:12:9: tests[0].assert[0]: w"
    parts = graders.child(0).child("value"), graders.child(1).child("value"), variables.child("tone")
    lines = [part.problem("w").line for part in (*parts, variables.child("who"), node.child("threshold"), node)]
    assert lines == [7, 12, 3, 10, 5, 9]


def test_defaults_may_stand_in_a_file(tmp_path: Path) -> None:
    files = {"p.yaml": "default_test: file://./d.yaml\ntests: [{id: x}]\n", "d.yaml": "threshold: 0.5\n"}
    answer = read_first(tmp_path, files)
    assert (answer.problems, answer.values) == ([], [{"id": "x", "threshold": 0.5}])
    assert answer.tests[0].node.child("threshold").problem("w").file == "d.yaml"


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
    files = {"p.yaml": "prompts: [a]\nscenarios: [file://s/*.yaml]\n", "s/one.yaml": SCENARIO}
    answer = read_first(tmp_path, files)
    assert answer.problems == []
    assert answer.ids == [
        f"{config}__{test}" for config in ("spanish", "scenario_1_2") for test in ("scenario_test_1", "thanks")
    ]
    assert answer.values[0]["vars"] == {"language": "Spanish", "hello": "hola", "phrase": "hello"}
    assert str(answer.tests[0].node.child("vars").child("hello").problem("w")).startswith("s/one.yaml:3:54: ")
