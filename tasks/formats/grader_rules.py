"""Find what a schema cannot say of a grader: that it can fail, and that its paths, patterns and names are right."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

from passgate.tasks.formats.document import DocumentPath
from passgate.tasks.formats.findings import (
    Finding,
    check_contents,
    check_json_schema,
    check_path,
    check_text,
    read_text,
)
from passgate.tasks.formats.schema_check import nearest
from passgate.tasks.model import assertions, graders
from passgate.tasks.model.graders import AGGREGATOR_NEEDS, Grader

_CHECK_PATH: Mapping[str, Callable[[DocumentPath, str, Path], Iterator[Finding]]] = {
    "folder": check_path,
    "file": check_contents,
    "tests": partial(check_contents, is_filled=True),
    "prompt": check_text,
}


def grader_findings(grader: Grader, root: Path) -> Iterator[Finding]:
    """Yield everything wrong with a grader whose shape is right, with paths inside of the grader."""
    yield from grader.problems()
    for path, schema in grader.json_schemas():
        yield from check_json_schema(path, schema)
    for path, name, kind in grader.named_paths():
        problems = list(_CHECK_PATH[kind](path, name, root))
        yield from problems
        prompt = grader.prompt if isinstance(grader, assertions.LlmGrader) else ""
        if prompt and not problems and prompt != read_text(root / name):
            yield path, "the file says something else than `prompt`: give only one of them"
    for path, member in grader.members():
        yield from (((*path, *inner), message) for inner, message in grader_findings(member, root))
    if isinstance(grader, graders.Composite):
        yield from _aggregator_findings(grader.aggregator, grader.assertions)


def is_required(member: Grader) -> bool:
    """Return whether a member says of itself that it is required."""
    return getattr(member, "required", None) is True


def _aggregator_findings(aggregator: graders.Aggregator, members: tuple[Grader, ...]) -> Iterator[Finding]:
    needed = AGGREGATOR_NEEDS.get(aggregator.type)
    if needed is not None and getattr(aggregator, needed) in (None, (), ""):
        yield ("aggregator",), f"the key {needed!r} is missing"
    if aggregator.type == "safety_gate" and not aggregator.required and not any(map(is_required, members)):
        yield ("aggregator",), "this gate guards nothing: name its members under `required`"
    names = Counter(member.name for member in members if member.name is not None)
    for name in (*aggregator.required, *aggregator.weights):
        if names[name] != 1:
            what = f"the name of {names[name]} members" if names[name] else "the name of no member"
            yield ("aggregator",), f"{name!r} is {what}{nearest(name, list(names)) if not names[name] else ''}"
