"""Mappings of eval files: models whose fields are their keys, what takes a mapping apart, and what it is read with."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar

from jsonschema import Draft202012Validator
from pydantic import AliasChoices, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from passgate.tasks.errors import Problem
from passgate.tasks.formats.document import DocumentPath
from passgate.tasks.formats.evals.documents import Documents, Ground, Reporter
from passgate.tasks.formats.evals.node import Complaints, Node
from passgate.tasks.formats.findings import left_out, read_text
from passgate.tasks.formats.schema_check import (
    REMOVED_KEYS,
    Difference,
    differences,
    input_schema,
    model_differences,
    nearest,
)
from passgate.tasks.model.json_values import strictly_equal

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NEAR = 0.8  # from which likeness on an unknown key is taken for a misspelt one where further keys are allowed

Model = TypeVar("Model", bound=BaseModel)
# 2.0 is a whole number too. Bounds stand before it, or the schema would not have them.
AS_WHOLE = BeforeValidator(lambda said: int(said) if isinstance(said, float) and said % 1 == 0 else said)
Whole = Annotated[int, AS_WHOLE]


class EvalWords(BaseModel):
    """The keys of one kind of mapping. A key that is `null` is as if it were not there."""

    # Most runs read no eval file, and no file has mappings of every kind.
    model_config = ConfigDict(extra="forbid", strict=True, defer_build=True, protected_namespaces=())

    REFUSED: ClassVar[Mapping[str, str]] = {}
    """Keys that are refused, and what to write in their place."""
    NULL: ClassVar[frozenset[str]] = frozenset()
    """Keys where `null` is a value."""
    UNUSED: ClassVar[tuple[str, ...]] = ()
    """Keys of other tools that change nothing here; they may hold anything."""
    EXPECTED: ClassVar[Mapping[str, str]] = {}
    """What to say of a wrong value in place of its pattern, which few can read."""
    OWN_PREFIX: ClassVar[str] = ""
    """How keys begin that the author may add; nothing reads them."""
    NESTED: ClassVar[str] = "config"
    """A mapping under this key holds keys as if they stood beside it, unless the key is a known one."""


def word(says: str = "", *names: str, needed: bool = False) -> Any:
    """Return a key: what it means, and its names, passgate's first; in other cases they need not be given."""
    alias = AliasChoices(*names) if names else None
    return Field(... if needed else None, description=says or None, validation_alias=alias)


@cache
def names_by_spelling(words: type[BaseModel]) -> dict[str, str]:
    """Return passgate's name of a key by each of its spellings."""
    found: dict[str, str] = {}
    for key, info in words.model_fields.items():
        alias = info.validation_alias
        names = [str(name) for name in alias.choices] if isinstance(alias, AliasChoices) else [key]
        found |= dict.fromkeys(names, names[0])
    return found


@dataclass(frozen=True)
class Parts:
    """The values of a mapping by the names that passgate has for its keys, but for those that are wrong."""

    node: Node  # the whole mapping
    values: dict[str, Node]
    further: dict[str, Node]  # keys that are not known, as they are written
    wrong: frozenset[str]  # the names of values that are wrong
    sound: bool  # whether nothing was wrong

    @classmethod
    def empty(cls, node: Node) -> "Parts":
        """Return the parts of a file that says nothing."""
        return cls(node, {}, {}, frozenset(), sound=True)

    def get(self, key: str) -> Node | None:
        return self.values.get(key)

    def value(self, key: str, otherwise: Any = None) -> Any:
        part = self.values.get(key)
        return otherwise if part is None else part.value

    def only(self, *keys: str) -> dict[str, Node]:
        """Return those of the values that are there, in the order asked for."""
        return {key: self.values[key] for key in keys if key in self.values}


def snake_case(name: str) -> str:
    """Return `maxToolCalls` and `max-tool-calls` as `max_tool_calls`."""
    return _HUMP.sub("_", name).replace("-", "_").lower()


def take_apart(node: Node, words: type[EvalWords], reporter: Reporter, *, further: bool = False) -> Parts:
    """Return the parts of a mapping. What is wrong with them goes to the complaints of `reporter`.

    Two spellings of a key must say the same. `further` allows keys that are not known, unless they are like one that
    is.
    """
    names = names_by_spelling(words)
    problems: list[Problem] = []
    values: dict[str, Node] = {}
    others: dict[str, Node] = {}
    for raw, part in _pairs(node, words, names):
        snake = snake_case(raw)
        name = names.get(raw) or names.get(snake)
        if instead := words.REFUSED.get(raw) or words.REFUSED.get(snake):
            problems.append(part.problem(instead, at_key=True))
        elif {raw, snake} & {*words.UNUSED}:
            continue
        elif name is None and further and not get_close_matches(snake, list(names), n=1, cutoff=_NEAR):
            others[raw] = part
        elif name is None:
            problems.append(part.problem(_unknown_key(raw, words, names), at_key=True))
        elif part.value is not None or name in words.NULL:
            earlier = values.setdefault(name, part)
            if not strictly_equal(earlier.value, part.value):
                both = f"{earlier.path[-1]!r} and {part.path[-1]!r}"
                problems.append(part.problem(f"{both} mean the same and differ; keep one of them", at_key=True))
    found = _wrong_parts(words, {name: part.value for name, part in values.items()})
    wrong = frozenset(name for name in values if any(each.path[:1] == (name,) for each in found))
    for name in [name for name in values if name in wrong]:
        part = values.pop(name)
        for each in (each for each in found if each.path[:1] == (name,)):
            place = (*part.path, *each.path[1:])
            problems.append(part.places.problem(place, each.message, at_key=each.is_unknown_key))
    # Where another key is wrong none is said to be missing: it may be the one that is misspelt.
    problems = problems or [node.problem(each.message) for each in found if not each.path]
    reporter.complaints.problems += problems
    return Parts(node, values, others, wrong, sound=not problems)


