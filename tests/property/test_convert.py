"""What is written is what was read: eval files of every kind, as task files, in YAML and in JSONL."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import SHIPPED
from tests.property.documents import nested

from passgate.tasks.commands.convert import Destination, TargetFormat, convert
from passgate.tasks.formats.conversion import yaml_text
from passgate.tasks.formats.loading import load_paths

TRICKY = (
    *("yes", "~", "null", "1e3", "0o17", "0x1F", "1_000", "12:30", "2026-01-31", "3", "1.0", "<<", "=", "- x", "a: b"),
    *("#x", "a\nb\n", "  in\n\n  out \n", "\n\nx", "x\n\n\n", "tab\tb\n", "{{ x }}", "%a", "@b", "`c`", "é\u2028x"),
    *(
        "'",
        '"',
        "\\",
        "|",
        ">",
        "!tag",
        "&a",
        "*a",
        "[",
        "{",
        "? k",
        "a #b",
        "x:",
        "\ufeff",
        "golden",
        "./a.md",
        "\x07",
    ),
)
TEXTS = (st.sampled_from(TRICKY) | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)).filter(
    lambda text: bool(text.strip()) and "${{" not in text
)
NUMBERS = st.integers(0, 10) | st.floats(0, 10)
SHARES = st.sampled_from([0.0, 0.25, 0.5, 1.0])
VALUES: st.SearchStrategy[Any] = nested(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.floats(-1e300, 1e300) | TEXTS, TEXTS, most=6
)
MAPPINGS = st.dictionaries(TEXTS, VALUES, max_size=3)
BASE = {"name": TEXTS, "weight": NUMBERS, "required": st.booleans(), "min_score": SHARES, "negate": st.booleans()}


def grader(type_name: str, needed: dict[str, Any], **optional: Any) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({"type": st.just(type_name), **needed}, optional={**BASE, **optional})


LISTS = st.lists(TEXTS, min_size=1, max_size=2)
GRADERS = st.one_of(
    TEXTS,
    grader("contains", {"value": TEXTS}),
    grader("equals", {"value": VALUES}),
    grader("code_judge", {"script": LISTS.filter(lambda words: not words[0].startswith("./"))}, config=MAPPINGS),
    grader("tool_trajectory", {"expected": LISTS}, mode=st.sampled_from(["any_order", "exact"])),
    grader("trajectory:tool-args-match", {"value": st.fixed_dictionaries({"tool": TEXTS, "args": MAPPINGS})}),
    grader("output_check", {"contains": LISTS}).map(
        lambda said: {key: value for key, value in said.items() if key not in {"required", "min_score", "negate"}}
    ),
)
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": TEXTS}), min_size=2
)
TESTS = st.fixed_dictionaries(
    {"input": TEXTS | MESSAGES, "criteria": TEXTS},
    optional={
        "suite": st.sampled_from(["golden", "adversarial"]),
        "description": TEXTS,
        "tags": st.lists(TEXTS, max_size=2, unique=True),
        "expected_output": TEXTS | st.integers() | MAPPINGS,
        "assertions": st.lists(GRADERS, max_size=3),
        "threshold": st.sampled_from([0.5, 1]),
        "run": st.sampled_from([{"repeat": 3}, {"timeout_seconds": 2.5}]),
        "workspace": st.just({"template": "./notes", "hooks": {"before_all": "make"}}),
        "metadata": MAPPINGS.filter(lambda said: "suite" not in said),
        "vars": st.dictionaries(st.sampled_from(["a", "b"]), VALUES),
    },
)


@pytest.mark.parametrize("dialect", list(TargetFormat))
@given(said=st.lists(TESTS, min_size=1, max_size=2), top=st.sampled_from([{}, {"execution": {"threshold": 1}}]))
def test_reading_what_was_written_gives_the_same_tasks(
    tmp_path_factory: pytest.TempPathFactory, dialect: TargetFormat, said: list[dict[str, Any]], top: dict[str, Any]
) -> None:
    root = tmp_path_factory.mktemp("repository")
    (root / ".git").mkdir()
    (root / "notes").mkdir()
    source = root / "shop.eval.yaml"
    tests = [{"id": f"{number}{dialect}", **test} for number, test in enumerate(said)]
    source.write_text(yaml_text({**top, "tests": tests}), encoding="utf-8")
    loaded = load_paths([source], SHIPPED)
    assert loaded.problems == ()
    out = {
        TargetFormat.FOUR_SUITE: root,
        TargetFormat.EVAL: root / "other.yaml",
        TargetFormat.JSONL: root / "shop.jsonl",
    }[dialect]
    converted = convert([source], Destination(dialect, out, SHIPPED, {}, overwrite=True))
    read = load_paths(converted.files[:1] if dialect is TargetFormat.JSONL else converted.files, SHIPPED)
    assert read.problems == converted.left_out == ()
    before, after = ({t.own_id: (t.task_digest, t.grader_digest) for t in each.tasks} for each in (loaded, read))
    assert after == before
    assert not [path for path in root.rglob(".*") if path.name != ".git"]
