from pathlib import Path
from typing import Any

import pytest

from passgate.tasks.formats.evals.documents import PLAIN, interpolate
from passgate.tasks.formats.evals.prompts import WITH_TEMPLATES
from passgate.tasks.formats.project_files import MAX_ENV_BYTES, EnvFileError, read_env_file
from tests.unit.formats.evals.eval_files import read_first, write

VARIABLES = {"A": "x", "YES": "true", "WHOLE": "12", "SHARE": "0.5", "COMMIT": "1e10", "ZEROS": "007", "LONG": "1" * 40}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("${{ A }}", "x"),
        ("a ${{A}}/${{  A  }} b", "a x/x b"),
        ("${{ GONE }}", ""),
        ("${{ YES }}", True),
        ("${{ WHOLE }}", 12),
        ("${{ SHARE }}", 0.5),
        ("${{ COMMIT }}", "1e10"),
        ("${{ ZEROS }}", "007"),
        ("${{ LONG }}", "1" * 40),
        ("n=${{ WHOLE }}", "n=12"),
        ("${{ a.b }}", "${{ a.b }}"),
        ("{{ env.A }}", "{{ env.A }}"),
        ("$A", "$A"),
        (3, 3),
        (None, None),
        ({"${{ A }}": ["${{ A }}"]}, {"${{ A }}": ["x"]}),
    ],
)
def test_variables_are_filled_in(text: Any, value: Any) -> None:
    answer, _ = interpolate(text, VARIABLES, PLAIN)
    assert answer == value
    assert type(answer) is type(value)


def test_what_is_missing_is_named_once_with_its_place() -> None:
    _, missing = interpolate({"a": [1, "${{ X }} ${{ X }} ${{ Y }} ${{ Z }}"]}, {"Z": ""})
    assert missing == ((("a", 1), "X"), (("a", 1), "Y"))
    assert interpolate("{{ env.A }}${{ A }}{{ a }}", {"A": "x"}, WITH_TEMPLATES) == ("xx{{ a }}", ())


def test_env_files_have_quotes_exports_and_comments(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    file.write_text("# note\nexport A='one two'\nB=\"x\\ny\"\nC=plain # note\nD\nE=${A}\n")
    assert read_env_file(file) == {"A": "one two", "B": "x\ny", "C": "plain", "E": "${A}"}
    assert read_env_file(tmp_path / "gone") == {}


def test_an_env_file_that_is_too_large_is_told(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"A=1\n" * (MAX_ENV_BYTES // 4 + 1))
    with pytest.raises(EnvFileError, match="cannot be read") as raised:
        read_env_file(tmp_path / ".env")
    assert raised.value.file == tmp_path / ".env"


def test_variables_stand_in_every_text_of_every_file(tmp_path: Path) -> None:
    files = {
        "EVAL.yaml": "input: 'use ${{ PLACE }}'\ntests: [./c.yaml, ./d.jsonl, {id: '${{PLACE}}-1'}]\n",
        "c.yaml": "[{id: c, input: ['${{ PLACE }}', {deep: '${{ PLACE }}!'}]}]",
        "d.jsonl": '{"id": "d", "input": "in ${{ PLACE }}", "n": "${{ NUMBER }}"}',
    }
    answer = read_first(tmp_path, files, {"PLACE": "Rome", "NUMBER": "3"})
    assert answer.warnings == []
    assert answer.values == [
        {"id": "c", "input": ["Rome", {"deep": "Rome!"}]},
        {"id": "d", "input": "in Rome", "n": 3},
        {"id": "Rome-1"},
    ]
    assert answer.tests[0].context.root.node.value["input"] == "use Rome"


def test_a_missing_one_is_empty_and_a_warning_names_it(tmp_path: Path) -> None:
    answer = read_first(tmp_path, {"EVAL.yaml": "tests:\n  - id: x\n    input: 'go to ${{ GONE }}'\n"})
    assert (answer.problems, answer.values) == ([], [{"id": "x", "input": "go to "}])
    assert answer.warnings == [
        "EVAL.yaml:3:12: tests[0].input: the environment variable 'GONE' is not set, so it is empty here"
    ]


def test_env_files_are_read_from_the_repository_down(tmp_path: Path) -> None:
    text = "tests: [{id: '${{ A }} ${{ B }} ${{ C }}${{ D }}'}]\n"
    write(tmp_path, {".env": "A=above\nD=above\n", "repo/.env": "A=far\nB=far\nC=far\n"})
    files = {"evals/EVAL.yaml": text, "evals/.env": "B=near\nC=near\n"}
    assert read_first(tmp_path / "repo", files, {"C": "process"}).ids == ["far near process"]
    (tmp_path / ".env").write_bytes(b"A=\xff")
    broken = read_first(tmp_path, {"EVAL.yaml": "tests: [{id: '${{ A }}'}]\n"}, {"A": "x"})
    assert broken.problems == [".env:1:1: cannot be read: this is not UTF-8 text"]


def test_a_file_with_prompts_may_set_its_own_and_names_them_in_templates(tmp_path: Path) -> None:
    write(tmp_path, {"c.yaml": "[{id: '{{ env.A }}'}]"})
    own = read_first(tmp_path, {"p.yaml": "env: {A: own}\nprompts: [x]\ntests: ./c.yaml\n"}, {"A": "process"})
    assert own.ids == ["own"]
    answer = read_first(tmp_path, {"p.yaml": "prompts: ['{{ env.A }}']\ntests: [./c.yaml]\n"}, {"A": "x"})
    assert [(test.prompt and test.prompt.value, test.id) for test in answer.tests] == [("x", "x")]
    assert read_first(tmp_path, {"q.yaml": "tests: [./c.yaml]\n"}, {"A": "x"}).ids == ["{{ env.A }}"]