def _unknown_key(key: str, words: type[EvalWords], names: Mapping[str, str]) -> str:
    if key in REMOVED_KEYS:
        return f"removed key: {REMOVED_KEYS[key]}"
    if not words.OWN_PREFIX:
        return f"unknown key{nearest(key, [*names, *words.UNUSED])}"
    close = get_close_matches(key, list(names), n=1)
    remedy = f"did you mean {close[0]!r}?" if close else f"keys of your own begin with `{words.OWN_PREFIX}`"
    return f"unknown key; {remedy}"


def _pairs(node: Node, words: type[EvalWords], names: Mapping[str, str]) -> Iterator[tuple[str, Node]]:
    for raw in node.value:
        part = node.child(raw)
        if words.OWN_PREFIX and raw.startswith(words.OWN_PREFIX):
            continue
        if raw == words.NESTED and raw not in names and isinstance(part.value, Mapping):
            yield from ((inner, part.child(inner)) for inner in part.value)
        else:
            yield str(raw), part


def _wrong_parts(words: type[EvalWords], data: dict[str, Any]) -> list[Difference]:
    """Return what is wrong with values by passgate's names of their keys."""
    plain: dict[Difference, None] = {}
    try:
        # A model reads in microseconds what its schema takes milliseconds for.
        words.model_validate_json(json.dumps(data), strict=True)
    except (ValidationError, TypeError):
        found = differences(data, _validator(words))
        if not found:  # what the schema does not say, as that a number is too large
            try:
                words.model_validate(data, strict=False)
            except ValidationError as error:
                return model_differences(error)
        # A value of a wrong type is none of the allowed values either.
        mistyped = {each.path for each in found if each.message.startswith("expected ")}
        for each in found:
            name = str(each.path[0]) if each.path else ""
            if name in words.EXPECTED:
                plain[Difference((name,), f"expected {words.EXPECTED[name]}")] = None
            elif each.path not in mistyped or each.message.startswith("expected "):
                plain[each] = None
    return list(plain)


@cache
def _validator(words: type[EvalWords]) -> Draft202012Validator:
    return Draft202012Validator(input_schema(words, "words", words.__name__))


def build(model: type[Model], parts: Mapping[str, Node], node: Node, reporter: Reporter) -> Model | None:
    """Return the model with the parts as fields; `None` when it refuses them, and then the complaints say why."""
    try:
        return model.model_validate({name: part.value for name, part in parts.items()})
    except ValidationError as error:
        found = model_differences(error)
        reporter.complaints.problems += [problem_in(node, parts, each.path, each.message) for each in found]
        return None


def problem_in(node: Node, parts: Mapping[str, Node], path: DocumentPath, message: str) -> Problem:
    """Return a problem at a path that begins with the name of a part of a value; at the whole value otherwise."""
    part = parts.get(str(path[0])) if path else None
    return node.problem(message) if part is None else part.places.problem((*part.path, *path[1:]), message)


Value = TypeVar("Value")


@dataclass(frozen=True)
class Sources(Reporter):
    """Where the parts of a test are read from, and where complaints about it go."""

    documents: Documents  # reads the files that belong to its eval file
    complaints: Complaints
    texts: dict[Path, str | ValueError] = field(default_factory=dict)  # of files that were read before
    templates: tuple[Path, ...] = ()  # the templates of assertions that are being read, the outermost first
    # Whether the plain texts in a list of graders go to one judge; else they are the items of a rubric.
    one_judge: bool = False

    @property
    def ground(self) -> Ground:
        return self.documents.ground

    def cannot_have(self, asked: Parts | Node, messages: Mapping[str, str]) -> None:
        """Note that the test cannot run for each of several keys that the file has."""
        for key, message in messages.items():
            if (part := asked.get(key)) is not None:
                self.cannot_run(part, message, at_key=True)

    def find_path(self, node: Node, name: str, *, is_read: bool = True) -> Path | None:
        """Return where a path leads, as `Documents.find_path`."""
        return replace(self.documents, complaints=self.complaints).find_path(node, name, is_read=is_read)

    def path(self, node: Node, name: str, *, is_read: bool = True) -> Path | None:
        """Return where a path leads. Note that the test cannot run where the checkout lacks contents of it."""
        path = self.find_path(node, name, is_read=is_read)
        if path is not None and (missing := left_out(path)):
            self.cannot_run(node, f"{name!r} {missing}")
        return path

    def folder(self, node: Node, name: str) -> str:
        """Return a working folder as tasks hold it. A path that leads nowhere stays as the file writes it."""
        path = self.path(node, name, is_read=False)
        return name if path is None else self.ground.relative(path)

    def text(self, node: Node, name: str, called: str = "") -> tuple[str, str | None]:
        """Return a path as tasks hold it, and what the file holds; complaints call it `called`."""
        path = self.path(node, name)
        if path is None:
            return name, None
        if path not in self.texts:
            try:
                self.texts[path] = read_text(path)
            except ValueError as error:
                self.texts[path] = error  # every test that names the file reports it
        content = self.texts[path]
        if isinstance(content, ValueError):
            self.cannot_run(node, f"{called or name!r} {content}")
        return self.ground.relative(path), content if isinstance(content, str) else None


def present(values: Iterable[Value | None]) -> tuple[Value, ...]:
    """Return the values that are not `None`."""
    return tuple(value for value in values if value is not None)
