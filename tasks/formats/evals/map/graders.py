"""Lists of graders of eval files, in every spelling of every dialect, read into passgate's own graders."""

from collections.abc import Callable, Sequence
from typing import Any, cast

from passgate.tasks.formats.evals.map.answer_forms import ANSWER_FORMS
from passgate.tasks.formats.evals.map.assertion_templates import entries
from passgate.tasks.formats.evals.map.built import build
from passgate.tasks.formats.evals.map.composite_form import COMPOSITE_FORMS
from passgate.tasks.formats.evals.map.custom_assertions import custom_assertion
from passgate.tasks.formats.evals.map.foreign_types import is_foreign
from passgate.tasks.formats.evals.map.forms import NUMBER, TEXT, TRUTH, Draft, Form
from passgate.tasks.formats.evals.map.judge_forms import JUDGE_FORMS
from passgate.tasks.formats.evals.map.metric_forms import METRIC_FORMS
from passgate.tasks.formats.evals.map.native_forms import NATIVE_FORMS
from passgate.tasks.formats.evals.map.reading import ReadFile, Reading
from passgate.tasks.formats.evals.map.rubric_items import criteria_of, read_criteria
from passgate.tasks.formats.evals.map.trajectory_forms import TRAJECTORY_FORMS
from passgate.tasks.formats.evals.read.node import Complaints, Key, Keys, Node, Parts, snake_case, take_apart
from passgate.tasks.formats.evals.read.paths import Ground
from passgate.tasks.formats.schema_check import Kind, is_kind, nearest, wrong_kind
from passgate.tasks.model.assertions import LlmGrader, Rubrics, Unavailable
from passgate.tasks.model.graders import Grader

FORMS: tuple[Form, ...] = (
    *(*ANSWER_FORMS, *JUDGE_FORMS, *COMPOSITE_FORMS, *TRAJECTORY_FORMS, *METRIC_FORMS),
    *NATIVE_FORMS,
)
BASE_KEYS: Keys = {
    "type": Key(TEXT, needed=True, says="What grades."),
    "name": Key(TEXT),
    "metric": Key(TEXT, says="Its name, where it has no `name`."),
    "id": Key(TEXT, says="Its name, where it has neither `name` nor `metric`."),
    "weight": Key(NUMBER),
    "required": Key((*TRUTH, *NUMBER), says="The trial fails without it. A number is the least score that passes too."),
    "min_score": Key(NUMBER),
    "negate": Key(TRUTH),
}
DESCRIPTION: Keys = {"description": Key(TEXT, says="What it is there for, for readers.")}
_BY_NAME: dict[str, Form] = {name: form for form in FORMS for name in form.names}
_NOT = "not_"


OfTexts = Callable[[Sequence[Node], Reading], Grader | None]
"""Makes one grader of the plain texts of a list, which is in the place of the first."""


def rubric_of_texts(texts: Sequence[Node], reading: Reading) -> Grader | None:
    """A rubric with an item for each text."""
    first = texts[0]
    before = len(reading.complaints.problems)
    criteria = criteria_of(texts, first, reading.complaints)
    if len(reading.complaints.problems) > before:
        return None
    values: dict[str, Any] = {"type": "rubrics", "criteria": criteria, "weight": len(texts)}
    return build(Rubrics, {key: first.with_value(value) for key, value in values.items()}, first, reading.complaints)


def judge_of_texts(texts: Sequence[Node], reading: Reading) -> Grader | None:
    """A judge that is told all texts and gives one score: what plain texts are to AgentV where files hold prompts."""
    first = texts[0]
    values: dict[str, Any] = {
        "type": "llm_grader",
        "criteria": "\n".join(text.value.strip() for text in texts),
        "weight": len(texts),
    }
    return build(LlmGrader, {key: first.with_value(value) for key, value in values.items()}, first, reading.complaints)


def read_graders(
    node: Node, ground: Ground, complaints: Complaints, read_file: ReadFile, of_texts: OfTexts = rubric_of_texts
) -> tuple[Grader, ...]:
    """The graders of a list (`assert`, `assertions`, `evaluators`) in its order, those of its templates among them.

    All plain texts of a list are one grader. `read_file` reads templates. What is wrong goes to the complaints, and
    then graders may be missing from the answer.
    """
    return _read_list(node, Reading(ground, complaints, read_file, _read_list, of_texts))


def rubric_grader(node: Node, complaints: Complaints) -> Rubrics | None:
    """The grader that a test's own `rubrics` list is; `None` where it is wrong, and then the complaints say why."""
    message = wrong_kind(node.value, (Kind.LIST,))
    if message is not None:
        complaints.problems.append(node.problem(message))
        return None
    before = len(complaints.problems)
    criteria = read_criteria(node, complaints)
    if len(complaints.problems) > before:
        return None
    fields = {"type": node.with_value("rubrics"), "criteria": node.with_value(criteria)}
    return build(Rubrics, fields, node, complaints)


