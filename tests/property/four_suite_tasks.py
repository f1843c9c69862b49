"""Tasks as the schema of the four-suite format has them: valid ones, and ones with something broken."""

import copy
import math
from typing import Any

from hypothesis import strategies as st
from tests.property.documents import nested

SUITES = ["golden", "open_ended", "adversarial", "failure_replays"]
NEEDED = ["task_id", "suite", "description", "inputs", "graders", "tracked_metrics"]

words = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"], exclude_characters="\ufffe\uffff"), max_size=12
)
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False).filter(math.isfinite)
scalars = st.none() | st.booleans() | numbers | words
values = nested(scalars, words, most=6)


def mapping_with(
    needed: dict[str, st.SearchStrategy[Any]] | None = None, **known: st.SearchStrategy[Any]
) -> st.SearchStrategy[dict[str, Any]]:
    """A mapping with the needed keys and some of the known ones, and free ones beside them."""
    free = st.dictionaries(words.filter(lambda word: word not in {*(needed or {}), *known}), values, max_size=4)
    return st.builds(lambda one, two: one | two, free, st.fixed_dictionaries(needed or {}, optional=known))


budgets = mapping_with(
    max_steps=values, max_tool_calls=values, max_cost=values, max_seconds=st.integers(1, 60), gpu_minutes=values
)
environments = mapping_with(
    sandbox=words, reset=mapping_with(commands=values, database=words), budgets=budgets, network=values, tools=values
)
trials = mapping_with(k=st.integers(1, 2**40), metric=st.sampled_from(["pass@k", "pass^k"]))
graders = values | st.fixed_dictionaries(
    {"type": st.sampled_from(["output_check", "state_check", "llm_rubric", "safety_check"])},
    optional={"contains": values, "expect": values, "rubric": words, "weight": values},
)
metrics = values | st.sampled_from(["cost", "Tool-call accuracy", "latency"]) | mapping_with(type=words, metrics=values)
selections = mapping_with(ci_merge_gate=st.booleans(), nightly=st.booleans(), release_candidate=st.booleans())

valid_tasks = mapping_with(
    {
        "task_id": words,
        "suite": st.sampled_from(SUITES),
        "description": words,
        "inputs": mapping_with(prompt=values, messages=values),
        "graders": st.lists(graders, min_size=1, max_size=3),
        "tracked_metrics": st.lists(metrics, min_size=1, max_size=3),
    },
    tags=st.lists(words, max_size=3),
    environment=environments,
    trials=trials,
    gates=selections,
    reference=values,
    scoring=values,
    metadata=values,
)
"""Whatever the schema accepts, much of it without a meaning for passgate."""

OF_OTHER_TYPES: dict[tuple[str, ...], list[Any]] = {
    ("task_id",): [None, 7, ["a"], {}],
    ("suite",): [None, 7, "goldn", ""],
    ("description",): [None, True, 1.5, []],
    ("inputs",): [None, "text", []],
    ("graders",): [None, {}, [], "text"],
    ("tracked_metrics",): [None, {}, [], "cost"],
    ("tags",): [None, "one", [1]],
    ("environment",): [None, [], "docker"],
    ("environment", "sandbox"): [None, 3, {}],
    ("environment", "reset"): [None, [], "git reset"],
    ("environment", "budgets"): [None, [], 20],
    ("trials",): [None, [], 3],
    ("trials", "k"): [None, 0, -1, 1.5, "3"],
    ("trials", "metric"): [None, "pass", 1],
    ("gates",): [None, [], True],
    ("gates", "ci_merge_gate"): [None, 1, "yes"],
    ("gates", "nightly"): [None, 0, "no"],
    ("gates", "release_candidate"): [None, [], "on"],
}
"""Values that the schema refuses, by where they stand."""


@st.composite
def invalid_tasks(draw: st.DrawFn) -> dict[str, Any]:
    """A valid task with a key taken away that is needed, or with a value that the schema refuses."""
    task = copy.deepcopy(draw(valid_tasks))
    if draw(st.booleans()):
        del task[draw(st.sampled_from(NEEDED))]
        return task
    *above, key = draw(st.sampled_from(sorted(OF_OTHER_TYPES)))
    container = task
    for name in above:
        container = container.setdefault(name, {})
    container[key] = draw(st.sampled_from(OF_OTHER_TYPES[(*above, key)]))
    return task
