"""What is written is what was read: tasks of every kind, in every dialect."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import SHIPPED
from tests.property.documents import nested

from passgate.tasks.commands.convert import Converted, Destination, Dialect, write_tasks
from passgate.tasks.formats.evals.map.judges import names_file
from passgate.tasks.formats.loading import SourceTask, tasks_of_paths
from passgate.tasks.formats.normalise import Origin
from passgate.tasks.model.messages import TaskMessage
from passgate.tasks.model.task import TaskFile


def short(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """A strategy with a short name: hypothesis refuses to spell out those that are made of many."""

    @st.composite
    def some(draw: st.DrawFn) -> Any:
        return draw(strategy)

    return some()


TRICKY = (
    *("yes", "~", "null", "1e3", "0o17", "0x1F", "1_000", "12:30", "2026-01-31", "3", "1.0", "<<", "=", "- x", "a: b"),
    *("#x", "a\nb\n", "  in\n\n  out \n", "\n\nx", "x\n\n\n", "tab\tb\n", "{{ x }}", "%a", "@b", "`c`", "é\u2028x"),
    *("'", '"', "\\", "|", ">", "!tag", "&a", "*a", "[", "{", "? k", "a #b", "x:", "\ufeff", "golden", "./a.md"),
    "\x07",
)
CHARACTERS = st.characters(exclude_categories=["Cs"])
TEXTS = short(
    (st.sampled_from(TRICKY) | st.text(CHARACTERS, min_size=1, max_size=12)).filter(
        lambda text: bool(text.strip()) and "${{" not in text
    )
)
PROMPTS = short(TEXTS.filter(lambda text: not names_file(text) and not text.endswith((".py", ".js"))))
NUMBERS = st.integers(0, 10) | st.floats(0, 10)
SHARES = st.sampled_from([0.0, 0.25, 0.5, 1.0])
JSON_VALUES: st.SearchStrategy[Any] = short(
    nested(st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(-1e300, 1e300) | TEXTS, TEXTS, most=6)
)
MAPPINGS = short(st.dictionaries(TEXTS, JSON_VALUES, max_size=3))
BASE = {"name": TEXTS, "weight": NUMBERS, "required": st.booleans(), "min_score": SHARES, "negate": st.booleans()}
RANGES = [{"low": 0, "high": 4, "outcome": "bad"}, {"low": 5, "high": 10, "outcome": "good"}]


def mapping(needed: dict[str, Any] | None = None, **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(needed or {}, optional=optional)


def some(items: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[list[Any]]:
    return st.lists(items, min_size=1, max_size=most)


CALLS = short(
    mapping(
        {"tool": TEXTS},
        args=MAPPINGS | st.just("any"),
        args_match=st.sampled_from(["superset", "ignore"]) | some(TEXTS),
        max_duration_ms=NUMBERS,
    )
)
CRITERION = mapping(
    {"outcome": TEXTS},
    weight=NUMBERS,
    required=st.booleans(),
    min_score=SHARES,
    score_ranges=st.just(RANGES),
    operator=st.just("contradiction"),
)
CRITERIA = short(
    some(CRITERION, 3).map(
        lambda items: [{"id": f"rubric-{number}", **item} for number, item in enumerate(items, start=1)]
    )
)


def message_of_its_role(message: dict[str, Any]) -> dict[str, Any]:
    """Only what a tool says has the names of the tool and of the call."""
    of_tools = {"name", "tool_call_id"} if message["role"] != "tool" else set()
    return {key: value for key, value in message.items() if key not in of_tools}


def grader(type_name: str, needed: dict[str, Any] | None = None, **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    return mapping({"type": st.just(type_name), **(needed or {})}, **BASE, **optional)


def own(type_name: str, **needed: Any) -> st.SearchStrategy[dict[str, Any]]:
    return mapping({"type": st.just(type_name), **needed})


FIELDS = mapping({"path": TEXTS}, match=st.just("date"), required=st.booleans(), formats=st.just(["DD/MM/YYYY"]))
ASSERTIONS = short(
    st.one_of(
        *(grader(kind, {"value": TEXTS}) for kind in ("contains", "icontains", "starts_with", "ends_with")),
        *(grader(kind, {"value": some(TEXTS)}) for kind in ("contains_any", "icontains_all")),
        grader("equals", {"value": JSON_VALUES}),
        grader("regex", {"value": st.sampled_from(["a+", "(?:x)\\d", "^y$"])}, flags=st.sampled_from(["", "i", "gm"])),
        grader("is_json", value=st.just({"type": "object"})),
        grader("code_grader", {"command": some(PROMPTS, 3)}, config=MAPPINGS, timeout_seconds=NUMBERS.filter(bool)),
        grader("python", {"value": PROMPTS}, threshold=SHARES),
        grader("llm_grader", prompt=PROMPTS, criteria=TEXTS, target=TEXTS, config=MAPPINGS),
        grader("rubrics", {"criteria": CRITERIA}, prompt=PROMPTS, target=TEXTS),
        grader("tool_trajectory", {"expected": some(CALLS)}, mode=st.sampled_from(["any_order", "exact", "subset"])),
        grader("tool_trajectory", {"minimums": st.dictionaries(TEXTS, st.integers(0, 3), min_size=1, max_size=2)}),
        grader("tool_used", {"tools": some(TEXTS)}, min=st.integers(0, 2), max=st.integers(2, 4)),
        grader("tool_sequence", {"steps": some(TEXTS)}, mode=st.just("exact")),
        grader(
            "tool_arguments", {"tool": TEXTS, "args": MAPPINGS}, defaults=MAPPINGS, ignore=st.lists(TEXTS, max_size=2)
        ),
        grader("step_count", {"min": st.integers(0, 3)}, kind=st.sampled_from(["any", "tool"]), pattern=TEXTS),
        grader("field_accuracy", {"fields": some(FIELDS)}, aggregation=st.just("minimum")),
        grader(
            "execution_metrics", {"max_tokens": st.integers(0, 9)}, max_cost_usd=NUMBERS, exploration_tolerance=SHARES
        ),
        grader("latency", {"threshold": NUMBERS}),
        grader("cost", {"budget": NUMBERS}),
        grader("token_usage", {"max_input": st.integers(0, 9)}),
        grader("skill_trigger", {"skill": TEXTS}, should_trigger=st.booleans(), any_call=st.booleans()),
    )
)
STATES = [
    {"file": "a.txt", "contains": ["x"]},
    {"json_file": "a.json", "path": "b", "equals": None},
    {"sqlite": "a.db", "query": "SELECT 1", "value": 1},
    {"command": "true", "stdout_equals": ""},
]
OWN = short(
    st.one_of(
        own("state_check", expect=some(st.sampled_from(STATES))),
        own("tool_calls", forbidden=some(TEXTS)),
        own("output_check", contains=some(TEXTS)),
        own("policy_check", secrets=st.just(True)),
        own("llm_rubric", rubric=PROMPTS.filter(lambda text: not text.endswith((".md", ".txt")))),
    )
)


def composite(members: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    aggregators = st.sampled_from([{"type": "minimum"}, {"type": "all_or_nothing", "threshold": 0.5}])
    return short(grader("composite", {"assertions": some(members)}, aggregator=aggregators, threshold=SHARES))


GRADERS = short(ASSERTIONS | OWN | composite(ASSERTIONS | composite(ASSERTIONS | OWN)))
BLOCKS = short(
    some(
        own("text", value=TEXTS)
        | own("json", value=JSON_VALUES)
        | own("file", value=st.just("notes/a.md"))
        | own("image", value=st.just("data:image/png;base64,AAAA")),
        3,
    )
)
MESSAGE = mapping(
    {"role": st.sampled_from(["system", "user", "assistant", "tool"]), "content": TEXTS | BLOCKS},
    name=TEXTS,
    tool_call_id=TEXTS,
    tool_calls=some(mapping({"tool": TEXTS}, id=TEXTS, arguments=MAPPINGS, result=JSON_VALUES)),
)
MESSAGES = short(st.lists(MESSAGE, min_size=2, max_size=3))
MESSAGES = MESSAGES.map(lambda messages: [message_of_its_role(message) for message in messages])
INPUTS = short(
    st.one_of(TEXTS.map(lambda text: {"prompt": text}), MESSAGES.map(lambda messages: {"messages": messages}))
)
HOOKS = short(
    mapping(
        {"command": st.just(["sh", "-c", "make"]) | some(TEXTS)},
        cwd=st.just("notes"),
        timeout_seconds=st.sampled_from([1, 2.5]),
    )
)
WORKSPACES = short(
    mapping(
        template=st.just("notes"),
        repos=st.just([{"repo": "owner/name", "commit": "abc", "path": "x"}]),
        before_all=HOOKS,
        after_each=HOOKS,
        environment=st.dictionaries(TEXTS, TEXTS, min_size=1, max_size=2),
        required_commands=some(TEXTS),
    )
)
TRIALS = [{"k": 2}, {"k": 3, "metric": "pass@k"}, {"k": 4, "metric": "confidence_interval"}]
TASKS = short(
    mapping(
        {
            "task_id": TEXTS,
            "suite": st.sampled_from(["golden", "adversarial"]),
            "description": TEXTS | st.just(""),
            "inputs": INPUTS,
            "graders": some(GRADERS, 3).filter(lambda graders: any(one.get("weight", 1) for one in graders)),
            "tracked_metrics": st.just(["tokens", "latency", "cost", "tool_use"]),
            "scoring": st.sampled_from([{}, {"threshold": 0.5}, {"threshold": 1}]).map(
                lambda said: {"rule": "weighted_average", **said}
            ),
        },
        tags=st.lists(TEXTS, max_size=2, unique=True),
        trials=st.sampled_from(TRIALS),
        environment=mapping(budgets=st.just({"max_seconds": 2.5}), workspace=WORKSPACES),
        criteria=TEXTS,
        expected_output=TEXTS | st.integers() | MAPPINGS,
        note=TEXTS,
        conversation_id=TEXTS,
        metadata=MAPPINGS,
        target=TEXTS,
    )
)
TASKS_WITH_ANSWERS = short(
    TASKS
    | st.tuples(TASKS, MESSAGES).map(
        lambda pair: {
            **{key: value for key, value in pair[0].items() if key != "expected_output"},
            "expected_messages": pair[1],
        }
    )
)


def the_repository(tmp_path: Path) -> Path:
    (tmp_path / ".git").mkdir(exist_ok=True)
    (tmp_path / "notes").mkdir(exist_ok=True)
    (tmp_path / "notes/a.md").write_text("what the file says")
    return tmp_path


def write(said: list[dict[str, Any]], dialect: Dialect, root: Path) -> tuple[list[TaskFile], Converted, Destination]:
    tasks = [
        TaskFile.model_validate({**one, "task_id": f"{number}{one['task_id']}"}) for number, one in enumerate(said)
    ]
    sources = [SourceTask(task, root, Origin(task.task_id, "f.yaml", 1)) for task in tasks]
    out = {Dialect.FOUR_SUITE: root, Dialect.EVAL: root / "evals.yaml", Dialect.JSONL: root / "evals.jsonl"}[dialect]
    target = Destination(dialect, out, SHIPPED, {}, overwrite=True)
    return tasks, write_tasks(sources, target), target


def read(converted: Converted, root: Path) -> list[TaskFile]:
    files = [file for file in converted.files if not (root / "evals.jsonl").exists() or file.suffix == ".jsonl"]
    found = tasks_of_paths(files, SHIPPED, {})
    assert found.problems == ()
    return [without_texts(source.task) for source in found.tasks]


def without_texts(task: TaskFile) -> TaskFile:
    """A task as a file has it: files are named, what they hold is left out."""
    said = task.model_dump()
    for message in said["expected_messages"]:
        for block in message["content"] if not isinstance(message["content"], str) else ():
            block["text"] = None
    return TaskFile.model_validate(said)


def plain(task: TaskFile) -> Any:
    """A task without defaults, also those of its messages, which its inputs hold as they are written."""
    messages = [TaskMessage.model_validate(message) for message in task.inputs.get("messages", ())]
    if messages:
        written = [json.loads(message.model_dump_json(exclude_defaults=True)) for message in messages]
        task = task.model_copy(update={"inputs": {"messages": written}})
    return json.loads(without_texts(task).model_dump_json(exclude_defaults=True))


@pytest.mark.parametrize("dialect", list(Dialect))
@given(said=some(TASKS_WITH_ANSWERS))
def test_reading_what_was_written_gives_the_same_tasks(
    tmp_path_factory: pytest.TempPathFactory, dialect: Dialect, said: list[dict[str, Any]]
) -> None:
    root = the_repository(tmp_path_factory.mktemp("repository"))
    tasks, converted, _ = write(said, dialect, root)
    assert converted.left_out == ()
    if dialect is Dialect.FOUR_SUITE:
        assert converted.not_comparable == ()
    assert [plain(task) for task in read(converted, root)] == [plain(task) for task in tasks]
    assert not [path for path in root.rglob(".*") if path.name != ".git"]