def _read_list(node: Node, reading: Reading) -> tuple[Grader, ...]:
    message = wrong_kind(node.value, (Kind.LIST,))
    if message is not None:
        reading.refuse(node, message)
        return ()
    found = list(entries(node, reading))
    texts = [item for item, _ in found if isinstance(item.value, str)]
    graders: list[Grader | None] = []
    for item, inner in found:
        if texts and item is texts[0]:
            graders.append(reading.of_texts(texts, inner))
        elif not isinstance(item.value, str):
            graders.append(_read_one(item, inner))
    return tuple(grader for grader in graders if grader is not None)


def _read_one(node: Node, reading: Reading) -> Grader | None:
    message = wrong_kind(node.value, (Kind.MAPPING, Kind.TEXT))
    if message is not None:
        reading.refuse(node, message)
        return None
    if "include" in node.value:
        options = {"type": "unavailable", "kind": "include", "options": node.value}
        return build(Unavailable, _at(node, options), node, reading.complaints)
    kind = node.get("type")
    message = "the key 'type' is missing" if kind is None else wrong_kind(kind.value, TEXT)
    if kind is None or message is not None:
        reading.refuse(kind or node, message or "")
        return None
    form, negated = _form(kind, reading)
    if form is None:
        return _without_form(node, kind, negated, reading)
    return _with_form(node, form, negated, reading)


def _form(kind: Node, reading: Reading) -> tuple[Form | None, bool]:
    """How a grader of a type is written, and whether the type says `not-`. No assertion of the repository takes the
    name of a type that is known.
    """
    written, name = kind.value, snake_case(kind.value)
    negated = name.startswith(_NOT)
    known = _BY_NAME.get(name.removeprefix(_NOT))
    if known is not None:
        return known, negated
    own = custom_assertion(kind, written, reading.ground)
    if own is not None or not negated:
        return own, False
    return custom_assertion(kind, written[len(_NOT) :], reading.ground), True


def _at(node: Node, values: dict[str, Any]) -> dict[str, Node]:
    return {key: node.with_value(value) for key, value in values.items()}


def _with_form(node: Node, form: Form, negated: bool, reading: Reading) -> Grader | None:
    keys = {**BASE_KEYS, **({} if form.further else DESCRIPTION), **form.keys}
    parts = take_apart(node, keys, reading.complaints, further=form.further)
    before = len(reading.complaints.problems)
    draft = form.draft(parts, reading)
    base = _base(parts, negated, reading)
    if not parts.sound or len(reading.complaints.problems) > before:
        return None
    return _made(draft, base, node, reading)


def _made(draft: Draft, base: dict[str, Node], node: Node, reading: Reading) -> Grader | None:
    options = {**draft.options, **base, "type": node.with_value(draft.type_name)}
    return cast("Grader | None", build(draft.model, options, node, reading.complaints))


def _without_form(node: Node, kind: Node, negated: bool, reading: Reading) -> Grader | None:
    written = kind.value
    if not is_foreign(snake_case(written).removeprefix(_NOT)):
        known = [*_BY_NAME] if "_" in written else [form.replace("_", "-") for form in _BY_NAME]
        reading.refuse(kind, f"unknown evaluator {written!r}{nearest(written, known)}")
        return None
    reading.cannot_run(kind, f"passgate has no evaluator {written!r}")
    own = {key: value for key, value in node.value.items() if snake_case(key) in BASE_KEYS}
    parts = take_apart(node.with_value(own), BASE_KEYS, reading.complaints)
    options = {key: value for key, value in node.value.items() if key not in own}
    fields = _at(node, {"type": "unavailable", "kind": written, "options": options})
    base = _base(parts, negated, reading)
    return build(Unavailable, {**base, **fields}, node, reading.complaints) if parts.sound else None


def _base(parts: Parts, negated: bool, reading: Reading) -> dict[str, Node]:
    """What every grader has, from `required: 0.7` and `not-` too."""
    base = parts.only("weight", "min_score", "negate", "required")
    name = parts.get("name") or parts.get("metric") or parts.get("id")
    if name is not None:
        base["name"] = name
    if negated and parts.value("negate") is True:
        reading.refuse(parts.values["negate"], "the type says 'not' already; keep one of them", at_key=True)
    elif negated:
        base["negate"] = parts.node.with_value(True)
    required = base.get("required")
    if required is not None and is_kind(required.value, Kind.NUMBER):
        least = base.setdefault("min_score", required)
        if least.value != required.value:
            reading.refuse(required, "'required' as a number and 'min_score' differ; keep one of them", at_key=True)
        base["required"] = required.with_value(True)
    return base
