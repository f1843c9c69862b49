"""Any test of an eval file becomes a task or has a problem, and never crashes the reader."""

from pathlib import Path
from typing import Any

import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from tests.builders import SHIPPED
from tests.property.documents import nested

from passgate.tasks.formats.evals.compose import SuiteWords
from passgate.tasks.formats.evals.reader import EvalReader
from passgate.tasks.formats.evals.tests import EvalTestWords, merge
from passgate.tasks.formats.evals.words import EvalWords, names_by_spelling
from passgate.tasks.formats.schema_check import schema_validator
from passgate.tasks.model.json_values import strictly_equal
from passgate.tasks.reports.tasks import tasks_as_yaml

WORDS = st.sampled_from(
    [
        *("", " ", "hi", "golden", "agentv", "conversation", "min", "stop", "user", "system", "assistant", "tool"),
        *("text", "file", "image", "json", "contains", "is-json", "host", "docker", "shared", "static", "pass_all"),
        *("confidence_interval", "./a.txt", "../..", "/", "file://a.txt", "PROMPT.md", "\0", "{{ x }}", "{{ vars.y }}"),
        *(
            "{{ input }}",
            "{% if",
            "agentv:agent-rules",
            "file://a.ts:beforeAll",
            "${{ NO }}",
            "[{",
            '{"a": 1}',
            "A" * 300,
            "\u202e",
            "é",
            "null",
        ),
    ]
)
SCALARS = st.none() | st.booleans() | st.integers(-3, 2000) | st.floats(allow_nan=False, allow_infinity=False) | WORDS


def spellings(words: type[EvalWords]) -> set[str]:
    """The keys of a kind of mapping and of those that are made of it."""
    return {*names_by_spelling(words)}.union(*map(spellings, words.__subclasses__()))


KEYS = sorted(spellings(EvalWords) | {"text", "x", "y", "suite", "transform"})
VALUES = nested(SCALARS, st.sampled_from(KEYS), most=12)
SOUND = {"id": "t", "input": "x", "criteria": "c"}
TESTS = st.dictionaries(st.sampled_from([*names_by_spelling(EvalTestWords)]), VALUES, max_size=3).flatmap(
    lambda said: st.sampled_from([said, {"id": "t", **said}, {**SOUND, **said}, {**SOUND, **said}])
)
FILE_KEYS = sorted({*names_by_spelling(SuiteWords)} - {"tests", "scenarios", "cases", "evalcases", "eval_cases"})
FILES = st.builds(
    lambda tests, said: {"tests": tests, **said},
    st.lists(TESTS, min_size=1, max_size=2),
    st.dictionaries(st.sampled_from(FILE_KEYS), VALUES, max_size=2),
)


def read(folder: Path, document: Any):
    (folder / ".git").mkdir(exist_ok=True)
    (folder / "a.txt").write_text("what the file says")
    file = folder / "EVAL.yaml"
    file.write_text(yaml.safe_dump(document), encoding="utf-8")
    return EvalReader(folder, SHIPPED, {}, lambda path: path.name).read(file)


@given(document=FILES)
def test_a_file_is_tasks_or_has_problems(tmp_path: Path, document: dict[str, Any]) -> None:
    answer = read(tmp_path, document)
    assert answer.problems or len(answer.tasks) >= len(document["tests"])
    for task in answer.tasks:
        assert task.graders
        assert task.inputs.get("prompt") or task.messages
    for task, said in zip(answer.tasks, yaml.safe_load_all(tasks_as_yaml(answer.tasks)), strict=True):
        assert said["task_id"] == task.task_id


@given(test=TESTS)
def test_every_sound_test_is_among_the_tasks(tmp_path: Path, test: dict[str, Any]) -> None:
    sound = {"id": "sound", "input": "hi", "criteria": "kind"}
    answer = read(tmp_path, {"tests": [test | {"id": "other"}, sound]})
    assert "sound" in [task.task_id for task in answer.tasks]


SCHEMAS = [schema_validator(name) for name in ("eval", "agentv")]
NAMES = st.text("ab0-_A é", max_size=6) | st.integers(60, 70).map("a".__mul__)
VERSIONS = st.text("019.-+ab v", max_size=8) | st.sampled_from(["1.0", "1.2.3", "1.0.0-beta.1", "2"])
DESCRIPTIONS = st.integers(2040, 2055).map("d".__mul__) | st.text(st.characters(exclude_categories=["C"]), max_size=10)
OTHERS = st.none() | st.booleans() | st.integers(-10, 4000) | st.sampled_from([0.5, 1.0, 3600.0, 1e9, []])


@given(
    change=st.one_of(
        st.fixed_dictionaries({"name": NAMES | OTHERS}),
        st.fixed_dictionaries({"version": VERSIONS | OTHERS}),
        st.fixed_dictionaries({"description": DESCRIPTIONS | OTHERS}),
        st.fixed_dictionaries({"execution": st.fixed_dictionaries({"timeout_seconds": OTHERS})}),
    )
)
@example(change={"name": "a--b"})
@example(change={"execution": {"timeout_seconds": 3600}})
def test_the_schemas_and_the_loader_agree_on_what_a_file_says(tmp_path: Path, change: dict[str, Any]) -> None:
    document = {"name": "code-review", "tests": [SOUND], **change}
    problems = read(tmp_path, document).problems
    assert [schema.is_valid(document) for schema in SCHEMAS] == [not problems] * 2
    assert all(problem.file == "EVAL.yaml" and problem.column > 1 for problem in problems)


METADATA = st.dictionaries(st.sampled_from("abc"), VALUES, max_size=3)


@given(under=METADATA, over=METADATA)
def test_what_a_test_says_of_itself_is_never_lost(under: dict[str, Any], over: dict[str, Any]) -> None:
    both = merge(under, over)
    assert both.keys() == under.keys() | over.keys()
    for key, value in over.items():
        if not isinstance(value, dict | list) or type(under.get(key)) is not type(value):
            assert strictly_equal(both[key], value)
        elif isinstance(value, list):
            assert all(any(strictly_equal(item, known) for known in both[key]) for item in value)
