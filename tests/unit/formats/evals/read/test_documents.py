"""Environment variables in all the files of an eval."""

from pathlib import Path

from tests.unit.formats.evals.eval_files import read, write


def test_variables_stand_in_every_text_of_every_file(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "EVAL.yaml": "input: 'use ${{ PLACE }}'\ntests: [./c.yaml, ./d.jsonl, {id: '${{PLACE}}-1'}]\n",
            "c.yaml": "[{id: c, input: ['${{ PLACE }}', {deep: '${{ PLACE }}!'}]}]",
            "d.jsonl": '{"id": "d", "input": "in ${{ PLACE }}", "n": "${{ NUMBER }}"}',
        },
    )
    answer = read(tmp_path, "EVAL.yaml", {"PLACE": "Rome", "NUMBER": "3"})
    assert answer.warnings == []
    assert answer.values == [
        {"id": "c", "input": ["Rome", {"deep": "Rome!"}]},
        {"id": "d", "input": "in Rome", "n": 3},
        {"id": "Rome-1"},
    ]
    assert answer.tests[0].context.root.value["input"] == "use Rome"


def test_a_missing_one_is_empty_and_a_warning_names_it(tmp_path: Path) -> None:
    write(tmp_path, {"EVAL.yaml": "tests:\n  - id: x\n    input: 'go to ${{ GONE }}'\n"})
    answer = read(tmp_path, "EVAL.yaml")
    assert answer.problems == []
    assert answer.values == [{"id": "x", "input": "go to "}]
    assert answer.warnings == [
        "EVAL.yaml:3:12: tests[0].input: the environment variable 'GONE' is not set, so it is empty here"
    ]


def test_env_files_are_read_from_the_repository_down(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            ".env": "A=far\nB=far\nC=far\n",
            "evals/.env": "B=near\nC=near\n",
            "evals/EVAL.yaml": "tests: [{id: '${{ A }} ${{ B }} ${{ C }}'}]\n",
        },
    )
    assert read(tmp_path, "evals/EVAL.yaml", {"C": "process"}).ids == ["far near process"]


def test_an_env_file_that_cannot_be_read_is_a_problem(tmp_path: Path) -> None:
    write(tmp_path, {"EVAL.yaml": "tests: [{id: '${{ A }}'}]\n"})
    (tmp_path / ".env").write_bytes(b"A=\xff")
    assert read(tmp_path, "EVAL.yaml", {"A": "x"}).problems == [
        ".env:1:1: cannot be read: this is not UTF-8 text",
    ]


def test_a_file_with_prompts_may_set_its_own(tmp_path: Path) -> None:
    write(tmp_path, {"p.yaml": "env: {A: own}\nprompts: [x]\ntests: ./c.yaml\n", "c.yaml": "[{id: '{{ env.A }}'}]"})
    assert read(tmp_path, "p.yaml", {"A": "process"}).ids == ["own"]


def test_templates_name_them_in_files_with_prompts_only(tmp_path: Path) -> None:
    write(tmp_path, {"p.yaml": "prompts: ['{{ env.A }}']\ntests: [./c.yaml]\n", "c.yaml": "[{id: '{{env.A}}'}]"})
    answer = read(tmp_path, "p.yaml", {"A": "x"})
    assert answer.ids == ["x"]
    assert answer.tests[0].prompt is not None
    assert answer.tests[0].prompt.value == "x"
    write(tmp_path, {"q.yaml": "tests: [./c.yaml]\n"})
    assert read(tmp_path, "q.yaml", {"A": "x"}).ids == ["{{env.A}}"]
