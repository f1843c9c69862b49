"""What docs/eval-graders.md says of the graders of eval files."""

import re
from typing import get_args

import pytest

from passgate.tasks.formats.evals.graders import FORMS
from passgate.tasks.formats.evals.words import snake_case
from passgate.tasks.graders.grader_reply import read_document
from passgate.tasks.graders.judge_prompt import _AUTHORS, _QUESTION, _WORK
from passgate.tasks.graders.limits import EXPLORING_TOOLS
from passgate.tasks.model.assertions import ToolTrajectory
from passgate.tasks.model.grader_options import AssertionOptions
from passgate.tasks.model.graders import GRADER_TYPES
from tests.docs.keys import defaults, own_names
from tests.docs.pages import PAGES, code_in, entries, listing, listings, meanings, rows, section, table, terms
from tests.docs.test_input_files import MODELS as OF_PASSGATE

PAGE = "docs/eval-graders.md"
TYPES = {model: get_args(model.model_fields["type"].annotation) for model in AssertionOptions.__subclasses__()}
HEADINGS = {types[0]: model for model, types in TYPES.items()}
"""The models by the headings of their sections: the first of their types."""
COMMON = set(AssertionOptions.model_fields) | {"type"}
CANNOT_RUN = "unavailable"


def test_every_type_has_a_section_and_no_other() -> None:
    text = section(PAGE, "Graders of eval files")
    assert set(re.findall(r"^\| \[`(\w+)`\]", text, re.MULTILINE)) == set(HEADINGS)
    assert {kind for types in TYPES.values() for kind in types} == {*GRADER_TYPES} - {*OF_PASSGATE} | {CANNOT_RUN}
    assert set(terms(section(PAGE, "What all have"))) == COMMON


def test_the_names_in_eval_files_are_read_as_these_graders() -> None:
    models = {name: form.model for form in FORMS for name in form.names}
    for kind, names, _ in rows(section(PAGE, "Graders of eval files"))[2:]:
        heading = re.findall(r"\[`(\w+)`\]", kind)[0]
        for name in code_in(names) - {"turns"}:
            assert models[snake_case(name)] is HEADINGS[heading], name


@pytest.mark.parametrize("kind", HEADINGS)
def test_options_and_their_defaults(kind: str) -> None:
    text = section(PAGE, kind)
    options = listings(text)[0]
    assert set(terms(options)) == own_names(HEADINGS[kind], without=COMMON)
    documented = [(entry.name, entry.note) for entry in entries(options)]
    for path, default in defaults(HEADINGS[kind]):
        if path not in COMMON:
            assert (path.rpartition(".")[2], default) in documented, path
    assert ("- Failed:" in text) == ("- Error:" in text), "both, or as all graders"
    assert all(f"`{one}`" in text or one == kind for one in TYPES[HEADINGS[kind]])
    assert kind == CANNOT_RUN or f"type: {kind}\n" in PAGES[PAGE] or f"type: {kind}," in PAGES[PAGE], "an example"


def test_every_mode_is_documented() -> None:
    modes = terms(listing(section(PAGE, "tool_trajectory"), "by the mode:"))
    assert set(modes) == set(get_args(ToolTrajectory.model_fields["mode"].annotation))


def test_the_variables_of_prompts() -> None:
    documented = {
        code.strip("{} ")
        for row in rows(table(section(PAGE, "llm_grader"), "variables"))[2:]
        for code in code_in(row[0])
    }
    assert {name for name in documented if "NAME" not in name} == {*_WORK, *_QUESTION, *_AUTHORS}


def test_the_tools_that_only_look() -> None:
    assert code_in(meanings(PAGE, "execution_metrics")["target_exploration_ratio"]) == EXPLORING_TOOLS


def test_the_forms_of_a_reply() -> None:
    assert read_document({"score": 0.9, "hits": ["a"], "misses": ["b"], "reasoning": "c"}).score == 0.9
    assert read_document({"assertions": [{"text": "a", "passed": True}]}).score == 1
    assert read_document({"pass": False, "score": 0.9, "reason": "a", "checks": []}).score == 0
